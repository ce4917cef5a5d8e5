/**
 * The files that a settle job writes: one segment's `.log` at a time, and one pack file. All of them are fresh, or are
 * written behind their committed length, so nobody reads what is written here before the manifest names it (S1).
 * Settler thread, or a tool that holds the lock.
 */
import { dirname } from 'node:path'
import { assert } from '../../base/assert.ts'
import { alignedBuffer } from '../../disk/aligned-memory.ts'
import { DiskError, type Disk, type DiskFile } from '../../disk/disk.ts'
import { AlignedAppender, type AppenderPoints } from '../aligned-appender.ts'
import { packPath } from '../segment-files.ts'
import { packDirectory, type ShardOfEpoch } from '../shard-place.ts'

/** Of one write that bypasses the page cache (measured: 512 KiB to 1 MiB). */
const STAGING_BYTES = 1024 * 1024
/** Pack files kept open while a job reads them: an extent lies in a few of the newest. */
const OPEN_PACKS_MAX = 16
const segmentPoints: AppenderPoints = { read: 'segment.read', write: 'segment.write' }
const packPoints: AppenderPoints = { read: 'pack.read', write: 'pack.write' }

/** Memory of a settler, used for job after job: two stagings. */
export class SettleMemory {
  readonly log: AlignedAppender
  readonly pack: AlignedAppender

  /** @param stagingBytes of whole blocks: the length of a write. */
  constructor(stagingBytes = STAGING_BYTES) {
    this.log = new AlignedAppender(alignedBuffer(stagingBytes))
    this.pack = new AlignedAppender(alignedBuffer(stagingBytes))
  }
}

/** What a job waits for before it goes on; undefined: nothing, it only gives others a turn. */
export type SettleStep = Promise<void> | undefined

/** Where a job writes: the shard whose packs it adds to, and the number of its pack file. */
export interface OutputPlace {
  readonly dataDirectory: string
  readonly shard: ShardOfEpoch
  readonly pack: number
  /** Logs are synced off this thread: awaitSyncs() says when. Default: where they are ended. */
  readonly syncsLater?: boolean
}

export class SettleOutput {
  readonly #disk: Disk
  readonly #dataDirectory: string
  readonly #shard: ShardOfEpoch
  readonly #memory: SettleMemory
  /** Number of the job's pack file. */
  readonly pack: number
  #packFile: DiskFile | null = null
  #logFile: DiskFile | null = null
  /** Pack files that are read, oldest first. */
  readonly #packs = new Map<number, DiskFile>()
  /** Paths made by this job, to be taken away if it fails. */
  readonly #made: string[] = []
  /** Directories whose names are to be synced before the commit; absolute. */
  readonly #dirty = new Set<string>()
  /** False once a file was refused to bypass the page cache. */
  isDirect = true
  writtenBytes = 0

  /** Logs that are being synced off this thread. */
  readonly #syncs: Promise<void>[] = []
  #failure: Error | null = null
  readonly #syncsLater: boolean

  constructor(disk: Disk, place: OutputPlace, memory: SettleMemory) {
    this.#syncsLater = place.syncsLater ?? false
    this.#disk = disk
    this.#dataDirectory = place.dataDirectory
    this.#shard = place.shard
    this.pack = place.pack
    this.#memory = memory
  }

  get hasPack(): boolean {
    return this.#packFile !== null
  }

  /** Where the next byte of the pack goes. */
  get packPosition(): number {
    return this.#packFile === null ? 0 : this.#memory.pack.position
  }

  /** The first byte makes the pack file. */
  appendPack(source: Buffer, start: number, end: number): void {
    if (this.#packFile === null) {
      this.#packFile = this.#create('pack.create', packPath(this.#shard, this.pack), packDirectory(this.#shard))
      this.#memory.pack.begin(this.#packFile, packPoints, 0)
    }
    this.#memory.pack.append(source, start, end)
    this.writtenBytes += end - start
  }

  /** Begins to write a segment's `.log` behind its committed bytes; 0: it is new. @param path relative to the data directory. */
  beginLog(path: string, committedBytes: number): void {
    assert(this.#logFile === null, 'one log at a time')
    this.#logFile =
      committedBytes === 0
        ? this.#create('segment.create', path, dirname(path))
        : this.#disk.openDirect('segment.open', this.#absolute(path))
    this.#memory.log.begin(this.#logFile, segmentPoints, committedBytes)
  }

  /** Where the next byte of the log goes. */
  get logPosition(): number {
    return this.#memory.log.position
  }

  appendLog(source: Buffer, start: number, end: number): void {
    this.#memory.log.append(source, start, end)
    this.writtenBytes += end - start
  }

  /** Ends the log, synced. @param cuts it gets no more bytes: its file ends where they do. */
  endLog(cuts: boolean): void {
    const file = this.#logFile
    assert(file !== null, 'a log was begun')
    const length = this.#memory.log.finish()
    if (!file.isDirect) this.isDirect = false
    if (cuts) file.truncate('segment.truncate', length)
    this.#logFile = null
    this.#sync(file, 'segment.sync')
  }

  /** Syncs and closes a file: here, or off this thread. */
  #sync(file: DiskFile, point: 'segment.sync' | 'quarantine.sync'): void {
    if (!this.#syncsLater) {
      try {
        file.sync(point)
      } finally {
        file.close()
      }
      return
    }
    const end = (failure: Error | null): void => {
      this.#failure ??= failure
      file.close()
    }
    const synced = file.syncLater(point)
    this.#syncs.push(
      synced.then(
        () => end(null),
        (failure: Error) => end(failure)
      )
    )
  }

  /** Waits until at most so many logs are still being synced. @throws DiskError if one was refused. */
  *awaitSyncs(most: number): Generator<SettleStep, void, undefined> {
    while (this.#syncs.length > most) {
      yield this.#syncs.shift()
      if (this.#failure !== null) throw this.#failure
    }
  }

  /** Takes the log away that was begun new and got no byte. */
  dropLog(): void {
    const file = this.#logFile
    assert(file !== null && this.#memory.log.position === 0, 'an empty log was begun')
    this.#logFile = null
    file.close()
    this.#disk.remove('segment.remove', file.path)
    this.#made.splice(this.#made.indexOf(file.path), 1)
  }

  /** Writes a small file whole, synced. What stood there was never committed. */
  writeFile(path: string, bytes: Buffer, kind: 'segment' | 'quarantine' = 'segment'): void {
    const absolute = this.#absolute(path)
    this.#makeDirectory(dirname(path))
    this.#removeLeftover(absolute)
    const file = this.#disk.create(`${kind}.create`, absolute)
    this.#made.push(absolute)
    this.#dirty.add(dirname(absolute))
    try {
      file.write(`${kind}.write`, bytes, 0, bytes.length, 0)
    } catch (error) {
      file.close()
      throw error
    }
    this.#sync(file, `${kind}.sync`)
    this.writtenBytes += bytes.length
  }

  /** Reads committed bytes of a pack file. */
  readPack(pack: number, target: Buffer, position: number): void {
    let file = this.#packs.get(pack)
    if (file === undefined) {
      file = this.#disk.open('pack.open', this.#absolute(packPath(this.#shard, pack)))
      this.#packs.set(pack, file)
      this.#closePacks(OPEN_PACKS_MAX)
    }
    const read = file.read('pack.read', target, 0, target.length, position)
    if (read !== target.length) throw new DiskError('EIO', 'pack.read', `${file.path} ends before its committed length`)
  }

  /** Closes the pack files that were read, all but the `kept` newest. */
  #closePacks(kept: number): void {
    for (const [pack, file] of this.#packs) {
      if (this.#packs.size <= kept) return
      this.#packs.delete(pack)
      file.close()
    }
  }

  /** All that was written is durable on return, names included. */
  finish(): void {
    assert(this.#logFile === null && this.#syncs.length === 0, 'all logs were ended and are synced')
    if (this.#packFile !== null) {
      this.#memory.pack.finish()
      if (!this.#packFile.isDirect) this.isDirect = false
      this.#packFile.sync('pack.sync')
      this.#packFile.close()
      this.#packFile = null
    }
    this.#closePacks(0)
    for (const directory of this.#dirty) this.#disk.syncDirectory('segment.directory-sync', directory)
    this.#dirty.clear()
  }

  /** The job failed before its commit: what it made is taken away, as far as the disk lets it. @returns what it did not. */
  abandon(): unknown[] {
    const refused: unknown[] = []
    const attempt = (action: () => void): void => {
      try {
        action()
      } catch (error) {
        refused.push(error)
      }
    }
    attempt(() => this.#closePacks(0))
    for (const file of [this.#logFile, this.#packFile]) if (file !== null) attempt(() => file.close())
    this.#logFile = null
    this.#packFile = null
    for (const path of this.#made) attempt(() => this.#disk.remove('segment.remove', path))
    return refused
  }

  #create(point: 'segment.create' | 'pack.create', path: string, directory: string): DiskFile {
    this.#makeDirectory(directory)
    const absolute = this.#absolute(path)
    this.#removeLeftover(absolute)
    const file = this.#disk.createDirect(point, absolute)
    this.#made.push(absolute)
    this.#dirty.add(dirname(absolute))
    return file
  }

  /** A job that did not reach its commit may have left it: no manifest names it, and its data is in the slots at hand. */
  #removeLeftover(absolute: string): void {
    if (this.#disk.exists(absolute)) this.#disk.remove('segment.remove', absolute)
  }

  /** Makes a directory below the data directory, and those above it. Their names become durable in finish(). */
  #makeDirectory(path: string): void {
    const absolute = this.#absolute(path)
    const parent = dirname(path)
    // Those that are there, too: perhaps made by a process that was killed before it synced their names.
    if (parent !== '.') this.#makeDirectory(parent)
    this.#dirty.add(dirname(absolute))
    if (this.#disk.exists(absolute)) return
    try {
      this.#disk.makeDirectory('segment.directory', absolute)
    } catch (error) {
      // Another shard's settling shares the parents.
      if (!(error instanceof DiskError) || error.code !== 'EEXIST') throw error
    }
  }

  #absolute(path: string): string {
    return `${this.#dataDirectory}/${path}`
  }
}
