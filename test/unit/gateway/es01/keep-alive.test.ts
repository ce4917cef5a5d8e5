/**
 * A peer that is gone without a word (a cable, a crashed machine) cannot be made here; that the system watches for it can
 * be seen: Linux shows which timer runs on a socket.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { limits } from '../../../../src/model/limits.ts'
import { startGateway, until } from './fixture.ts'

const TABLE = '/proc/net/tcp'
/** Timers are shown in hundredths of a second. */
const TICK_MS = 10
/** The number that Linux shows for the timer of keep-alive. */
const KEEP_ALIVE = 2

/** The timer of the broker's end of a connection, and what is left of it in ms. */
function timerOf(localPort: number, remotePort: number): { kind: number; leftMs: number } {
  const port = (address: string | undefined): number => parseInt(address?.split(':')[1] ?? '', 16)
  const rows = readFileSync(TABLE, 'latin1').trim().split('\n').slice(1)
  const row = rows
    .map(line => line.trim().split(/\s+/))
    .find(cells => port(cells[1]) === localPort && port(cells[2]) === remotePort)
  assert.ok(row !== undefined, 'the connection is in the table')
  const [kind, left] = (row[5] ?? '').split(':').map(part => parseInt(part, 16))
  return { kind: kind ?? 0, leftMs: (left ?? 0) * TICK_MS }
}

test(
  'a connection on which nothing comes is asked by the system whether its peer is still there',
  { skip: !existsSync(TABLE) },
  async t => {
    const { greet, open, port, gateway } = await startGateway(t)
    for (const client of [await greet(), await open()]) {
      await until('it was accepted', () => gateway.connectionCount > 0)
      const { localPort } = client.socket
      assert.ok(localPort !== undefined)
      await until('nothing else is to be sent', () => timerOf(port, localPort).kind === KEEP_ALIVE)
      assert.ok(timerOf(port, localPort).leftMs <= limits.binaryKeepAliveMs)
    }
  }
)
