/**
 * How many partitions a topic has: asked before it is read, and again while it is, as partitions may be added. Any thread
 * with an event loop; one owner. What is older than `metadataMaxAgeMs` is asked again; a question that may pass is put until
 * it is answered.
 *
 * Invariants: one question at a time; after stop() nothing more is told.
 */
import type { BinaryClient } from './binary-client.ts'
import { clientError, clientErrorOf, type ClientError } from './client-error.ts'
import { Bell, type Backoff } from './pauses.ts'
import { NO_SUCH_PARTITION } from './records.ts'
import { spreadOf } from './refusals.ts'
import { untilItSucceeds } from './retries.ts'

/** What a watch asks with, and how often. */
export interface WatchParts {
  readonly client: Pick<BinaryClient, 'consume'>
  /** Pauses while asking fails and may not the next time. */
  readonly reconnect: Backoff
  readonly metadataMaxAgeMs: number
}

export class PartitionWatch {
  readonly #topic: string
  readonly #parts: WatchParts
  #isStopped = false
  readonly #bell = new Bell()

  constructor(topic: string, parts: WatchParts) {
    this.#topic = topic
    this.#parts = parts
  }

  /** @returns how many there are now. Rejects with ClientError: `closed` after stop(). */
  count(): Promise<number> {
    return untilItSucceeds(() => this.#ask(), {
      backoff: this.#parts.reconnect,
      bell: this.#bell,
      isOver: () => this.#isStopped
    })
  }

  /** Asks on and on. @param known how many there are. @param onMore hears the new number whenever they became more. */
  follow(known: number, onMore: (count: number) => void, onFailed: (error: ClientError) => void): void {
    this.#follow(known, onMore).catch((error: unknown) => {
      if (!this.#isStopped) onFailed(clientErrorOf(error))
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#bell.ring()
  }

  async #follow(known: number, onMore: (count: number) => void): Promise<void> {
    let most = known
    for (;;) {
      await this.#bell.wait(this.#parts.metadataMaxAgeMs)
      const count = await this.count()
      if (this.#isStopped) return
      // Fewer: the topic was made anew. Whoever reads one that is gone hears of it.
      if (count <= most) continue
      most = count
      onMore(count)
    }
  }

  /** A read of a partition that no topic has is refused with the number there is. */
  async #ask(): Promise<number> {
    try {
      await this.#parts.client.consume({ topic: this.#topic, partition: NO_SUCH_PARTITION, offset: 0 })
    } catch (error) {
      const failure = clientErrorOf(error)
      const spread = spreadOf(failure.message)
      if (spread === null) throw failure
      return spread.partitionCount
    }
    throw clientError('protocol', 'no', `the broker read partition ${NO_SUCH_PARTITION}`)
  }
}
