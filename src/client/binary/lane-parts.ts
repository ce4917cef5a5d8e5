/** What the lanes of one pipelined client share. */
import type { Flight } from './flight.ts'
import type { Backoff } from './pauses.ts'
import type { Batching } from './options.ts'

export interface LaneParts {
  readonly batching: Batching
  readonly flight: Pick<Flight, 'run' | 'pause'>
  readonly reconnect: Backoff
  /** Of one request, from sending it to its answer. */
  readonly requestTimeoutMs: number
  /** Batches leave as they are, without waiting for more: somebody flushes. */
  readonly isHurried: () => boolean
  /** Bytes of one request, which a quota may make fewer. */
  readonly batchSize: BatchSize
}

/** Bytes of one request: as configured, less while a quota refuses that much at once, and slowly more again. */
export class BatchSize {
  readonly #max: number
  #bytes: number

  constructor(max: number) {
    this.#max = max
    this.#bytes = max
  }

  get bytes(): number {
    return this.#bytes
  }

  /** A batch of so many bytes was refused by a quota. */
  lower(refusedBytes: number): void {
    this.#bytes = Math.max(1, Math.min(this.#bytes, Math.floor(refusedBytes / 2)))
  }

  /** A batch was taken. */
  raise(): void {
    this.#bytes = Math.min(this.#max, Math.ceil(this.#bytes * 1.1))
  }
}
