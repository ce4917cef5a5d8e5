/**
 * The log of the minimal server: records are written one after the other into a file whose blocks were written before,
 * and whoever appended hears of it after fdatasync. Main thread of the minimal server; the file's calls run on the
 * threads of libuv, so that requests are parsed while the disk works.
 *
 *   group: requests gather ─▶ one write + one fdatasync of all ─▶ all answered   (the next ones gather meanwhile)
 *   each:  requests gather ─▶ for one after the other: write + fdatasync ─▶ answered
 *
 * A record is 4 bytes partition, 4 bytes length of the value, 8 bytes offset (double), the value; numbers are big-endian.
 * What a broker's log has beyond that is left out, in favour of this one: checksums, an index, recovery, retention.
 * Must never: tell anybody of a record before the sync that covers it, or write outside its file.
 */
import { close, fdatasync, open, write } from 'node:fs'
import { promisify } from 'node:util'

/** One fdatasync for all that gathered, or one for each request. */
export type SyncMode = 'group' | 'each'

/** What the log needs of a file. Callbacks come later, never within the call. */
export interface LogFile {
  /** Writes from `position` on; `done` hears how many bytes that were. `bytes` is borrowed until then. */
  write(bytes: Buffer, position: number, done: (error: Error | null, writtenBytes: number) => void): void
  sync(done: (error: Error | null) => void): void
  close(): Promise<void>
}

/** Opens a file that is there. @throws Error from the file system. */
export async function openLogFile(path: string): Promise<LogFile> {
  const descriptor = await promisify(open)(path, 'r+')
  return {
    write: (bytes, position, done) => write(descriptor, bytes, 0, bytes.length, position, done),
    sync: done => fdatasync(descriptor, done),
    close: () => promisify(close)(descriptor)
  }
}

/** A record of a request. */
export interface MinimalRecord {
  readonly value: string
  readonly partition: number
}

/** Hears once that the records are on the disk, or why that is unknown. */
type Appended = (error: Error | null) => void

/** Whether an append was taken: `busy` passes, `full` and `broken` remain. */
export type AppendAnswer = 'taken' | 'busy' | 'full' | 'broken'

const RECORD_HEAD_BYTES = 16
/** A character of a string is three bytes of UTF-8 at most. */
const UTF8_BYTES_MAX = 3
/** What may gather: three times the largest body, so that every request finds room in an empty one. */
export const GATHERED_BYTES_MAX = 32 * 1024 * 1024

/** Requests that gathered: their bytes in order, where each ends, and who waits for it. */
class Gathered {
  readonly bytes = Buffer.allocUnsafeSlow(GATHERED_BYTES_MAX)
  length = 0
  readonly ends: number[] = []
  readonly waiting: Appended[] = []

  clear(): void {
    this.length = 0
    this.ends.length = 0
    this.waiting.length = 0
  }
}

export class MinimalLog {
  readonly #file: LogFile
  readonly #fileBytes: number
  readonly #mode: SyncMode
  #gathering = new Gathered()
  #writing = new Gathered()
  #isWriting = false
  /** Requests of `#writing` that are on the disk. */
  #syncedCount = 0
  /** Where the next write begins. */
  #position = 0
  #failure: Error | null = null
  #whenIdle: (() => void) | null = null
  /** Syncs and bytes that were written so far. */
  syncs = 0
  writtenBytes = 0

  /** @param fileBytes size of the file, all of it written before. */
  constructor(file: LogFile, fileBytes: number, mode: SyncMode) {
    this.#file = file
    this.#fileBytes = fileBytes
    this.#mode = mode
  }

  /**
   * Takes the records of one request. Cost: one copy of the values.
   * @param offsets of the records, by index.
   * @param done called after the sync, only if the answer is `taken`. Unless it is, nothing is written.
   */
  append(records: readonly MinimalRecord[], offsets: readonly number[], done: Appended): AppendAnswer {
    if (this.#failure !== null) return 'broken'
    const target = this.#gathering
    let bytesMax = 0
    for (const record of records) bytesMax += RECORD_HEAD_BYTES + record.value.length * UTF8_BYTES_MAX
    if (target.length + bytesMax > GATHERED_BYTES_MAX) return 'busy'
    const before = this.#position + (this.#isWriting ? this.#writing.length : 0) + target.length
    if (before + bytesMax > this.#fileBytes) return 'full'
    const { bytes } = target
    let at = target.length
    let index = 0
    for (const { value, partition } of records) {
      const valueBytes = bytes.write(value, at + RECORD_HEAD_BYTES, 'utf8')
      bytes.writeUInt32BE(partition, at)
      bytes.writeUInt32BE(valueBytes, at + 4)
      bytes.writeDoubleBE(offsets[index++] ?? 0, at + 8)
      at += RECORD_HEAD_BYTES + valueBytes
    }
    target.length = at
    target.ends.push(at)
    target.waiting.push(done)
    if (!this.#isWriting) this.#begin()
    return 'taken'
  }

  /** Closes the file once nothing is being written. The caller appends no more. */
  async close(): Promise<void> {
    if (this.#isWriting) await new Promise<void>(resolve => (this.#whenIdle = resolve))
    await this.#file.close()
  }

  /** What gathered is written; the next requests gather in what is free. */
  #begin(): void {
    const full = this.#gathering
    this.#gathering = this.#writing
    this.#writing = full
    this.#isWriting = true
    this.#syncedCount = 0
    this.#writePiece(0)
  }

  /** The next write and sync, from `start` of what gathered on: all of it, or one request. */
  #writePiece(start: number): void {
    const { length, ends } = this.#writing
    this.#write(start, this.#mode === 'group' ? length : (ends[this.#syncedCount] ?? length))
  }

  #write(start: number, end: number): void {
    this.#file.write(this.#writing.bytes.subarray(start, end), this.#position + start, (error, writtenBytes) => {
      if (error !== null) this.#break(error)
      // A write may do less than it was asked for.
      else if (writtenBytes < end - start) this.#write(start + writtenBytes, end)
      else this.#sync(end)
    })
  }

  #sync(end: number): void {
    this.#file.sync(error => {
      if (error !== null) {
        this.#break(error)
        return
      }
      this.syncs++
      const { waiting, length } = this.#writing
      const first = this.#syncedCount
      const count = this.#mode === 'group' ? waiting.length : first + 1
      const answered = waiting.slice(first, count)
      this.#syncedCount = count
      if (end < length) this.#writePiece(end)
      else this.#endWriting()
      // The disk works again before anybody is answered.
      for (const done of answered) done(null)
    })
  }

  #endWriting(): void {
    this.writtenBytes += this.#writing.length
    this.#position += this.#writing.length
    this.#writing.clear()
    this.#isWriting = false
    if (this.#gathering.waiting.length > 0) this.#begin()
    else this.#whenIdle?.()
  }

  /** After a failed write or sync nobody knows what is on the disk: whoever waits is told so, and nothing is taken any more. */
  #break(error: Error): void {
    this.#failure = error
    const waiting = [...this.#writing.waiting.slice(this.#syncedCount), ...this.#gathering.waiting]
    this.#writing.clear()
    this.#gathering.clear()
    this.#isWriting = false
    for (const done of waiting) done(error)
    this.#whenIdle?.()
  }
}
