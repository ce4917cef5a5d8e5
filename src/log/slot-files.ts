/**
 * The slot files of one shard: names, spares, and the open file handles. Shard thread only.
 *
 * A file is `NNNN.slot`; while zeros are written it is `NNNN.filling`, renamed and made durable when it is full, so a
 * `.slot` with a blank header is a filled spare. Files keep their names when they are used again.
 */
import { assert } from '../base/assert.ts'
import { DiskError, type Disk, type DiskFile } from '../disk/disk.ts'

/** Sealed slots kept open for reading; the least recently read is closed first. */
const OPEN_FILES_MAX = 64
const FILL_PIECE_BYTES = 1024 * 1024

export interface SpareSlot {
  readonly name: string
  readonly capacityBytes: number
  /** Bytes lie under it: writing it grows nothing. */
  readonly isFilled: boolean
  /** Zeros stand where the header goes; else those of an earlier use, which go first. */
  readonly isBlank: boolean
}

/** Name of the slot file with that number. */
export function slotFileName(number: number): string {
  return `${String(number).padStart(4, '0')}.slot`
}

/** Number in the name of a slot file. */
export function slotFileNumber(name: string): number {
  return Number.parseInt(name, 10)
}

export class SlotFiles {
  readonly directory: string
  readonly #disk: Disk
  /** By ordinal: the name of every slot that holds groups. An ordinal is never given again. */
  readonly #names = new Map<number, string>()
  #nextOrdinal = 0
  /** Open handles by ordinal, least recently used first. */
  readonly #open = new Map<number, DiskFile>()
  #spares: SpareSlot[] = []
  /** Names of files that hold nothing and are to go. A start takes those that are left for spares. */
  #unremoved: string[] = []
  /** Size of the spare that is kept for the next start; 0: none is. */
  #reserveBytes = 0
  /** Taken by a start alone: while the shard runs it is no spare. */
  #reserve: SpareSlot | null = null
  #nextNumber = 1

  constructor(disk: Disk, directory: string) {
    this.#disk = disk
    this.directory = directory
  }

  get spareBytes(): number {
    return this.#spares.reduce((sum, spare) => sum + spare.capacityBytes, 0)
  }

  get spareCount(): number {
    return this.#spares.length
  }

  path(name: string): string {
    return `${this.directory}/${name}`
  }

  /** A name that no file has had. */
  drawName(): string {
    return slotFileName(this.#nextNumber++)
  }

  /** Keeps drawName above a name found on disk. */
  noteName(name: string): void {
    const number = slotFileNumber(name)
    if (number >= this.#nextNumber) this.#nextNumber = number + 1
  }

  /** A spare of the size that is kept for the next start is, if there is none yet. */
  addSpare(spare: SpareSlot): void {
    if (this.lacksReserve && spare.capacityBytes === this.#reserveBytes) this.#reserve = spare
    else this.#spares.push(spare)
  }

  /**
   * From now on one spare of exactly that size is kept for the next start, which may find the disk full. What a start
   * itself needs it takes before.
   */
  keepReserve(bytes: number): void {
    assert(this.#reserveBytes === 0, 'the size is chosen once')
    this.#reserveBytes = bytes
    for (const spare of this.#spares.splice(0)) this.addSpare(spare)
  }

  /** Size of the spare that is kept for the next start; 0: none is. */
  get reserveBytes(): number {
    return this.#reserveBytes
  }

  /** True if one is to be kept and there is none. */
  get lacksReserve(): boolean {
    return this.#reserveBytes > 0 && this.#reserve === null
  }

  /** The most recently freed spare that is large enough: few pages stay warm at low load (W9). */
  takeSpare(neededBytes: number): SpareSlot | null {
    for (let i = this.#spares.length - 1; i >= 0; i--) {
      const spare = this.#spares[i]
      if (spare === undefined || spare.capacityBytes < neededBytes) continue
      this.#spares.splice(i, 1)
      return spare
    }
    return null
  }

  /** Makes a file with no zeros in it: for when no spare is ready. */
  createUnfilled(capacityBytes: number): SpareSlot {
    const name = this.drawName()
    this.#disk.create('slot.create', this.path(name)).close()
    this.#disk.syncDirectory('journal.directory-sync', this.directory)
    return { name, capacityBytes, isFilled: false, isBlank: true }
  }

  /** Gives the file of a slot that now holds groups its ordinal. */
  openForWriting(spare: SpareSlot): { file: DiskFile; ordinal: number } {
    const ordinal = this.register(spare.name)
    return { file: this.file(ordinal), ordinal }
  }

  /** Ordinal for a slot found at recovery. */
  register(name: string): number {
    const ordinal = this.#nextOrdinal++
    this.#names.set(ordinal, name)
    return ordinal
  }

  /**
   * The slot of that ordinal holds nothing any more. A file of another size than slots have now is taken away by
   * the next removeUnused().
   */
  free(ordinal: number, capacityBytes: number, slotBytes: number): void {
    const name = this.#forget(ordinal)
    const isReserve = this.lacksReserve && capacityBytes === this.#reserveBytes
    if (capacityBytes === slotBytes || isReserve) this.addSpare({ name, capacityBytes, isFilled: true, isBlank: false })
    else this.#unremoved.push(name)
  }

  /** Takes away the files that free() leaves. @returns the first refusal; those files are tried again by the next call. */
  removeUnused(): DiskError | null {
    let refusal: DiskError | null = null
    this.#unremoved = this.#unremoved.filter(name => {
      try {
        this.#disk.remove('slot.remove', this.path(name))
        return false
      } catch (error) {
        if (!(error instanceof DiskError)) throw error
        // Somebody else took it away.
        if (error.code === 'ENOENT') return false
        refusal ??= error
        return true
      }
    })
    return refusal
  }

  /** Durably takes away a slot whose header could not be written: half a header may look like a whole one. */
  discard(ordinal: number): void {
    const name = this.#forget(ordinal)
    this.#disk.remove('slot.remove', this.path(name))
    this.#disk.syncDirectory('journal.directory-sync', this.directory)
  }

  nameOf(ordinal: number): string {
    const name = this.#names.get(ordinal)
    assert(name !== undefined, 'a slot that exists')
    return name
  }

  #forget(ordinal: number): string {
    const name = this.nameOf(ordinal)
    this.#open.get(ordinal)?.close()
    this.#open.delete(ordinal)
    this.#names.delete(ordinal)
    return name
  }

  /** Slots that were ever registered, those that are free again included. */
  get slotCount(): number {
    return this.#nextOrdinal
  }

  /**
   * The open handle of a slot; opened if it is not, closing the one unused for longest.
   * @throws DiskError; ENOENT for a slot that is free again: a reader of a topic that was deleted meanwhile may still ask.
   */
  file(ordinal: number): DiskFile {
    let file = this.#open.get(ordinal)
    if (file !== undefined) {
      if (this.#open.size > 1) {
        this.#open.delete(ordinal)
        this.#open.set(ordinal, file)
      }
      return file
    }
    const name = this.#names.get(ordinal)
    if (name === undefined)
      throw new DiskError('ENOENT', 'slot.open', `slot ${ordinal} of ${this.directory} is free again`)
    file = this.#disk.open('slot.open', this.path(name))
    this.#open.set(ordinal, file)
    // The slot being written is the newest ordinal: it is never the one to close.
    if (this.#open.size > OPEN_FILES_MAX) this.#closeOldest(this.#nextOrdinal - 1)
    return file
  }

  closeAll(): void {
    for (const file of this.#open.values()) file.close()
    this.#open.clear()
  }

  #closeOldest(keptOrdinal: number): void {
    for (const [ordinal, file] of this.#open) {
      if (ordinal === keptOrdinal) continue
      this.#open.delete(ordinal)
      file.close()
      return
    }
  }
}

/** Writes one spare slot of zeros under a temporary name, syncs it, gives it its name durably. Blocks; any thread. */
export function fillSlot(disk: Disk, directory: string, name: string, bytes: number): void {
  const filler = beginFill(disk, directory, name, bytes)
  while (!filler.step()) continue
}

/**
 * A fill in steps of 1 MiB, each synced: small background syncs are what keeps the writer's latency low (W9).
 * @throws DiskError from begin and step; then nothing of it is left on the disk.
 */
export function beginFill(
  disk: Disk,
  directory: string,
  name: string,
  bytes: number
): { step(): boolean; abandon(): void } {
  const fillingPath = `${directory}/${name.replace(/\.slot$/, '.filling')}`
  if (disk.exists(fillingPath)) disk.remove('slot.remove', fillingPath)
  const file = disk.create('slot.create', fillingPath)
  const zeros = Buffer.alloc(Math.min(FILL_PIECE_BYTES, bytes))
  let at = 0
  const writePiece = (): void => {
    const end = Math.min(bytes, at + zeros.length)
    file.write('slot.fill', zeros, 0, end - at, at)
    file.sync('slot.fill-sync')
    at = end
  }
  return {
    abandon() {
      file.close()
      disk.remove('slot.remove', fillingPath)
    },
    step() {
      try {
        writePiece()
      } catch (error) {
        // A full disk must not stay full of zeros that nobody will finish.
        file.close()
        disk.remove('slot.remove', fillingPath)
        throw error
      }
      if (at < bytes) return false
      file.close()
      disk.rename('slot.rename', fillingPath, `${directory}/${name}`)
      disk.syncDirectory('journal.directory-sync', directory)
      return true
    }
  }
}
