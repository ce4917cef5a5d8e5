/**
 * One watch of the local engine: on its way to the shard of its partition, standing there, or over. Main thread.
 *
 *   unsent ──(the reads ring has room)──▶ standing ──▶ over: the shard answered, or died
 *      └──────────── cancel ─▶ over            └── cancel ─▶ UNWATCH, as soon as there is room ──▶ over
 *
 * Invariant: the shard answers every WATCH that it got, so nothing of a cancelled one stays in progress there.
 */
import { assert } from '../base/assert.ts'
import { BrokerError } from '../model/errors.ts'
import { handleOf } from '../model/handles.ts'
import { shardOf } from '../model/ids.ts'
import type { Watch, WatchCaller } from '../model/requests.ts'
import type { PendingRequest } from '../shards/pending.ts'
import type { ShardLink } from '../shards/shard-link.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import { replyTypes } from '../wire/shard/messages.ts'
import type { EngineWatch } from './engine.ts'

/** What it needs of the shards. */
export type WatchedShards = Pick<ShardSet, 'shardCount' | 'linkOf' | 'refusal' | 'publishSoon' | 'whenRoom'>

export class LocalWatch implements PendingRequest, Watch {
  readonly endPosition = -1
  readonly #shards: WatchedShards
  readonly #watch: EngineWatch
  readonly #handle: number
  readonly #caller: WatchCaller
  /** Where it stands; null: nowhere yet. */
  #place: { readonly link: Pick<ShardLink, 'unwatch'>; readonly id: number } | null = null
  #isCancelled = false
  /** The shard is done with it, or never heard of it. */
  #isOver = false

  constructor(shards: WatchedShards, watch: EngineWatch, caller: WatchCaller) {
    this.#shards = shards
    this.#watch = watch
    this.#handle = handleOf(watch.topic, watch.partition)
    this.#caller = caller
  }

  /** Sends it, now or when there is room. The shard is looked up at each attempt: one that died has another link, or none. */
  send(): void {
    if (this.#isCancelled) return
    const link = this.#shards.linkOf(this.#handle)
    if (link === null) {
      const error = this.#shards.refusal(shardOf(this.#handle, this.#shards.shardCount))
      queueMicrotask(() => this.onFailure(error))
      return
    }
    const { partition, offsetHigh, offsetLow, minBytes } = this.#watch
    const id = link.watch([this.#handle, partition, offsetHigh, offsetLow, minBytes], this)
    if (id < 0) {
      this.#shards.whenRoom(() => this.send())
      return
    }
    this.#place = { link, id }
    this.#shards.publishSoon()
  }

  cancel(): void {
    if (this.#isCancelled) return
    this.#isCancelled = true
    this.#unwatch()
  }

  /** An id is another request's once its own is answered: so not after that. */
  #unwatch(): void {
    if (this.#isOver || this.#place === null) return
    if (this.#place.link.unwatch(this.#place.id)) this.#shards.publishSoon()
    else this.#shards.whenRoom(() => this.#unwatch())
  }

  onReply(type: number): void {
    assert(type === replyTypes.available, 'a watch is answered once, by nothing more')
    this.#isOver = true
    if (!this.#isCancelled) this.#caller.onAvailable()
  }

  onFailure(error: BrokerError): void {
    this.#isOver = true
    if (this.#isCancelled) return
    // A shard knows handles, not names.
    const isGone = error.code === 'TOPIC_NOT_FOUND'
    this.#caller.onWatchFailed(isGone ? new BrokerError(error.code, { topic: this.#watch.topic.name }) : error)
  }
}
