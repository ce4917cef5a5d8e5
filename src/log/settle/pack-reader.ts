/**
 * Reads what earlier jobs put into pack files: extents that leave them, and block entries. Settler thread, or a tool that
 * holds the lock. Few files are open at once.
 *
 * A device that fails a read ends the job: what cannot be read now may be read later. Only a job that is told to give up
 * goes on, with zeros for what it cannot read, each block tried alone: whoever checks the bytes finds them damaged.
 */
import { DiskError, type Disk, type DiskFile } from '../../disk/disk.ts'
import { limits } from '../../model/limits.ts'
import { BLOCK_BYTES } from '../slot-format.ts'

/** Pack files kept open while a job reads them: an extent lies in a few of the newest. */
const OPEN_PACKS_MAX = 16

/** True if the device failed to read a pack, or it ends too early: later it may be otherwise, or never. */
export function isUnreadPack(error: unknown): boolean {
  return error instanceof DiskError && error.code === 'EIO' && error.point === 'pack.read'
}

export class PackReader {
  readonly #disk: Disk
  readonly #pathOf: (pack: number) => string
  readonly #givesUp: boolean
  /** Oldest first. */
  readonly #open = new Map<number, DiskFile>()

  /** @param pathOf absolute. @param givesUp zeros stand for what the device does not read. */
  constructor(disk: Disk, pathOf: (pack: number) => string, givesUp: boolean) {
    this.#disk = disk
    this.#pathOf = pathOf
    this.#givesUp = givesUp
  }

  /** Fills `target` with committed bytes. @throws DiskError; of those of isUnreadPack only one that does not give up. */
  read(pack: number, target: Buffer, position: number): void {
    let file = this.#open.get(pack)
    if (file === undefined) {
      file = this.#disk.open('pack.open', this.#pathOf(pack))
      this.#open.set(pack, file)
      this.close(OPEN_PACKS_MAX)
    }
    if (isFilled(file, target, position, this.#givesUp)) return
    for (let start = 0; start < target.length;) {
      const end = Math.min(target.length, start + BLOCK_BYTES - ((position + start) % BLOCK_BYTES))
      const block = target.subarray(start, end)
      let reads = 1
      while (!isFilled(file, block, position + start, true) && reads < limits.unreadRunReads) reads++
      start = end
    }
  }

  /** Closes the files that were read, all but the `kept` newest. */
  close(kept = 0): void {
    for (const [pack, file] of this.#open) {
      if (this.#open.size <= kept) return
      this.#open.delete(pack)
      file.close()
    }
  }
}

/** @returns false: the device does not read it, or the file ends before; `target` is zeros. */
function isFilled(file: DiskFile, target: Buffer, position: number, givesUp: boolean): boolean {
  try {
    const read = file.read('pack.read', target, 0, target.length, position)
    if (read === target.length) return true
    throw new DiskError('EIO', 'pack.read', `${file.path} ends before its committed length`)
  } catch (error) {
    if (!givesUp || !isUnreadPack(error)) throw error
    target.fill(0)
    return false
  }
}
