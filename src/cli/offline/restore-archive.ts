/**
 * Reads an archive, whoever wrote it, into a directory that nobody uses yet. Main thread of the command line.
 *
 * Nothing in the archive is believed: it must be its list, dump.json, and then exactly the files of that list, in that
 * order, of that length, with that checksum. Links, devices, directories, other names and further bytes are refused when
 * they are met, so no name of the archive reaches the disk that the list (dump-format.ts) does not allow.
 *
 * Memory: a few pieces and the list. What an archive inflates to is counted against what it lists, and so is what stands
 * between its files: a small archive that inflates without end is refused early.
 */
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract, type Entry } from 'tar-stream'
import { assert } from '../../base/assert.ts'
import { crc32c } from '../../base/crc32c.ts'
import { DiskError, type Disk, type DiskFile } from '../../disk/disk.ts'
import { DUMP_BYTES_MAX, DUMP_NAME, decodeList, type DumpList, type ListedFile } from './dump-format.ts'
import { UsageError } from '../io.ts'
import { DumpRefusal } from './dump-refusal.ts'

/** Bytes between the contents of two files: a header, one for a long name, both padded; and what is read ahead. */
const HEADER_BYTES_MAX = 4096
const READ_AHEAD_BYTES = 1024 * 1024

export interface RestoreTarget {
  readonly disk: Disk
  /** Absolute, empty. */
  readonly directory: string
  /** True for files that are to be written; the others are checked all the same. */
  readonly isWanted: (file: ListedFile, list: DumpList) => boolean
  /** Before the first file is written. @throws DumpRefusal */
  readonly onList: (list: DumpList) => void
  readonly onBytes: (bytes: number) => void
  readonly onFile: () => void
}

/**
 * Writes the files of an archive, each synced; the names are not.
 * @param input path of the archive. @throws DumpRefusal, DiskError; then the directory holds some of it.
 */
export async function readArchive(input: string, target: RestoreTarget): Promise<DumpList> {
  const archive = extract()
  const meter = new Meter()
  const inflate = (await isGzip(input)) ? createGunzip() : new PassThrough()
  const reading = pipeline(createReadStream(input), inflate, chunks => meter.pass(chunks), archive)
  const causes: Error[] = []
  const [taken, read] = await Promise.allSettled([takeAll(archive, meter, target, causes), reading])
  for (const side of [read, taken]) if (side.status === 'rejected') causes.push(errorOf(side.reason))
  // What is found wrong ends the reading, and the other way round: one of them has the reason, the others its echo.
  const cause = causes.find(error => !isOfStream(error)) ?? causes[0]
  if (cause !== undefined) throw isOfStream(cause) ? brokenArchive(input, cause) : cause
  assert(taken.status === 'fulfilled', 'what did not fail was fulfilled')
  return taken.value
}

async function isGzip(path: string): Promise<boolean> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, 0)
    return bytesRead === 2 && buffer.readUInt16BE(0) === 0x1f8b
  } finally {
    await file.close()
  }
}

/** Counts what comes out of the archive, and ends the reading when too much of it belongs to no file. */
class Meter {
  #passedBytes = 0
  #takenBytes = 0
  #allowance = READ_AHEAD_BYTES + HEADER_BYTES_MAX

  /** So much of a file was taken. */
  noteTaken(bytes: number): void {
    this.#takenBytes += bytes
  }

  /** A file begins: its header was read. */
  allowHeader(): void {
    this.#allowance += HEADER_BYTES_MAX
  }

  async *pass(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of chunks) {
      this.#passedBytes += chunk.length
      if (this.#passedBytes - this.#takenBytes > this.#allowance) throw refused('it holds more than it lists')
      yield chunk
    }
  }
}

/** @param causes hears of the first failure before the archive does, which ends with another. */
async function takeAll(
  archive: ReturnType<typeof extract>,
  meter: Meter,
  target: RestoreTarget,
  causes: Error[]
): Promise<DumpList> {
  const taking = new Taking(meter, target)
  for await (const entry of archive) {
    try {
      await taking.take(entry)
    } catch (error) {
      causes.push(errorOf(error))
      throw error
    }
  }
  return taking.finish()
}

/** Takes the entries of one archive, in order. */
class Taking {
  readonly #meter: Meter
  readonly #target: RestoreTarget
  /** Directories made so far. */
  readonly #made = new Set<string>()
  #list: DumpList | null = null
  #next = 0

  constructor(meter: Meter, target: RestoreTarget) {
    this.#meter = meter
    this.#target = target
  }

  async take(entry: Entry): Promise<void> {
    this.#meter.allowHeader()
    checkKind(entry)
    if (this.#list === null) {
      this.#list = decodeList(await takeList(entry, this.#meter))
      this.#target.onList(this.#list)
      return
    }
    const { name, size } = entry.header
    const file = this.#list.files[this.#next++]
    if (file === undefined) throw refused(`${show(name)} is not in its list`)
    if (name !== file.path) throw refused(`${show(name)} stands where ${file.path} is listed`)
    if (size !== file.bytes) throw refused(`${file.path} has ${size} bytes, and is listed with ${file.bytes}`)
    const isWanted = this.#target.isWanted(file, this.#list)
    const output = isWanted ? createBelow(this.#target, file.path, this.#made) : null
    await takeFile(entry, { file, output, meter: this.#meter, onBytes: this.#target.onBytes })
    this.#target.onFile()
  }

  finish(): DumpList {
    if (this.#list === null) throw refused(`it does not begin with ${DUMP_NAME}`)
    const missing = this.#list.files[this.#next]
    if (missing !== undefined) throw refused(`it ends before ${missing.path}`)
    return this.#list
  }
}

function checkKind({ header }: Entry): void {
  if (header.type === 'file') return
  throw refused(`${show(header.name)} is a ${String(header.type)}, and a dump holds only files`)
}

async function takeList(entry: Entry, meter: Meter): Promise<Buffer> {
  const { name, size = 0 } = entry.header
  if (name !== DUMP_NAME) throw refused(`it does not begin with ${DUMP_NAME}`)
  if (size > DUMP_BYTES_MAX) throw refused(`its ${DUMP_NAME} has ${size} bytes, at most ${DUMP_BYTES_MAX} are read`)
  const pieces: Buffer[] = []
  for await (const piece of entry as AsyncIterable<Buffer>) {
    meter.noteTaken(piece.length)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

interface FileTaking {
  readonly file: ListedFile
  /** null: it is only checked. */
  readonly output: DiskFile | null
  readonly meter: Meter
  readonly onBytes: (bytes: number) => void
}

async function takeFile(entry: Entry, { file, output, meter, onBytes }: FileTaking): Promise<void> {
  let position = 0
  let sum = 0
  try {
    for await (const piece of entry as AsyncIterable<Buffer>) {
      meter.noteTaken(piece.length)
      sum = crc32c(piece, 0, piece.length, sum)
      output?.write('restore.write', piece, 0, piece.length, position)
      position += piece.length
      onBytes(piece.length)
    }
    if (position !== file.bytes) throw refused(`${file.path} ends after ${position} of ${file.bytes} bytes`)
    if (sum !== file.crc32c) throw refused(`the checksum of ${file.path} is wrong`)
    output?.sync('restore.sync')
  } finally {
    output?.close()
  }
}

function createBelow({ disk, directory }: RestoreTarget, path: string, made: Set<string>): DiskFile {
  makeBelow(disk, directory, dirname(path), made)
  return disk.create('restore.create', `${directory}/${path}`)
}

function makeBelow(disk: Disk, directory: string, path: string, made: Set<string>): void {
  if (path === '.' || made.has(path)) return
  makeBelow(disk, directory, dirname(path), made)
  disk.makeDirectory('restore.directory', `${directory}/${path}`)
  made.add(path)
}

function refused(problem: string): DumpRefusal {
  return new DumpRefusal(`the archive is refused: ${problem}`)
}

/** A name from the archive, as it may be shown on a terminal. */
function show(name: string): string {
  return JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name)
}

function errorOf(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason))
}

/** What zlib and the tar reader say of bytes that are none of theirs, and streams of others that ended. */
function isOfStream(error: Error): boolean {
  if (error instanceof DumpRefusal || error instanceof DiskError || error instanceof UsageError) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return /^(Z_|ERR_STREAM|ABORT_ERR)/.test(code) || /tar|unexpected end|premature|stream/i.test(error.message)
}

function brokenArchive(input: string, { message }: Error): DumpRefusal {
  return new DumpRefusal(`the archive is refused: ${input} is damaged, or is no archive: ${message}`)
}
