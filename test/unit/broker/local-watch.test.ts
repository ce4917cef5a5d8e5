/** A watch of the local engine: whatever happens, its shard keeps nothing of it, and its caller hears once or never. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LocalWatch, type WatchedShards } from '../../../src/broker/local-watch.ts'
import { Catalog } from '../../../src/control/catalog.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { PendingTable, type PendingRequest } from '../../../src/shards/pending.ts'
import type { ShardLink } from '../../../src/shards/shard-link.ts'
import { replyTypes } from '../../../src/wire/shard/messages.ts'
import { create, emptyImage } from '../control/topics.ts'

class Stage {
  readonly pending = new PendingTable()
  /** What the reads ring took, in order. */
  readonly sent: string[] = []
  readonly heard: string[] = []
  isFull: boolean
  isDown: boolean
  turns = 0
  readonly #roomWaiters: (() => void)[] = []
  readonly watch: LocalWatch

  constructor({ isFull = false, isDown = false } = {}) {
    this.isFull = isFull
    this.isDown = isDown
    const link = {
      watch: (numbers: readonly number[], request: PendingRequest) => {
        if (this.isFull) return -1
        this.sent.push(`watch ${numbers.join()}`)
        return this.pending.add(request)
      },
      unwatch: (id: number) => {
        if (!this.isFull) this.sent.push(`unwatch ${id}`)
        return !this.isFull
      }
    } as unknown as ShardLink
    const shards: WatchedShards = {
      shardCount: 1,
      linkOf: () => (this.isDown ? null : link),
      refusal: shard => new BrokerError('SHARD_DOWN', { shard }),
      publishSoon: () => void this.turns++,
      whenRoom: callback => void this.#roomWaiters.push(callback)
    }
    const topic = create(new Catalog(emptyImage), 't', 3)
    const wanted = { topic, partition: 2, offsetHigh: 3, offsetLow: 4, minBytes: 5 }
    this.watch = new LocalWatch(shards, wanted, {
      onAvailable: () => void this.heard.push('available'),
      onWatchFailed: error => void this.heard.push(error.message)
    })
    this.watch.send()
  }

  makeRoom(): void {
    this.isFull = false
    for (const callback of this.#roomWaiters.splice(0)) callback()
  }

  /** The shard answers, as a link delivers it. */
  answer(error: BrokerError | null = null): void {
    const request = this.pending.get(0)
    this.pending.remove(0)
    if (error === null) request.onReply(replyTypes.available, Buffer.alloc(0), 0, 0, true)
    else request.onFailure(error)
  }

  get roomWaiters(): number {
    return this.#roomWaiters.length
  }
}

const soon = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

describe('a watch of the local engine', () => {
  it('asks the shard of its partition with all that it waits for', () => {
    const stage = new Stage()
    const [message] = stage.sent
    assert.match(message ?? '', /^watch \d+,2,3,4,5$/)
    stage.answer()
    assert.deepEqual([stage.heard, stage.turns, stage.pending.count], [['available'], 1, 0])
  })

  it('that is cancelled has the shard answer it, and its caller hears nothing', () => {
    const stage = new Stage()
    stage.watch.cancel()
    stage.watch.cancel()
    assert.deepEqual([stage.sent[1], stage.sent.length, stage.turns], ['unwatch 0', 2, 2])
    stage.answer()
    assert.deepEqual([stage.heard, stage.pending.count], [[], 0])
  })

  it('that is cancelled when it was answered sends nothing: its id may be another request by now', () => {
    const stage = new Stage()
    stage.answer()
    stage.watch.cancel()
    assert.equal(stage.sent.length, 1)
  })

  it('that finds no room is sent when there is some, unless it is cancelled before', () => {
    const stage = new Stage({ isFull: true })
    assert.deepEqual([stage.sent, stage.roomWaiters], [[], 1])
    stage.makeRoom()
    assert.equal(stage.sent.length, 1)
    const gone = new Stage({ isFull: true })
    gone.watch.cancel()
    gone.makeRoom()
    assert.deepEqual([gone.sent, gone.roomWaiters], [[], 0])
  })

  it('that is cancelled while there is no room is taken back when there is', () => {
    const stage = new Stage()
    stage.isFull = true
    stage.watch.cancel()
    assert.deepEqual([stage.sent.length, stage.roomWaiters], [1, 1])
    stage.makeRoom()
    assert.equal(stage.sent[1], 'unwatch 0')
  })

  it('of a shard that is down fails, but never before its caller has it', async () => {
    const stage = new Stage({ isDown: true })
    assert.deepEqual(stage.heard, [])
    await soon()
    assert.deepEqual(stage.heard, [new BrokerError('SHARD_DOWN', { shard: 0 }).message])
    const gone = new Stage({ isDown: true })
    gone.watch.cancel()
    await soon()
    assert.deepEqual([gone.heard, gone.sent], [[], []])
  })

  it('looks for its shard anew when it is sent later: that may be down by then', async () => {
    const stage = new Stage({ isFull: true })
    stage.isDown = true
    stage.makeRoom()
    await soon()
    assert.deepEqual(stage.heard, [new BrokerError('SHARD_DOWN', { shard: 0 }).message])
  })

  it('is not taken back any more if it is answered while there is no room for that', () => {
    const stage = new Stage()
    stage.isFull = true
    stage.watch.cancel()
    stage.answer()
    stage.makeRoom()
    assert.deepEqual([stage.sent.length, stage.heard], [1, []])
  })

  it('names the topic that the shard knows by number only', () => {
    const stage = new Stage()
    stage.answer(new BrokerError('TOPIC_NOT_FOUND', {}))
    assert.deepEqual(stage.heard, [new BrokerError('TOPIC_NOT_FOUND', { topic: 't' }).message])
  })

  it('hears that its shard died while it stood', () => {
    const stage = new Stage()
    for (const request of stage.pending.takeAll()) request.onFailure(new BrokerError('SHARD_DOWN', { shard: 0 }))
    assert.deepEqual(stage.heard, [new BrokerError('SHARD_DOWN', { shard: 0 }).message])
    stage.watch.cancel()
    assert.equal(stage.sent.length, 1)
  })
})
