/** Produce over HTTP with bodies that are scanned by the background pool: every claim about produce, and what is new with it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { makeScanners } from '../../../src/background/produce-scan.ts'
import type { ScanProduceResult, ScanProduceValue } from '../../../src/background/produce-scan.ts'
import type { Offload } from '../../../src/gateway/http/exchange.ts'
import { loadUws } from '../../../src/gateway/http/engines/uws-loader.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { scanProduce } from '../../../workers/background/scan-produce.ts'
import { assertError, one, RawConnection, startGateway, waitFor } from '../gateway/http/http-harness.ts'
import type { Answer, EngineName, Fixture, FixtureOptions } from '../gateway/http/http-harness.ts'
import { produceCases } from '../gateway/http/route-cases.ts'
import { BodyMaker, makeRandom } from '../wire/json/random-bodies.ts'
import { PackMaker } from '../wire/produce/random-packs.ts'
import { openPool } from './pool-tools.ts'

const engines: EngineName[] = loadUws().uws === null ? ['node'] : ['node', 'uws']
const path = '/topics/t/produce'

/** A gateway that has every body scanned by a pool. */
function startOffloaded(t: TestContext, engine: EngineName, options: FixtureOptions = {}): Promise<Fixture> {
  const { pool } = openPool(t)
  return startGateway(t, engine, { ...options, offload: { pool, bodyBytesMin: 0 } })
}

interface HeldScan {
  readonly value: ScanProduceValue
  readonly signal: AbortSignal | undefined
  /** Ends it: with what the scan says, or with that failure. */
  end(failure?: Error): void
}

/** A pool whose jobs end when a test says so. */
class HeldScans {
  readonly scans: HeldScan[] = []
  readonly offload: Offload

  constructor(bodyBytesMin: number) {
    const run: Offload['pool']['run'] = (_job, value, { signal } = {}) =>
      new Promise<ScanProduceResult>((resolve, reject) => {
        assert('form' in value, 'a large produce is scanned')
        const end = (failure?: Error): void =>
          failure === undefined ? resolve(scanProduce(makeScanners()[value.form], value)) : reject(failure)
        this.scans.push({ value, signal, end })
      })
    this.offload = { pool: { run }, bodyBytesMin }
  }

  async next(count: number): Promise<HeldScan> {
    await waitFor(() => this.scans.length >= count, `scan ${count}`)
    return this.scans[count - 1] as HeldScan
  }
}

/** An answer without what tells it from others like it. */
function withoutId(text: string): string {
  return text.replace(/,"request_id":"\w+"/, '')
}

/** A body of that length with one record. */
function sized(bytes: number, fill = 'x'): string {
  return one.replace('"v"', `"${fill.repeat(bytes - one.length + 1)}"`)
}

function values(fixture: Fixture): string[] {
  return fixture.broker.recordsOf('t', 0).map(record => record.value.toString().slice(0, 5))
}

function httpOf(body: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

function sharedCases(engine: EngineName): void {
  test('bodies are answered alike, and store the same records, scanned here and elsewhere', async t => {
    const random = makeRandom()
    t.diagnostic(
      `seed ${random.seed}; replay: MILLRACE_SEED=${random.seed} node --test test/unit/background/offload.test.ts`
    )
    const makers = { 'application/json': new BodyMaker(random), 'application/msgpack': new PackMaker(random) }
    const here = await startGateway(t, engine)
    const elsewhere = await startOffloaded(t, engine)
    for (const { send } of [here, elsewhere]) await send('POST', '/topics', '{"name":"t","partitions":4}')
    for (let round = 0; round < 400; round++) {
      const type = random.pick(['application/json', 'application/msgpack'] as const)
      const body = makers[type].make()
      const headers = { 'content-type': type }
      const [expected, answer] = await Promise.all([
        here.send('POST', path, body, headers),
        elsewhere.send('POST', path, body, headers)
      ])
      assert.deepEqual(
        [answer.status, withoutId(answer.text)],
        [expected.status, withoutId(expected.text)],
        body.toString('latin1')
      )
    }
    for (let partition = 0; partition < 4; partition++) {
      assert.deepEqual(elsewhere.broker.recordsOf('t', partition), here.broker.recordsOf('t', partition))
    }
    assert.equal(elsewhere.requestBudget.usedBytes, 0)
  })

  test('only bodies from the limit on leave the main thread, announced or not, in one piece or many', async t => {
    const held = new HeldScans(1000)
    const { send, port } = await startGateway(t, engine, { offload: held.offload })
    await send('POST', '/topics', '{"name":"t"}')
    assert.equal((await send('POST', path, sized(999))).status, 200)
    assert.equal(held.scans.length, 0)
    const whole = send('POST', path, sized(1000))
    const { end } = await held.next(1)
    end()
    assert.equal((await whole).status, 200)
    const raw = new RawConnection(t, port)
    raw.socket.write(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
    )
    const body = sized(3000)
    for (let at = 0; at < body.length; at += 300) raw.socket.write(`12c\r\n${body.slice(at, at + 300)}\r\n`)
    raw.socket.write('0\r\n\r\n')
    const chunked = await held.next(2)
    assert.equal(Buffer.from(chunked.value.body).toString('latin1', 0, chunked.value.length), body)
    assert.ok(chunked.value.body.byteLength <= 2 * body.length, 'grown by what arrived')
    chunked.end()
    await waitFor(() => raw.received.includes('results'), 'the answer')
  })

  test('an announced length allocates nothing before bytes come', async t => {
    const held = new HeldScans(1000)
    const { port, requestBudget, send } = await startGateway(t, engine, { offload: held.offload })
    const raw = new RawConnection(t, port)
    raw.socket.write(httpOf(sized(9_000_000)).slice(0, 150))
    for (let i = 0; i < 5; i++) await send('GET', '/healthz')
    assert.ok(requestBudget.usedBytes <= 300, `${requestBudget.usedBytes} bytes are held for at most 150`)
  })

  test('its memory stays charged while it is scanned and until its records have a ring', async t => {
    const held = new HeldScans(1000)
    const fixture = await startGateway(t, engine, { offload: held.offload })
    const { broker, requestBudget, send } = fixture
    await send('POST', '/topics', '{"name":"t"}')
    broker.areRingsFull = true
    const answer = send('POST', path, sized(5000))
    const { end } = await held.next(1)
    assert.ok(requestBudget.usedBytes >= 10_000, 'the body, and as much for its records')
    end()
    await waitFor(() => broker.roomWaiterCount === 1, 'the records to wait for room')
    assert.equal(requestBudget.usedBytes, 2 * 4 + 20 + 5000 - one.length + 1, 'the records and their table')
    broker.makeRoom()
    assert.equal((await answer).status, 200)
    assert.equal(requestBudget.usedBytes, 0)
    assert.deepEqual(values(fixture), ['xxxxx'])
  })

  test('a client that leaves during the scan writes nothing, and the memory is given back when the scan is over', async t => {
    const held = new HeldScans(1000)
    const fixture = await startGateway(t, engine, { offload: held.offload })
    const { port, requestBudget, send } = fixture
    await send('POST', '/topics', '{"name":"t"}')
    const raw = new RawConnection(t, port)
    raw.socket.write(httpOf(sized(5000)))
    const { end, signal } = await held.next(1)
    raw.socket.destroy()
    await waitFor(() => signal?.aborted === true, 'the scan to be taken back')
    assert.ok(requestBudget.usedBytes >= 10_000, 'the other thread may still have it')
    end()
    await waitFor(() => requestBudget.usedBytes === 0, 'the memory to be given back')
    assert.equal((await send('POST', path, one)).status, 200)
    assert.deepEqual(values(fixture), ['v'])
  })

  test('a client that leaves while its records wait for room writes nothing', async t => {
    const fixture = await startOffloaded(t, engine)
    const { broker, port, requestBudget, send } = fixture
    await send('POST', '/topics', '{"name":"t"}')
    broker.areRingsFull = true
    const raw = new RawConnection(t, port)
    raw.socket.write(httpOf(sized(5000)))
    await waitFor(() => broker.roomWaiterCount === 1, 'the records to wait for room')
    raw.socket.destroy()
    await waitFor(() => requestBudget.usedBytes === 0, 'the memory to be given back')
    broker.makeRoom()
    assert.equal((await send('POST', path, one)).status, 200)
    assert.deepEqual(values(fixture), ['v'])
  })

  test('a pool at its limit is told as 503 with Retry-After, and nothing is kept', async t => {
    const { pool } = openPool(t, { threadsMax: 1, jobsMax: 1 })
    const { requestBudget, send } = await startGateway(t, engine, { offload: { pool, bodyBytesMin: 1000 } })
    await send('POST', '/topics', '{"name":"t"}')
    const answers = await Promise.all(Array.from({ length: 8 }, () => send('POST', path, sized(200_000))))
    const refused = answers.filter(answer => answer.status !== 200)
    assert.ok(refused.length > 0 && refused.length < 8, `${refused.length} of 8 are refused`)
    for (const answer of refused) {
      assertError(answer, 503, 'OVERLOADED', /background jobs is at its limit of 1/)
      assert.equal(answer.headers['retry-after'], '1')
    }
    assert.equal(requestBudget.usedBytes, 0)
    assert.equal((await send('POST', path, sized(2000))).status, 200)
  })

  test('a scan that fails is a 500 that wrote nothing, with the id of the log', async t => {
    const held = new HeldScans(1000)
    const { requestBudget, send } = await startGateway(t, engine, { offload: held.offload })
    await send('POST', '/topics', '{"name":"t"}')
    const answer = send('POST', path, sized(2000))
    const { end } = await held.next(1)
    end(new BrokerError('INTERNAL', { id: '0123abcd' }, { written: 'no' }))
    const refused = await answer
    assertError(refused, 500, 'INTERNAL', /id 0123abcd/)
    assert.match(refused.text, /"written":"no"/)
    assert.equal(requestBudget.usedBytes, 0)
  })

  test('a body without memory for its decoded records is scanned where it is', async t => {
    const held = new HeldScans(1000)
    const options = { offload: held.offload, requestBudgetBytes: 6000 }
    const { requestBudget, send } = await startGateway(t, engine, options)
    await send('POST', '/topics', '{"name":"t"}')
    assert.equal((await send('POST', path, sized(5000))).status, 200)
    assert.deepEqual([held.scans.length, requestBudget.usedBytes], [0, 0])
  })
}

function orderCases(): void {
  test('requests of one connection to one topic are written in their order, whatever their scans take', async t => {
    const held = new HeldScans(1000)
    const fixture = await startGateway(t, 'node', { offload: held.offload })
    const { broker, port, requestBudget, send } = fixture
    await send('POST', '/topics', '{"name":"t"}')
    await send('POST', '/topics', '{"name":"u"}')
    const raw = new RawConnection(t, port)
    const small = (value: string): string => httpOf(`{"records":[{"value":"${value}"}]}`)
    raw.socket.write(
      [
        httpOf(sized(2000, 'a')),
        small('b'),
        httpOf(sized(3000, 'c')),
        small('d'),
        small('other').replace('/t/', '/u/')
      ].join('')
    )
    const second = await held.next(2)
    await waitFor(() => broker.recordsOf('u', 0).length === 1, 'the request to another topic, which waits for nobody')
    second.end()
    for (let i = 0; i < 5; i++) await send('GET', '/healthz')
    assert.deepEqual(values(fixture), [], 'nothing overtakes the first')
    held.scans[0]?.end()
    await waitFor(() => raw.received.match(/"results"/g)?.length === 5, 'all answers')
    assert.deepEqual(values(fixture), ['aaaaa', 'b', 'ccccc', 'd'])
    assert.equal(requestBudget.usedBytes, 0)
  })

  test('a refused or failed scan lets those behind it go on', async t => {
    const held = new HeldScans(1000)
    const fixture = await startGateway(t, 'node', { offload: held.offload })
    const { port, send } = fixture
    await send('POST', '/topics', '{"name":"t"}')
    const raw = new RawConnection(t, port)
    raw.socket.write(httpOf(sized(2000)) + httpOf(sized(2000).replace('value', 'walue')) + httpOf(one))
    await held.next(2)
    held.scans[1]?.end()
    held.scans[0]?.end(new BrokerError('OVERLOADED', { what: 'it', limit: 1 }))
    await waitFor(() => raw.received.includes('"results"'), 'the last answer')
    assert.match(raw.received, /OVERLOADED[^]*records\[0\]\.value: is missing[^]*"results"/)
    assert.deepEqual(values(fixture), ['v'])
  })

  test('requests behind a scan whose client leaves are not written either', async t => {
    const held = new HeldScans(1000)
    const fixture = await startGateway(t, 'node', { offload: held.offload })
    const { port, requestBudget, send } = fixture
    await send('POST', '/topics', '{"name":"t"}')
    const raw = new RawConnection(t, port)
    raw.socket.write(httpOf(sized(2000)) + httpOf(one))
    const { end, signal } = await held.next(1)
    await waitFor(() => requestBudget.usedBytes > 4000, 'both bodies')
    const other: Promise<Answer> = send('POST', path, '{"records":[{"value":"other"}]}')
    raw.socket.destroy()
    await waitFor(() => signal?.aborted === true, 'the scan to be taken back')
    end()
    assert.equal((await other).status, 200, 'another connection goes on')
    assert.deepEqual(values(fixture), ['other'])
    await waitFor(() => requestBudget.usedBytes === 0, 'the memory to be given back')
  })
}

for (const engine of engines) {
  describe(`produce over ${engine}, scanned by the pool`, () => produceCases(engine, startOffloaded))
  describe(`a large body over ${engine}`, () => sharedCases(engine))
}
describe('order while scans are away', orderCases)
