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
import { crc32c } from '../../base/crc32c.ts'
import { DiskError, type Disk, type DiskFile } from '../../disk/disk.ts'
import { DUMP_BYTES_MAX, DUMP_NAME, decodeList, type DumpList, type ListedFile } from './dump-format.ts'
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
  const [taken, read] = await Promise.allSettled([takeAll(archive, meter, target), reading])
  // What was found wrong ends the reading, and the other way round: the side that has a reason is the one to tell.
  const failures = [read, taken].flatMap(side => (side.status === 'rejected' ? [errorOf(side.reason)] : []))
  const cause = failures.find(error => error instanceof DumpRefusal || error instanceof DiskError) ?? failures[0]
  if (cause !== undefined) throw isBrokenInput(cause) ? brokenArchive(input, cause) : cause
  if (taken.status !== 'fulfilled') throw new DumpRefusal('the archive is refused: it cannot be read')
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

async function takeAll(archive: ReturnType<typeof extract>, meter: Meter, target: RestoreTarget): Promise<DumpList> {
  const made = new Set<string>()
  let list: DumpList | null = null
  let next = 0
  for await (const entry of archive) {
    meter.allowHeader()
    checkKind(entry)
    if (list === null) {
      list = decodeList(await takeList(entry, meter))
      target.onList(list)
      continue
    }
    const file = list.files[next++]
    if (file === undefined) throw refused(`${show(entry.header.name)} is not in its list`)
    if (entry.header.name !== file.path) throw refused(`${show(entry.header.name)} stands where ${file.path} is listed`)
    if (entry.header.size !== file.bytes) {
      throw refused(`${file.path} has ${entry.header.size} bytes, and is listed with ${file.bytes}`)
    }
    const output = target.isWanted(file, list) ? createBelow(target, file.path, made) : null
    await takeFile(entry, { file, output, meter, onBytes: target.onBytes })
    target.onFile()
  }
  if (list === null) throw refused(`it does not begin with ${DUMP_NAME}`)
  const missing = list.files[next]
  if (missing !== undefined) throw refused(`it ends before ${missing.path}`)
  return list
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

/** What zlib and the tar reader say of bytes that are none of theirs, or that end too early. */
function isBrokenInput(error: Error): boolean {
  if (error instanceof DumpRefusal || error instanceof DiskError) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return code.startsWith('Z_') || /tar|Unexpected end of data|premature/i.test(error.message)
}

function brokenArchive(input: string, { message }: Error): DumpRefusal {
  return new DumpRefusal(`the archive is refused: ${input} is damaged, or is no archive: ${message}`)
}
