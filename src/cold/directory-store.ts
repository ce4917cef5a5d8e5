/**
 * Objects as files below a directory (`--cold-storage-dir`), which may be on another disk or on a network. Over Disk,
 * so synchronous in pieces: for a thread that may block, not for the main one.
 *
 *   <directory>/+incoming/<uuid>.part          being written; no key has this form; swept at the next start
 *   <directory>/orders~17/3/000…042.log        renamed to there once it is synced and was read back
 *
 * Invariants: a name with the form of a key is a whole object. A put has returned only when the object's bytes, its
 * name and the names of its folders are durable. The read back goes past the page cache where the file system allows.
 * `+incoming` also marks the directory as a store: without it (a disk that is not mounted) nothing is called missing.
 */
import { randomUUID } from 'node:crypto'
import { dirname } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { assert } from '../base/assert.ts'
import { crc32c } from '../base/crc32c.ts'
import { alignedBuffer } from '../disk/aligned-memory.ts'
import { DiskError, type Disk, type DiskFile } from '../disk/disk.ts'
import { checkFolder, checkKey, isFolderPart, isObjectName } from './keys.ts'
import { ColdError, READ_BYTES_MAX, type ColdErrorCode, type ObjectStore, type ReadObject } from './object-store.ts'
import {
  FILE_PIECE_BYTES,
  assertObjectSize,
  checkLocal,
  compareRead,
  listKey,
  measure,
  readLocal,
  removeLeftover,
  tooLarge,
  writeNew,
  wrongSize
} from './pieces.ts'

const INCOMING_NAME = '+incoming'
const INCOMING_ENDING = '.part'

/** What a person must change. Other errors (EIO, ENOSPC, EMFILE, ESTALE, …) may pass. */
const refusals: readonly string[] = ['EACCES', 'EPERM', 'EROFS', 'EISDIR', 'ELOOP', 'ENAMETOOLONG', 'EEXIST']

export interface DirectoryStoreOptions {
  readonly disk: Disk
  /** Absolute, without a slash at its end; made at the first put if it is not there. */
  readonly directory: string
}

/** A store below a directory. Touches nothing before it is used. */
export function createDirectoryStore(options: DirectoryStoreOptions): ObjectStore {
  return new DirectoryStore(options)
}

class DirectoryStore implements ObjectStore {
  readonly #disk: Disk
  readonly #root: string
  readonly #incoming: string
  /** Paths of files that puts of this store are writing: not for the sweep. */
  readonly #inProgress = new Set<string>()
  /** Aligned memory is dear and never given back: what reads borrow, as many as ever ran side by side. */
  readonly #idlePieces: Buffer[] = []
  /** True once all names that lead to the root are known to be durable. */
  #isRootDurable = false
  #isClosed = false

  constructor({ disk, directory }: DirectoryStoreOptions) {
    assert(directory.startsWith('/') && !directory.endsWith('/'), 'the directory is absolute, and not the root')
    this.#disk = disk
    this.#root = directory
    this.#incoming = `${directory}/${INCOMING_NAME}`
  }

  async put(key: string, path: string, bytes: number, checksum: number): Promise<void> {
    checkKey(key)
    assertObjectSize(bytes)
    const source = this.#disk.open('segment.open', path)
    try {
      const temporary = `${this.#incoming}/${randomUUID()}${INCOMING_ENDING}`
      this.#inProgress.add(temporary)
      try {
        await this.#copy(key, source, temporary, { bytes, crc32c: checksum })
        compareRead(key, await this.#readBack(key, temporary), bytes, checksum)
        this.#guard(key, () => this.#place(temporary, key))
      } catch (error) {
        removeLeftover(this.#disk, temporary)
        throw error
      } finally {
        this.#inProgress.delete(temporary)
      }
    } finally {
      source.close()
    }
  }

  async read(key: string, position: number, bytes: number): Promise<Buffer> {
    checkKey(key)
    assert(position >= 0 && bytes >= 1 && bytes <= READ_BYTES_MAX, 'a read has a position and at least a byte')
    const target = Buffer.allocUnsafe(bytes)
    const file = this.#guard(key, () => this.#disk.open('segment.open', this.#pathOf(key)))
    try {
      for (let done = 0; done < bytes; await nextTurn()) {
        const wanted = Math.min(FILE_PIECE_BYTES, bytes - done)
        const count = this.#guard(key, () => file.read('segment.read', target, done, wanted, position + done))
        done += count
        if (count < wanted) throw wrongSize(key, position + done, position + bytes)
      }
    } finally {
      file.close()
    }
    return target
  }

  async fetch(key: string, targetPath: string, bytesMax: number): Promise<ReadObject> {
    checkKey(key)
    const file = this.#guard(key, () => this.#disk.open('segment.open', this.#pathOf(key)))
    try {
      const bytes = this.#guard(key, () => file.sizeBytes())
      if (bytes > bytesMax) throw tooLarge(key, bytes, bytesMax)
      return await writeNew(this.#disk, targetPath, this.#pieces(key, file))
    } finally {
      file.close()
    }
  }

  async verify(key: string, bytes: number, checksum: number): Promise<void> {
    checkKey(key)
    compareRead(key, await this.#readBack(key, this.#pathOf(key)), bytes, checksum)
  }

  async list(prefix: string): Promise<string[]> {
    checkFolder(prefix)
    const keys: string[] = []
    const folders = [prefix]
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      for (const name of this.#namesIn(folder)) {
        if (isObjectName(name)) listKey(keys, folder + name)
        else if (isFolderPart(name)) folders.push(`${folder}${name}/`)
      }
      await nextTurn()
    }
    return keys.sort()
  }

  async remove(key: string): Promise<void> {
    checkKey(key)
    await nextTurn()
    this.#guard(key, () => {
      if (!this.#disk.exists(this.#incoming)) throw this.#notMounted()
      const path = this.#pathOf(key)
      if (this.#disk.exists(path)) this.#disk.remove('segment.remove', path)
      this.#pruneFrom(dirname(path))
    })
  }

  async sweep(): Promise<number> {
    await nextTurn()
    return this.#guard('of an unfinished put', () => {
      if (!this.#disk.exists(this.#incoming)) return 0
      const leftovers = this.#disk
        .list(this.#incoming)
        .filter(name => name.endsWith(INCOMING_ENDING))
        .map(name => `${this.#incoming}/${name}`)
        .filter(path => !this.#inProgress.has(path))
      for (const path of leftovers) this.#disk.remove('segment.remove', path)
      if (leftovers.length > 0) this.#disk.syncDirectory('segment.directory-sync', this.#incoming)
      return leftovers.length
    })
  }

  close(): void {
    this.#isClosed = true
  }

  describe(): string {
    return `directory ${this.#root}`
  }

  /** Writes the incoming file and syncs it. What the local file does wrong is not guarded: that is the caller's disk. */
  async #copy(key: string, source: DiskFile, temporary: string, expected: ReadObject): Promise<void> {
    const target = this.#guard(key, () => this.#createIncoming(temporary))
    try {
      const piece = Buffer.allocUnsafe(Math.min(FILE_PIECE_BYTES, expected.bytes))
      let checksum = 0
      for (let done = 0; done < expected.bytes; done += piece.length) {
        const length = Math.min(piece.length, expected.bytes - done)
        await readLocal(source, piece, length, done)
        checksum = crc32c(piece, 0, length, checksum)
        this.#guard(key, () => target.write('segment.write', piece, 0, length, done))
      }
      checkLocal(source.path, checksum, expected.crc32c)
      this.#guard(key, () => target.sync('segment.sync'))
    } finally {
      this.#translate(key, () => target.close())
    }
  }

  /** The names of the directory itself are synced by #place, when something in it counts. */
  #createIncoming(temporary: string): DiskFile {
    this.#makeDirectories(this.#incoming)
    return this.#disk.create('segment.create', temporary)
  }

  /** Size and checksum of a file as the disk has it. */
  async #readBack(key: string, path: string): Promise<ReadObject> {
    const file = this.#guard(key, () => this.#disk.openDirect('segment.open', path))
    const piece = this.#idlePieces.pop() ?? alignedBuffer(FILE_PIECE_BYTES)
    try {
      return await measure(this.#pieces(key, file, piece))
    } finally {
      this.#idlePieces.push(piece)
      file.close()
    }
  }

  /** All of a file, each piece in the same memory. */
  async *#pieces(key: string, file: DiskFile, borrowed: Buffer | null = null): AsyncGenerator<Buffer> {
    const piece = borrowed ?? Buffer.allocUnsafe(FILE_PIECE_BYTES)
    for (let position = 0; ; position += piece.length) {
      const count = this.#guard(key, () => file.read('segment.read', piece, 0, piece.length, position))
      if (count > 0) yield piece.subarray(0, count)
      if (count < piece.length) return
      await nextTurn()
    }
  }

  /** The rename and all names that lead to it, without a break in which #pruneFrom could take a folder away. */
  #place(temporary: string, key: string): void {
    const path = this.#pathOf(key)
    this.#makeDirectories(dirname(path))
    this.#disk.rename('segment.rename', temporary, path)
    for (let folder = dirname(path); folder !== this.#root; folder = dirname(folder)) this.#syncFolder(folder)
    this.#syncFolder(this.#root)
    if (!this.#isRootDurable) this.#syncAbove(dirname(this.#root))
    this.#isRootDurable = true
  }

  /** Makes the root's own name durable, and those above: a start before this one may have made them and been killed. */
  #syncAbove(folder: string): void {
    try {
      this.#syncFolder(folder)
    } catch (error) {
      // Who may not read a directory has not made one in it: the names there are older than this store.
      if (!(error instanceof DiskError) || (error.code !== 'EACCES' && error.code !== 'EPERM')) throw error
    }
    if (folder !== '/') this.#syncAbove(dirname(folder))
  }

  #makeDirectories(path: string): void {
    if (this.#disk.exists(path)) return
    this.#makeDirectories(dirname(path))
    this.#disk.makeDirectory('segment.directory', path)
  }

  /** Syncs the folder an object was removed from; while one is empty, removes it and goes on above it. */
  #pruneFrom(path: string): void {
    for (let folder = path; ; folder = dirname(folder)) {
      if (this.#disk.exists(folder)) {
        this.#syncFolder(folder)
        if (folder === this.#root || !this.#isRemovedEmpty(folder)) return
      }
    }
  }

  #isRemovedEmpty(folder: string): boolean {
    try {
      this.#disk.removeDirectory('segment.directory', folder)
      return true
    } catch (error) {
      if (error instanceof DiskError && (error.code === 'ENOTEMPTY' || error.code === 'EEXIST')) return false
      throw error
    }
  }

  #syncFolder(path: string): void {
    this.#disk.syncDirectory('segment.directory-sync', path)
  }

  /** Names in a folder; none if there is no such folder, or a foreign file stands there. */
  #namesIn(folder: string): string[] {
    return this.#guard(folder, () => {
      try {
        return this.#disk.list(folder === '' ? this.#root : this.#pathOf(folder.slice(0, -1)))
      } catch (error) {
        if (error instanceof DiskError && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return []
        throw error
      }
    })
  }

  #pathOf(key: string): string {
    return `${this.#root}/${key}`
  }

  /** Does a step on the store's own disk; what that refuses becomes a ColdError. */
  #guard<T>(key: string, action: () => T): T {
    if (this.#isClosed) throw new ColdError('unavailable', `${this.describe()} is closed`)
    return this.#translate(key, action)
  }

  #translate<T>(key: string, action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw error instanceof DiskError ? this.#toColdError(key, error) : error
    }
  }

  #toColdError(key: string, error: DiskError): ColdError {
    const isAbsent = error.code === 'ENOENT' || error.code === 'ENOTDIR'
    if (isAbsent && !this.#disk.exists(this.#incoming)) return this.#notMounted(error)
    const code: ColdErrorCode = isAbsent ? 'missing' : refusals.includes(error.code) ? 'refused' : 'unavailable'
    return new ColdError(code, `object ${key} in ${this.describe()}: ${error.message}`, error)
  }

  #notMounted(cause?: unknown): ColdError {
    return new ColdError('unavailable', `${this.#root} holds no objects: is its disk mounted?`, cause)
  }
}
