/**
 * The last, partial blocks of files that a settler goes on with, kept from one job to the next: a direct file can only be
 * continued at a whole block, and reading that block back costs each file a wait for the disk. Settler thread.
 *
 *   file  │ whole blocks │ tail ··│      a tail is the committed bytes behind the last whole block
 *
 * Invariants: a tail counts only for exactly the length it was kept for, and is forgotten with the job that wrote it if
 * that one fails. Missing ones are read. At most TAILS_MAX of them (4 KiB each): the oldest goes first.
 */
import { DIRECT_BLOCK_BYTES } from '../disk/aligned-memory.ts'
import type { Disk } from '../disk/disk.ts'

/** 8 MiB in all. With more partitions than that most of them lie in packs, which are never continued. */
const TAILS_MAX = 2048

interface Tail {
  readonly length: number
  readonly bytes: Buffer
}

export class TailBlocks {
  readonly #tails = new Map<string, Tail>()

  /** Whose files they are of. */
  #disk: Disk | null = null

  /** Takes the tail of a file of `length` committed bytes out, or null. */
  take(disk: Disk, path: string, length: number): Buffer | null {
    if (disk !== this.#disk) return null
    const tail = this.#tails.get(path)
    if (tail === undefined) return null
    this.#tails.delete(path)
    return tail.length === length ? tail.bytes : null
  }

  /** @param bytes a copy, from the last whole block to the end of the file of `length` bytes. */
  keep(disk: Disk, path: string, length: number, bytes: Buffer): void {
    if (disk !== this.#disk) this.#tails.clear()
    this.#disk = disk
    if (bytes.length === 0 || bytes.length !== length % DIRECT_BLOCK_BYTES) return
    this.#tails.delete(path)
    this.#tails.set(path, { length, bytes })
    for (const oldest of this.#tails.keys()) {
      if (this.#tails.size <= TAILS_MAX) return
      this.#tails.delete(oldest)
    }
  }

  clear(): void {
    this.#tails.clear()
  }
}
