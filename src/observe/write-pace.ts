/** How fast each shard wrote its journal of late: looked at from time to time, because a page must not depend on who asked last. Main thread. */

/** Between two looks. */
const LOOK_MS = 5000
/** Looks that are kept: the speed is that of the last ten seconds. */
const LOOKS = 3

interface Look {
  readonly atMs: number
  readonly bytes: ReadonlyMap<number, number>
}

export class WritePace {
  readonly #read: () => ReadonlyMap<number, number>
  readonly #monotonicMs: () => number
  readonly #looks: Look[] = []
  readonly #timer: NodeJS.Timeout

  /** @param read bytes written so far, by shard. */
  constructor(read: () => ReadonlyMap<number, number>, monotonicMs: () => number) {
    this.#read = read
    this.#monotonicMs = monotonicMs
    this.look()
    this.#timer = setInterval(() => this.look(), LOOK_MS)
    this.#timer.unref()
  }

  look(): void {
    this.#looks.push({ atMs: this.#monotonicMs(), bytes: this.#read() })
    if (this.#looks.length > LOOKS) this.#looks.shift()
  }

  /** Since the oldest look that is kept. 0: nothing was written, or the shard began anew. */
  bytesPerSecond(shard: number, bytesNow: number): number {
    const oldest = this.#looks[0]
    if (oldest === undefined) return 0
    const seconds = (this.#monotonicMs() - oldest.atMs) / 1000
    const bytes = bytesNow - (oldest.bytes.get(shard) ?? 0)
    return seconds > 0 && bytes > 0 ? bytes / seconds : 0
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
