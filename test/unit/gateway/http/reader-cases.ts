/** What becomes of HTTP clients that ask for much and do not take it, and of the others meanwhile. Both engines alike. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Clock } from '../../../../src/base/clock.ts'
import type { Fixture } from './http-harness.ts'
import { RawConnection, startGateway, waitFor } from './http-harness.ts'
import type { EngineName } from './http-harness.ts'

const MIB = 1024 * 1024
/** More than the system buffers for a connection whose client does not read. */
const ANSWER_BYTES = 8 * MIB
/** What a read of 8 MiB reserves. */
const RESERVED_BYTES = 8 * MIB + 64 * 1024
const path = `/topics/t/consume?partition=0&offset=0&max_bytes=${8 * MIB}`

/** Connections that ask for 8 MiB and read nothing. */
function openSleepers(t: TestContext, { broker, port }: Fixture, count: number): RawConnection[] {
  broker.cannedAnswer = { bytes: Buffer.alloc(ANSWER_BYTES, 'a'), chunkBytes: 256 * 1024 }
  return Array.from({ length: count }, () => {
    const raw = new RawConnection(t, port)
    raw.socket.pause()
    raw.socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    return raw
  })
}

/** Reads what is left to its end. @returns all that came. */
async function drain(raw: RawConnection): Promise<string> {
  raw.socket.resume()
  await waitFor(() => raw.isClosed || raw.received.length > ANSWER_BYTES, 'the rest of an answer')
  return raw.received
}

class StandingClock implements Clock {
  atMs = 0
  nowMs(): number {
    return this.atMs
  }
  monotonicMs(): number {
    return this.atMs
  }
}

/** Registers the claims for one engine. */
export function readerCases(engine: EngineName): void {
  test('who takes nothing of an answer is cut off in the end, and its reply memory is free again', async t => {
    // Time stands still until all answers are on their way, however slow the machine is.
    const clock = new StandingClock()
    const timeouts = { writeMs: 100, stalledMs: 100_000 }
    const fixture = await startGateway(t, engine, { timeouts, clock })
    const { broker, replyBudget } = fixture
    const sleepers = openSleepers(t, fixture, 4)
    await waitFor(() => broker.reads.length === 4 && broker.heldAnswerCount === 0, 'the answers to be on their way')
    assert.equal(replyBudget.usedBytes, 4 * RESERVED_BYTES)
    clock.atMs += 101
    await waitFor(() => replyBudget.usedBytes === 0, 'the memory to be given back')
    for (const sleeper of sleepers) assert.ok((await drain(sleeper)).length < ANSWER_BYTES)
  })

  test('who takes nothing is cut off early once others lack memory, and those are served', async t => {
    const clock = new StandingClock()
    const fixture = await startGateway(t, engine, { timeouts: { writeMs: 100_000, stalledMs: 60 }, clock })
    const { broker, replyBudget, send } = fixture
    openSleepers(t, fixture, 12)
    await waitFor(() => broker.reads.length >= 7 && broker.heldAnswerCount === 0, 'the answers to be on their way')
    assert.ok(replyBudget.limitBytes - replyBudget.usedBytes < RESERVED_BYTES)
    const answering = send('GET', path)
    clock.atMs += 61
    const answer = await answering
    assert.deepEqual([answer.status, answer.text.length], [200, ANSWER_BYTES])
  })

  test('who takes an answer slowly gets all of it, however long it takes', async t => {
    let nowMs = 0
    const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
    const timeouts = { writeMs: 100, stalledMs: 100 }
    const fixture = await startGateway(t, engine, { timeouts, clock })
    const { broker, replyBudget } = fixture
    const [slow] = openSleepers(t, fixture, 2)
    assert.ok(slow !== undefined)
    await waitFor(() => broker.reads.length === 2 && broker.heldAnswerCount === 0, 'the answers to be on their way')
    nowMs += 90
    slow.socket.on('data', () => {
      if (slow.received.length > ANSWER_BYTES / 2) slow.socket.pause()
    })
    slow.socket.resume()
    await waitFor(() => slow.received.length > ANSWER_BYTES / 2, 'half of the answer')
    nowMs += 90
    // The other one took nothing for longer than it may: that it is gone shows that the clients were looked at.
    await waitFor(() => replyBudget.usedBytes === RESERVED_BYTES, 'the stalled one to be cut off')
    slow.socket.removeAllListeners('data').on('data', (text: string) => (slow.received += text))
    assert.ok((await drain(slow)).length > ANSWER_BYTES)
  })

  test('a body for a topic is small, and the refusal names the limit of its route', async t => {
    const { send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    const sized = (bytes: number, head: string): string => `${head}"unknown":"${'x'.repeat(bytes - head.length - 13)}"}`
    for (const [method, where, head] of [
      ['POST', '/topics', '{"name":"u",'],
      ['PUT', '/topics/t/config', '{']
    ] as const) {
      assert.ok((await send(method, where, sized(65_536, head))).status < 300)
      const over = await send(method, where, sized(65_537, head))
      assert.equal(over.status, 413)
      assert.match(over.text, /over the limit of 65536 bytes \(for this route\)","code":"BODY_TOO_LARGE"/)
    }
    const produce = await send('POST', '/topics/t/produce', Buffer.alloc(10 * MIB + 1, ' '))
    assert.match(produce.text, /over the limit of 10485760 bytes \(--max-request-body-bytes\)/)
  })
}
