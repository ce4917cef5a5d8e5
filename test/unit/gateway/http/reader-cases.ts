/** What becomes of HTTP clients that ask for much and do not take it, and of the others meanwhile. Both engines alike. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Clock } from '../../../../src/base/clock.ts'
import { limits } from '../../../../src/model/limits.ts'
import type { Fixture } from './http-harness.ts'
import { RawConnection, startGateway, waitFor } from './http-harness.ts'
import type { EngineName } from './http-harness.ts'

const MIB = 1024 * 1024
/** More than the system buffers for a connection whose client does not read. */
const ANSWER_BYTES = 8 * MIB
const pathOf = (maxBytes: number): string => `/topics/t/consume?partition=0&offset=0&max_bytes=${maxBytes}`
const path = pathOf(ANSWER_BYTES)

/** Memory for a few such answers of one address. */
const ROOMY_BYTES = 256 * MIB

/** True once another read of this share would wait. */
function greedyIsFull({ replyBudget }: Fixture): boolean {
  return replyBudget.limitBytes / 4 - replyBudget.usedBytes < limits.shortReadBytesMin + 64 * 1024
}

/** Connections that ask for 8 MiB and read nothing. */
function openSleepers(
  t: TestContext,
  { broker, port }: Fixture,
  count: number,
  answerBytes = ANSWER_BYTES
): RawConnection[] {
  broker.cannedAnswer = { bytes: Buffer.alloc(answerBytes, 'a'), chunkBytes: 256 * 1024 }
  broker.cutsAnswers = true
  return Array.from({ length: count }, () => {
    const raw = new RawConnection(t, port)
    raw.socket.pause()
    raw.socket.write(`GET ${pathOf(answerBytes)} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
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
    const fixture = await startGateway(t, engine, { timeouts, clock, replyBudgetBytes: ROOMY_BYTES })
    const { broker, gateway, replyBudget } = fixture
    const sleepers = openSleepers(t, fixture, 4)
    await waitFor(() => broker.reads.length === 4 && broker.heldAnswerCount === 0, 'the answers to be on their way')
    assert.ok(replyBudget.usedBytes > 0)
    clock.atMs += 101
    await waitFor(() => replyBudget.usedBytes === 0, 'the memory to be given back')
    assert.deepEqual(gateway.probe.readersCut, { stalled: 4, slow: 0 })
    for (const sleeper of sleepers) assert.ok((await drain(sleeper)).length < ANSWER_BYTES)
  })

  test('who comes while others take nothing is answered at once, with less, though all are one address', async t => {
    const clock = new StandingClock()
    const timeouts = { writeMs: 100_000, stalledMs: 60 }
    const answerBytes = 24 * MIB
    const settings = { maxFetchBytes: answerBytes }
    const fixture = await startGateway(t, engine, { timeouts, clock, settings, replyBudgetBytes: 128 * MIB })
    const { broker, gateway, replyBudget, send } = fixture
    openSleepers(t, fixture, 60, answerBytes)
    await waitFor(() => broker.reads.length === 60 && broker.heldAnswerCount === 0, 'the answers to be on their way')
    for (let i = 0; i < 3; i++) {
      const answer = await send('GET', pathOf(answerBytes))
      assert.equal(answer.status, 200)
      assert.ok(answer.text.length >= limits.shortReadBytesMin && answer.text.length < answerBytes)
    }
    const heldBytes = replyBudget.usedBytes
    assert.ok(heldBytes > ANSWER_BYTES, 'the others hold their answers still')
    assert.ok(heldBytes <= replyBudget.limitBytes / 4, 'of a quarter of the memory')
    assert.equal(gateway.probe.readersCut.stalled, 0)
    assert.ok(gateway.probe.readsShortened >= 3)
    // They are late by the time for short memory alone; then the memory is there for whole answers again.
    clock.atMs += 61
    await waitFor(() => replyBudget.usedBytes === 0, 'those that take nothing to be cut off')
    assert.ok(gateway.probe.readersCut.stalled > 0)
    assert.equal((await send('GET', pathOf(answerBytes))).text.length, answerBytes)
  })

  test('reads of a key hold a quarter of the memory, and those of another key go on beside them', async t => {
    const fixture = await startGateway(t, engine, { settings: { auth: 'required' } })
    const { broker, replyBudget, send } = fixture
    for (const secret of ['greedy', 'modest']) broker.keys.add(secret, 't')
    broker.cannedAnswer = { bytes: Buffer.alloc(ANSWER_BYTES, 'a'), chunkBytes: 256 * 1024 }
    broker.cutsAnswers = true
    broker.holdsAnswers = true
    const greedy = Array.from({ length: 60 }, () => send('GET', path, undefined, { 'x-es-key': 'greedy' }))
    await waitFor(() => greedyIsFull(fixture), 'the share of the first key to be full')
    const before = broker.reads.length
    const heldBytes = replyBudget.usedBytes
    assert.ok(before < 60, 'the rest waits')
    assert.ok(heldBytes <= replyBudget.limitBytes / 4)
    const modest = send('GET', path, undefined, { 'x-es-key': 'modest' })
    await waitFor(() => broker.reads.length === before + 1, 'the read of the other key to be with the broker')
    assert.equal(broker.reads.at(-1)?.maxBytes, ANSWER_BYTES, 'for all that it asked')
    assert.ok(replyBudget.usedBytes > heldBytes, 'while the first key holds its own')
    broker.holdsAnswers = false
    broker.flush()
    for (const answer of await Promise.all([modest, ...greedy])) assert.equal(answer.status, 200)
    await waitFor(() => replyBudget.usedBytes === 0, 'every reservation to be given back')
  })

  test('what an answer holds is its own length once that is known, and less as the client takes it', async t => {
    const fixture = await startGateway(t, engine, { replyBudgetBytes: ROOMY_BYTES })
    const { broker, replyBudget } = fixture
    const [sleeper] = openSleepers(t, fixture, 1)
    assert.ok(sleeper !== undefined)
    broker.cannedAnswer = { bytes: Buffer.alloc(7 * MIB, 'a'), chunkBytes: 256 * 1024 }
    await waitFor(() => broker.reads.length === 1 && broker.heldAnswerCount === 0, 'the answer to be on its way')
    await waitFor(() => replyBudget.usedBytes < 7 * MIB, 'the system to take some of it')
    let before = replyBudget.usedBytes
    for (let seen = 0; before > MIB; seen = sleeper.received.length) {
      sleeper.socket.resume()
      await waitFor(() => sleeper.received.length >= seen + MIB, 'the client to take a part')
      sleeper.socket.pause()
      assert.ok(replyBudget.usedBytes <= before)
      before = replyBudget.usedBytes
    }
    sleeper.socket.resume()
    await waitFor(() => replyBudget.usedBytes === 0, 'the rest to be given back')
    await waitFor(() => sleeper.received.length > 7 * MIB, 'the whole answer')
  })

  test('one record larger than what was reserved is sent, and counted while it is here', async t => {
    const fixture = await startGateway(t, engine, { replyBudgetBytes: ROOMY_BYTES })
    const { broker, port, replyBudget, send } = fixture
    broker.cannedAnswer = { bytes: Buffer.alloc(ANSWER_BYTES, 'r'), chunkBytes: 256 * 1024 }
    const raw = new RawConnection(t, port)
    raw.socket.pause()
    raw.socket.write('GET /topics/t/consume?partition=0&offset=0&max_bytes=1 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await waitFor(() => broker.reads.length === 1 && broker.heldAnswerCount === 0, 'the answer to be on its way')
    assert.ok(replyBudget.usedBytes > MIB)
    assert.equal((await send('GET', '/topics/t/consume?partition=0&offset=0&max_bytes=1')).text.length, ANSWER_BYTES)
    raw.socket.destroy()
    await waitFor(() => replyBudget.usedBytes === 0, 'the memory to be given back')
  })

  test('who takes an answer slowly gets all of it, however long it takes', async t => {
    const clock = new StandingClock()
    const timeouts = { writeMs: 100, stalledMs: 100 }
    const fixture = await startGateway(t, engine, { timeouts, clock, replyBudgetBytes: ROOMY_BYTES })
    const { broker, gateway } = fixture
    const [slow] = openSleepers(t, fixture, 2)
    assert.ok(slow !== undefined)
    await waitFor(() => broker.reads.length === 2 && broker.heldAnswerCount === 0, 'the answers to be on their way')
    clock.atMs += 90
    slow.socket.on('data', () => {
      if (slow.received.length > ANSWER_BYTES / 2) slow.socket.pause()
    })
    slow.socket.resume()
    await waitFor(() => slow.received.length > ANSWER_BYTES / 2, 'half of the answer')
    clock.atMs += 90
    // The other one took nothing for longer than it may: that it is gone shows that the clients were looked at.
    await waitFor(() => gateway.probe.readersCut.stalled === 1, 'the stalled one to be cut off')
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
