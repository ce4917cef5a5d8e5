/**
 * The `headers` of a record in a MessagePack produce body: `[[name, value], …]`, a name being a str, a value bin, str or nil.
 * Main thread, or a thread of the background pool; no object per header. Checked once by MsgpackHeaderScan, then read again
 * by MsgpackHeaderReader when the record goes to a ring.
 */
import { isUtf8 } from 'node:buffer'
import { assert } from '../../base/assert.ts'
import { limits } from '../../model/limits.ts'
import { varintBytes } from '../primitives/varint.ts'
import { emptyPart, type HeaderPart, type HeaderReader } from './header-reader.ts'
import { NOT_A_PAIR, countProblem, isNameLength, nameProblem } from './header-rules.ts'
import { MsgpackCursor, packKinds, type PackKind } from './msgpack-cursor.ts'

/** Containers around a pair: body, records, record, headers. */
const PAIR_DEPTH = 4
/** Up to here a loop over the bytes is cheaper than a call that needs a view of them. */
const LOOPED_BYTES_MAX = 64

export const NOT_UTF8 = 'is a str that is not UTF-8: send it as bin'

/** Whether bytes[start, end) are UTF-8. @cost no object for a short ASCII text. */
export function isText(bytes: Buffer, start: number, end: number): boolean {
  let at = start
  if (end - start <= LOOPED_BYTES_MAX) while (at < end && (bytes[at] as number) < 0x80) at++
  return at === end || isUtf8(bytes.subarray(at, end))
}

export class MsgpackHeaderScan {
  /** Where the first pair begins. */
  start = 0
  count = 0
  /** Of all pairs in ring layout, without their count. */
  bytes = 0
  /** The first ill-typed part, as `[2][1]`, and what is wrong; `problem` is empty while nothing is. */
  path = ''
  problem = ''
  readonly #cursor: MsgpackCursor

  constructor(cursor: MsgpackCursor) {
    this.#cursor = cursor
  }

  /** Scans what is in the array whose head was just read. @returns false: it is no MessagePack. */
  scan(): boolean {
    const cursor = this.#cursor
    const pairs = cursor.count
    this.start = cursor.at
    this.bytes = 0
    this.path = ''
    this.problem = ''
    for (this.count = 0; this.count < pairs; this.count++) {
      const kind = cursor.scanHead()
      if (kind === packKinds.broken) return false
      if (kind === packKinds.array && cursor.count === 2) {
        if (!this.#scanPair()) return false
        continue
      }
      this.#fault('', NOT_A_PAIR)
      const isContainer = kind === packKinds.array || kind === packKinds.map
      if (isContainer && !cursor.skipContainer(kind, PAIR_DEPTH)) return false
    }
    if (pairs > limits.recordHeadersMax && this.problem === '') this.problem = countProblem(pairs)
    return true
  }

  #scanPair(): boolean {
    const cursor = this.#cursor
    const nameKind = cursor.scanValue(PAIR_DEPTH + 1)
    if (nameKind === packKinds.broken) return false
    this.#countName(nameKind)
    const valueKind = cursor.scanValue(PAIR_DEPTH + 1)
    if (valueKind === packKinds.broken) return false
    this.#countValue(valueKind)
    return true
  }

  #countName(kind: PackKind): void {
    const { bytes, start, stop } = this.#cursor
    const length = stop - start
    if (kind !== packKinds.text) this.#fault('[0]', 'must be a str')
    else if (!isNameLength(length)) this.#fault('[0]', nameProblem(length))
    else if (!isText(bytes, start, stop)) this.#fault('[0]', 'must be UTF-8')
    else this.bytes += varintBytes(length) + length
  }

  #countValue(kind: PackKind): void {
    const { bytes, start, stop } = this.#cursor
    const length = stop - start
    if (kind === packKinds.nil) this.bytes += varintBytes(-1)
    else if (kind !== packKinds.bytes && kind !== packKinds.text) this.#fault('[1]', 'must be bin, str or nil')
    else if (kind === packKinds.text && !isText(bytes, start, stop)) this.#fault('[1]', NOT_UTF8)
    else this.bytes += varintBytes(length) + length
  }

  #fault(path: string, problem: string): void {
    if (this.problem !== '') return
    this.path = `[${this.count}]${path}`
    this.problem = problem
  }
}

/** Reads what MsgpackHeaderScan has accepted. */
export class MsgpackHeaderReader implements HeaderReader {
  readonly name = emptyPart()
  readonly value = emptyPart()
  readonly #cursor = new MsgpackCursor()

  open(source: Buffer, at: number): void {
    if (this.#cursor.bytes !== source) this.#cursor.open(source, 0, source.length)
    this.#cursor.at = at
  }

  next(): void {
    this.#cursor.scanHead()
    this.#read(this.name)
    this.#read(this.value)
    assert(this.#cursor.problem === '', 'headers were scanned before')
  }

  #read(part: HeaderPart): void {
    const cursor = this.#cursor
    const kind = cursor.scanHead()
    part.start = cursor.start
    part.end = cursor.stop
    part.bytes = kind === packKinds.nil ? -1 : cursor.stop - cursor.start
  }

  close(): void {
    this.#cursor.close()
  }
}
