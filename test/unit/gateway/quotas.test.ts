/** One key that speaks both protocols: its quotas are one, and each protocol says what it must. Both listeners are real. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { ByteBudget } from '../../../src/base/byte-budget.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { connectEs01, type Es01Client } from '../../../src/client/es01/client.ts'
import { createEs01Gateway } from '../../../src/gateway/es01/gateway.ts'
import { createHttpGateway } from '../../../src/gateway/http/gateway.ts'
import type { Principal } from '../../../src/model/principal.ts'
import { RESULT_BYTES, readFormats, type Broker } from '../../../src/model/requests.ts'
import { BrokerStage, keyWith } from '../broker/broker-stage.ts'
import { defaultSettings } from './es01/fixture.ts'
import { assertError, metrics, sendHttp, settings, type Answer, type EngineName } from './http/http-harness.ts'

/** The broker as that key sees it, whoever the listeners take the caller for. */
function seenBy(who: Principal, broker: Broker): Broker {
  return new Proxy(broker, {
    get(target, name) {
      if (name === 'submitProduce')
        return (_: Principal, ...rest: Rest<'submitProduce'>) => target.submitProduce(who, ...rest)
      if (name === 'submitRead') return (_: Principal, ...rest: Rest<'submitRead'>) => target.submitRead(who, ...rest)
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    }
  })
}

type Rest<Name extends 'submitProduce' | 'submitRead'> =
  Parameters<Broker[Name]> extends [Principal, ...infer Others] ? Others : never

interface Listeners {
  readonly stage: BrokerStage
  readonly es01: Es01Client
  produce(value: string): Promise<Answer>
  consume(): Promise<Answer>
}

/** An empty log as an answer of a read, in the format of HTTP or ES01; the engine says how much is in it. */
const emptyAnswer = { http: Buffer.from('{"records":[],"next_offset":0,"high_watermark":0}'), es01: Buffer.alloc(20) }

async function listen(t: TestContext, engine: EngineName, who: Principal, readBytes: () => number): Promise<Listeners> {
  const stage = new BrokerStage()
  stage.create('t')
  stage.answerAtOnce = ({ append, read }) =>
    void setImmediate(() => {
      append?.onProduced(Buffer.alloc(RESULT_BYTES), 0, 1, 0, 0)
      const given = stage.reads.shift()
      if (read !== undefined && given !== undefined) {
        const answer = given.read.format === readFormats.es01 ? emptyAnswer.es01 : emptyAnswer.http
        read.onReadCounted(1, readBytes())
        read.onReadChunk(answer, 0, answer.length, answer.length, true)
      }
      stage.delivered()
    })
  const broker = seenBy(who, stage.broker)
  const budgets = { requestBudget: new ByteBudget(1 << 26), replyBudget: new ByteBudget(1 << 26) }
  const http = await createHttpGateway({ broker, metrics, settings, logger: silentLogger, engine, ...budgets })
  const { port } = await http.listen()
  t.after(() => http.stop(0))
  const binary = createEs01Gateway({ broker, settings: defaultSettings, logger: silentLogger, ...budgets })
  const { port: binaryPort } = await binary.listen()
  t.after(() => binary.stop(0))
  const es01 = await connectEs01({ host: '127.0.0.1', port: binaryPort })
  t.after(() => es01.destroy())
  return {
    stage,
    es01,
    produce: value =>
      sendHttp({ port, method: 'POST', path: '/topics/t/produce', body: JSON.stringify({ records: [{ value }] }) }),
    consume: () => sendHttp({ port, method: 'GET', path: '/topics/t/consume?partition=0&offset=0' })
  }
}

const read = { topic: 't', partition: 0, offset: 0, maxRecords: 1, maxBytes: 1000 }

for (const engine of ['uws', 'node'] as const) {
  test(`a produce quota is shared by HTTP on ${engine} and ES01, in bytes of UTF-8`, async t => {
    const who = keyWith({ produceBytesPerSec: 1000, consumeBytesPerSec: null })
    const { stage, es01, produce } = await listen(t, engine, who, () => 0)
    assert.equal((await produce('ä'.repeat(300))).status, 200)
    await es01.produce('t', [{ value: Buffer.alloc(100, 0xff) }])
    await es01.produce('t', [{ key: 'k'.repeat(50), value: 'v'.repeat(50) }])
    const refused = await produce('v'.repeat(201))
    assertError(refused, 429, 'RATE_LIMITED', /201 bytes.*200 are left of the 1000 a second.*retry in 0\.1s$/)
    assert.equal(refused.headers['retry-after'], '1')
    assert.match(refused.text, /"retry":"same","written":"no"/)
    await assert.rejects(es01.produce('t', [{ value: 'v'.repeat(900) }]), { message: 'rate limited: retry in 0.7s' })
    await assert.rejects(es01.produce('t', [{ value: 'v'.repeat(1001) }]), { message: 'rate limited: retry in 1.0s' })
    assert.equal((await produce('v'.repeat(200))).status, 200, 'what was refused has cost nothing')
    await assert.rejects(es01.produce('t', [{ value: 'v' }]), { message: 'rate limited: retry in 0.1s' })
    stage.clock.wallMs += 100
    await es01.produce('t', [{ value: 'v'.repeat(100) }])
    await es01.ping()
  })

  test(`a consume quota is shared by HTTP on ${engine} and ES01, and its debt too`, async t => {
    const who = keyWith({ produceBytesPerSec: null, consumeBytesPerSec: 1000 })
    let bytes = 600
    const { stage, es01, consume } = await listen(t, engine, who, () => bytes)
    assert.equal((await consume()).status, 200)
    bytes = 3000
    await es01.consume(read)
    const refused = await consume()
    assertError(refused, 429, 'RATE_LIMITED', /1000 bytes a second, and 2600 bytes beyond it; retry in 2\.7s$/)
    assert.equal(refused.headers['retry-after'], '3')
    await assert.rejects(es01.consume(read), { message: 'rate limited: retry in 2.7s' })
    stage.clock.wallMs += 2601
    bytes = 0
    await es01.consume(read)
    assert.equal((await consume()).status, 200)
  })
}
