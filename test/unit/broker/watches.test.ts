/** Who waits for records: they share what they wait for, hear once, and may do anything when they do. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { EngineWatch } from '../../../src/broker/engine.ts'
import { WatchHub } from '../../../src/broker/watches.ts'
import { Catalog } from '../../../src/control/catalog.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { limits } from '../../../src/model/limits.ts'
import { anonymous, type Principal } from '../../../src/model/principal.ts'
import type { Watch, WatchCaller } from '../../../src/model/requests.ts'
import type { Topic } from '../../../src/model/topic.ts'
import { create, emptyImage } from '../control/topics.ts'
import { BrokerStage, keyWith, turn } from './broker-stage.ts'

interface Standing {
  readonly watch: EngineWatch
  readonly caller: WatchCaller
}

class Stage {
  /** What the engine was asked and has not answered. */
  readonly standing: Standing[] = []
  asked = 0
  readonly hub = new WatchHub({
    watch: (watch, caller) => {
      const one = { watch, caller }
      this.standing.push(one)
      this.asked++
      return { cancel: () => this.#forget(one) }
    }
  })
  readonly topic: Topic
  readonly other: Topic
  /** What callers heard, in order. */
  readonly heard: string[] = []

  constructor() {
    const catalog = new Catalog(emptyImage)
    this.topic = create(catalog, 't', 4)
    this.other = create(catalog, 'other', 4)
  }

  #forget(one: Standing): void {
    const at = this.standing.indexOf(one)
    if (at >= 0) this.standing.splice(at, 1)
  }

  /** The engine answers its oldest watch. */
  answer(error: BrokerError | null = null): void {
    const one = this.standing.shift()
    assert.ok(one !== undefined, 'the engine was asked')
    if (error === null) one.caller.onAvailable()
    else one.caller.onWatchFailed(error)
  }

  wait(name: string, wanted: Partial<EngineWatch> = {}, who: Principal = anonymous, then = (): void => {}): Watch {
    const from = { topic: this.topic, partition: 0, offsetHigh: 0, offsetLow: 0, minBytes: 1 }
    return this.hub.submit(
      who,
      { ...from, ...wanted },
      {
        onAvailable: () => {
          this.heard.push(name)
          then()
        },
        onWatchFailed: error => {
          this.heard.push(`${name} ${error.code}`)
          then()
        }
      }
    )
  }
}

/** What was put off to the end of this step has happened. */
const soon = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

describe('the watches of a broker', () => {
  it('cost the engine one for all who wait for the same, and all of them hear', () => {
    const stage = new Stage()
    for (let i = 0; i < 1000; i++) stage.wait(`${i}`, { offsetLow: 7 })
    assert.deepEqual([stage.asked, stage.hub.count], [1, 1000])
    stage.answer()
    assert.deepEqual(
      stage.heard,
      Array.from({ length: 1000 }, (_, i) => `${i}`)
    )
    assert.deepEqual([stage.standing.length, stage.hub.count], [0, 0])
  })

  it('are not shared by those who wait for something else', () => {
    const stage = new Stage()
    const differences: Partial<EngineWatch>[] = [
      {},
      { partition: 1 },
      { topic: stage.other },
      { offsetLow: 1 },
      { offsetHigh: 1 },
      { minBytes: 2 }
    ]
    for (const wanted of differences) stage.wait(JSON.stringify(wanted), wanted)
    assert.equal(stage.asked, differences.length)
    assert.deepEqual(
      stage.standing.map(({ watch }) => watch.topic.firstHandle + watch.partition),
      [0, 1, 4, 0, 0, 0].map(place => stage.topic.firstHandle + place)
    )
  })

  it('end with the last who waits, and not before', () => {
    const stage = new Stage()
    const [first, second] = [stage.wait('first'), stage.wait('second')]
    first.cancel()
    first.cancel()
    assert.deepEqual([stage.standing.length, stage.hub.count], [1, 1])
    second.cancel()
    assert.deepEqual([stage.standing.length, stage.hub.count], [0, 0])
    stage.wait('third')
    assert.equal(stage.asked, 2, 'what has ended is not waited for')
    stage.answer()
    assert.deepEqual(stage.heard, ['third'])
  })

  it('may be cancelled and made from inside of what hears them', () => {
    const stage = new Stage()
    const others: Watch[] = []
    stage.wait('first', {}, anonymous, () => {
      others[0]?.cancel()
      stage.wait('again')
    })
    others.push(stage.wait('cancelled'))
    stage.wait('last')
    stage.answer()
    assert.deepEqual(stage.heard, ['first', 'last'])
    assert.deepEqual([stage.standing.length, stage.hub.count], [1, 1])
    stage.answer()
    assert.deepEqual(stage.heard, ['first', 'last', 'again'])
  })

  it('that a bug in one caller meets are heard by all others', () => {
    const stage = new Stage()
    stage.wait('first', {}, anonymous, () => {
      throw new Error('a bug')
    })
    stage.wait('second')
    assert.throws(() => stage.answer(), /a bug/)
    assert.deepEqual([stage.heard, stage.hub.count], [['first', 'second'], 0])
  })

  it('say what became of the shard', () => {
    const stage = new Stage()
    stage.wait('first')
    stage.wait('second')
    stage.answer(new BrokerError('SHARD_DOWN', { shard: 0 }))
    assert.deepEqual([stage.heard, stage.hub.count], [['first SHARD_DOWN', 'second SHARD_DOWN'], 0])
  })

  it('of a deleted topic end at once, outside of the deletion, and those of others stand', async () => {
    const stage = new Stage()
    stage.wait('gone')
    const cancelled = stage.wait('cancelled', { partition: 2 })
    stage.wait('other', { topic: stage.other })
    stage.hub.endTopic(stage.topic)
    assert.deepEqual([stage.heard, stage.hub.count, stage.standing.length], [[], 1, 1])
    cancelled.cancel()
    await soon()
    assert.deepEqual(stage.heard, ['gone TOPIC_NOT_FOUND'])
  })

  it('of a revoked key end at once, and those of other keys that wait for the same stand', async () => {
    const stage = new Stage()
    const key = { ...anonymous, keyId: 'key_1', isRevoked: false }
    stage.wait('revoked', {}, key)
    stage.wait('revoked too', { partition: 1 }, key)
    stage.wait('kept')
    key.isRevoked = true
    stage.hub.endRevoked()
    await soon()
    assert.deepEqual(stage.heard, ['revoked KEY_REVOKED', 'revoked too KEY_REVOKED'])
    assert.deepEqual([stage.standing.length, stage.hub.count], [1, 1])
    stage.answer()
    assert.equal(stage.heard.at(-1), 'kept')
  })

  it('are bounded: whoever is too many hears so, unless it gives up before', async () => {
    const stage = new Stage()
    const first = stage.wait('first')
    for (let i = 1; i < limits.watchesMax; i++) stage.wait('x')
    stage.wait('over', { offsetLow: 1 })
    stage.wait('gave up').cancel()
    assert.deepEqual(stage.heard, [])
    await soon()
    assert.deepEqual([stage.heard, stage.hub.count, stage.asked], [['over OVERLOADED'], limits.watchesMax, 1])
    first.cancel()
    stage.wait('room again')
    await soon()
    assert.equal(stage.heard.length, 1)
  })
})

describe('who asks the broker to wait', () => {
  const wanted = { topic: 't', partition: 0, offsetHigh: 0, offsetLow: 0, minBytes: 1 }

  it('is refused as a read would be, in the same order, and never before it has its watch', async () => {
    const stage = new BrokerStage()
    stage.create('t', 2)
    const heard: string[] = []
    const wait = (who: Principal, watch: Partial<typeof wanted>): Watch => {
      const caller = {
        onAvailable: () => void heard.push('available'),
        onWatchFailed: (error: BrokerError) => void heard.push(error.code)
      }
      return stage.broker.submitWatch(who, { ...wanted, ...watch }, caller)
    }
    const stranger = { ...anonymous, isAdmin: false, mayRead: () => false, mayWrite: () => false }
    wait({ ...anonymous, isRevoked: true }, { topic: 'none' })
    wait(stranger, { topic: 'none', partition: 9 })
    wait(anonymous, { topic: 'none', partition: 9 })
    wait(anonymous, { partition: 2 })
    wait(anonymous, { partition: 2 }).cancel()
    assert.deepEqual(heard, [])
    await turn()
    assert.deepEqual(heard, ['KEY_REVOKED', 'FORBIDDEN', 'TOPIC_NOT_FOUND', 'PARTITION_RANGE'])
    const refused = (who: Principal, watch: Partial<typeof wanted>): string | undefined =>
      stage.broker.refusalOfRead(who, { ...wanted, ...watch })?.code
    assert.deepEqual(
      [
        refused(stranger, { topic: 'none' }),
        refused(anonymous, { topic: 'none' }),
        refused(anonymous, { partition: 2 })
      ],
      ['FORBIDDEN', 'TOPIC_NOT_FOUND', 'PARTITION_RANGE']
    )
    assert.equal(refused(anonymous, {}), undefined)
  })

  it('hears of its topic’s end, and pays no quota for waiting', async () => {
    const stage = new BrokerStage()
    stage.create('t')
    const who = keyWith({ produceBytesPerSec: null, consumeBytesPerSec: 10 })
    const heard: string[] = []
    stage.broker.submitWatch(who, wanted, {
      onAvailable: () => void heard.push('available'),
      onWatchFailed: error => void heard.push(error.message)
    })
    stage.quotas.chargeConsume(who, 1000)
    assert.equal(stage.broker.refusalOfRead(who, wanted)?.code, 'RATE_LIMITED')
    await stage.broker.deleteTopic(anonymous, 't')
    await turn()
    assert.deepEqual(heard, [new BrokerError('TOPIC_NOT_FOUND', { topic: 't' }).message])
  })
})
