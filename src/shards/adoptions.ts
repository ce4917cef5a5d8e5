/** Commits of the settler that a shard has not adopted yet: until then it may read files that they leave unused. Main thread. */
export class Adoptions {
  /** By shard; absent: none. */
  readonly #open = new Map<number, number>()

  isOpen(shard: number): boolean {
    return this.#open.has(shard)
  }

  /** Counts the commit until `adopted` ends, and ends as it does. */
  async during(shard: number, adopted: Promise<void>): Promise<void> {
    this.#open.set(shard, (this.#open.get(shard) ?? 0) + 1)
    try {
      await adopted
    } finally {
      const left = (this.#open.get(shard) ?? 1) - 1
      if (left > 0) this.#open.set(shard, left)
      else this.#open.delete(shard)
    }
  }
}
