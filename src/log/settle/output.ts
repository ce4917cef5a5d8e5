/**
 * The files that a settle job writes: one segment's `.log` at a time, and one pack file. All of them are fresh, or are
 * written behind their committed length, so nobody reads what is written here before the manifest names it (S1).
 * Settler thread, or a tool that holds the lock.
 */
import { dirname } from 'node:path'
import { assert } from '../../base/assert.ts'
import { DiskError, type Disk, type DiskFile } from '../../disk/disk.ts'
import type { AlignedAppender, AppenderPoints } from '../aligned-appender.ts'
import { packPath } from '../segment-files.ts'
import { packDirectory, type ShardOfEpoch } from '../shard-place.ts'
import { PackReader } from './pack-reader.ts'
import type { SettleMemory } from './settle-memory.ts'

const segmentPoints: AppenderPoints = { read: 'segment.read', write: 'segment.write' }
const packPoints: AppenderPoints = { read: 'pack.read', write: 'pack.write' }

/** What a job waits for before it goes on; undefined: nothing, it only gives others a turn. */
export type SettleStep = Promise<void> | undefined

/** Where a job writes: the shard whose packs it adds to, and the number of its pack file. */
export interface OutputPlace {
  readonly dataDirectory: string
  readonly shard: ShardOfEpoch
  readonly pack: number
  /** Logs are synced off this thread: awaitSyncs() says when. Default: where they are ended. */
  readonly syncsLater?: boolean
  /** What the device does not read of packs is zeros. Default: it ends the job. */
  readonly givesUpUnread?: boolean
}

/** The log that is being written: its path from the data directory, and the appender that is its own meanwhile. */
interface WrittenLog {
  readonly path: string
  readonly file: DiskFile
  readonly appender: AlignedAppender
}

export class SettleOutput {
  readonly #disk: Disk
  readonly #dataDirectory: string
  readonly #shard: ShardOfEpoch
  readonly #memory: SettleMemory
  /** Number of the job's pack file. */
  readonly pack: number
  #packFile: DiskFile | null = null
  #log: WrittenLog | null = null
  readonly #packs: PackReader
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
    const pathOf = (pack: number): string => this.#absolute(packPath(place.shard, pack))
    this.#packs = new PackReader(disk, pathOf, place.givesUpUnread ?? false)
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
    assert(this.#log === null, 'one log at a time')
    const file =
      committedBytes === 0
        ? this.#create('segment.create', path, dirname(path))
        : this.#disk.openDirect('segment.open', this.#absolute(path))
    const appender = this.#memory.takeLog()
    this.#log = { path, file, appender }
    const tail = this.#memory.tails.take(this.#disk, path, committedBytes)
    appender.begin(file, segmentPoints, committedBytes, { tail, isLater: this.#syncsLater })
  }

  /** Before beginLog: waits until there is memory for another log. */
  *awaitMemory(): Generator<SettleStep, void, undefined> {
    for (let wait = this.#memory.busy; wait !== null; wait = this.#memory.busy) yield wait
  }

  /** Where the next byte of the log goes. */
  get logPosition(): number {
    return this.#writing().appender.position
  }

  appendLog(source: Buffer, start: number, end: number): void {
    this.#writing().appender.append(source, start, end)
    this.writtenBytes += end - start
  }

  /** Ends the log, synced. @param cuts it gets no more bytes: its file ends where they do. */
  endLog(cuts: boolean): void {
    const { path, file, appender } = this.#writing()
    const length = appender.position
    const tail = appender.copyTail()
    if (!cuts) this.#memory.tails.keep(this.#disk, path, length, tail)
    const cut = (): void => {
      if (!file.isDirect) this.isDirect = false
      if (cuts) file.truncate('segment.truncate', length)
    }
    if (this.#syncsLater) {
      this.#log = null
      this.#closeLater(
        file,
        appender.finishLater().then(() => {
          cut()
          return file.syncLater('segment.sync')
        })
      )
      return
    }
    appender.finish()
    cut()
    this.#log = null
    this.#sync(file, 'segment.sync')
  }

  #writing(): WrittenLog {
    assert(this.#log !== null, 'a log was begun')
    return this.#log
  }

  /** Syncs and closes a file: here, or off this thread. */
  #sync(file: DiskFile, point: 'segment.sync' | 'quarantine.sync'): void {
    if (this.#syncsLater) return this.#closeLater(file, file.syncLater(point))
    try {
      file.sync(point)
    } finally {
      file.close()
    }
  }

  #closeLater(file: DiskFile, synced: Promise<void>): void {
    const end = (failure: Error | null): void => {
      this.#failure ??= failure
      file.close()
    }
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
    const { file, appender } = this.#writing()
    assert(appender.position === 0, 'an empty log was begun')
    this.#log = null
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

  /** Reads committed bytes of a pack file. @throws DiskError as PackReader does. */
  readPack(pack: number, target: Buffer, position: number): void {
    this.#packs.read(pack, target, position)
  }

  /** All that was written is durable on return, names included. */
  finish(): void {
    assert(this.#log === null && this.#syncs.length === 0, 'all logs were ended and are synced')
    if (this.#packFile !== null) {
      this.#memory.pack.finish()
      if (!this.#packFile.isDirect) this.isDirect = false
      this.#packFile.sync('pack.sync')
      this.#packFile.close()
      this.#packFile = null
    }
    this.#packs.close()
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
    attempt(() => this.#packs.close())
    this.#memory.tails.clear()
    const log = this.#log
    if (log !== null) {
      // Never closed under a write: its number could name another file by then.
      const { landed } = log.appender
      if (landed === null) attempt(() => log.file.close())
      else void landed.then(() => log.file.close())
    }
    const pack = this.#packFile
    if (pack !== null) attempt(() => pack.close())
    this.#log = null
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
