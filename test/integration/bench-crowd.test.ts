/** The crowd of connections that the load generator opens beside a load, on a real broker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Crowd, localAddressOf } from '../../native-free-bench/crowd.ts'
import { connectEs01 } from '../../src/client/es01/client.ts'
import { startBroker, waitFor } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'

/** Open ES01 connections, as the broker counts them. */
async function connectionsOf(url: string): Promise<number> {
  const page = await (await fetch(`${url}/metrics`)).text()
  return Number(/^millrace_connections\{[^}]*protocol="es01"[^}]*\} (\d+)$/m.exec(page)?.[1] ?? -1)
}

function faultOf(crowd: Crowd): string | null {
  try {
    crowd.check()
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

test('a crowd stays open, idle and stuck, from eight addresses, until it is closed', async t => {
  const broker = await startBroker(t)
  const client = await connectEs01(broker.es01)
  atEnd(t, () => client.destroy())
  await fetch(`${broker.url}/topics`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"name":"bulk","partitions":1}'
  })
  for (let i = 0; i < 8; i++) await client.produce('bulk', [{ value: Buffer.alloc(1024 * 1024, 'v'), partition: 0 }])
  const crowd = new Crowd(broker.es01, 'bulk')
  atEnd(t, () => crowd.close())
  await crowd.open('idle', 60)
  await crowd.open('half', 8)
  await crowd.open('unread', 8)
  assert.equal(await connectionsOf(broker.url), 77)
  // Others are served while they are stuck.
  await client.produce('bulk', [{ value: 'beside', partition: 0 }])
  await client.ping()
  crowd.check()
  assert.equal(new Set(Array.from({ length: 1000 }, (_, index) => localAddressOf(index))).size, 8)
  crowd.close()
  await waitFor('the connections to go', async () => (await connectionsOf(broker.url)) === 1, 10_000)
})

test('a crowd tells when the broker has closed one of it, and when it takes no more', async t => {
  const broker = await startBroker(t, { flags: { '--binary-max-connections-per-ip': '2' } })
  const crowd = new Crowd(broker.es01, 'bulk')
  atEnd(t, () => crowd.close())
  await crowd.open('idle', 16)
  await assert.rejects(crowd.open('idle', 1))
  const other = new Crowd(broker.es01, 'bulk')
  atEnd(t, () => other.close())
  crowd.close()
  await waitFor('the connections to go', async () => (await connectionsOf(broker.url)) === 0, 10_000)
  await other.open('idle', 3)
  other.check()
  await broker.stop()
  await waitFor('the end to be noticed', () => faultOf(other) !== null, 10_000)
  assert.match(faultOf(other) ?? '', /closed one of the connections that are idle|ECONNRESET/)
})
