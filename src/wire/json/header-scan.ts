/**
 * The `headers` of a record in a JSON produce body: `[["name","value"],…]`, in order, a value being a string or null.
 * Main thread, or a thread of the background pool; no object per header. Checked once by HeaderScan, then read again by
 * JsonHeaderReader when the record goes to a ring.
 */
import { assert } from '../../base/assert.ts'
import { limits } from '../../model/limits.ts'
import { emptyPart, type HeaderPart, type HeaderReader } from '../produce/header-reader.ts'
import { NOT_A_PAIR, countProblem, isNameLength, nameProblem } from '../produce/header-rules.ts'
import { varintBytes } from '../primitives/varint.ts'
import { JsonCursor, jsonKinds, type JsonKind } from './json-cursor.ts'

/** Containers around a pair: body, records, record, headers. */
const PAIR_DEPTH = 4

export class HeaderScan {
  /** Where they begin. */
  start = 0
  count = 0
  /** Of all pairs in ring layout, without their count, their values taken as text. */
  bytes = 0
  /** The first ill-typed part, as `[2][1]`, and what is wrong; `problem` is empty while nothing is. */
  path = ''
  problem = ''
  readonly #cursor: JsonCursor

  constructor(cursor: JsonCursor) {
    this.#cursor = cursor
  }

  /** Scans the array that begins at the cursor. @returns false: it is no JSON. */
  scan(): boolean {
    const cursor = this.#cursor
    this.start = cursor.at
    this.count = 0
    this.bytes = 0
    this.path = ''
    this.problem = ''
    cursor.at++
    if (cursor.peek() === 0x5d) {
      cursor.at++
      return true
    }
    for (;;) {
      if (cursor.peek() === 0x5b) {
        if (!this.#scanPair()) return false
      } else {
        if (cursor.scanValue(PAIR_DEPTH) === jsonKinds.broken) return false
        this.#fault('', NOT_A_PAIR)
      }
      this.count++
      const next = cursor.peek()
      if (next !== 0x2c && next !== 0x5d) return cursor.fail('a comma or ]')
      cursor.at++
      if (next === 0x5d) break
    }
    if (this.count > limits.recordHeadersMax && this.problem === '') this.problem = countProblem(this.count)
    return true
  }

  #scanPair(): boolean {
    const cursor = this.#cursor
    let parts = 0
    cursor.at++
    if (cursor.peek() === 0x5d) cursor.at++
    else {
      for (;;) {
        const kind = cursor.scanValue(PAIR_DEPTH + 1)
        if (kind === jsonKinds.broken) return false
        if (parts === 0) this.#countName(kind)
        else if (parts === 1) this.#countValue(kind)
        parts++
        const next = cursor.peek()
        if (next !== 0x2c && next !== 0x5d) return cursor.fail('a comma or ]')
        cursor.at++
        if (next === 0x5d) break
      }
    }
    if (parts !== 2) this.#fault('', NOT_A_PAIR)
    return true
  }

  #countName(kind: JsonKind): void {
    const { stringBytes } = this.#cursor
    if (kind !== jsonKinds.string) this.#fault('[0]', 'must be a string')
    else if (!isNameLength(stringBytes)) this.#fault('[0]', nameProblem(stringBytes))
    else this.bytes += varintBytes(stringBytes) + stringBytes
  }

  #countValue(kind: JsonKind): void {
    const { stringBytes } = this.#cursor
    if (kind === jsonKinds.null) this.bytes += varintBytes(-1)
    else if (kind === jsonKinds.string) this.bytes += varintBytes(stringBytes) + stringBytes
    else this.#fault('[1]', 'must be a string or null')
  }

  #fault(path: string, problem: string): void {
    if (this.problem !== '') return
    this.path = `[${this.count}]${path}`
    this.problem = problem
  }
}

/** Reads what HeaderScan has accepted. */
export class JsonHeaderReader implements HeaderReader {
  readonly name = emptyPart()
  readonly value = emptyPart()
  readonly #cursor = new JsonCursor()

  open(source: Buffer, at: number): void {
    if (this.#cursor.bytes !== source) this.#cursor.open(source, 0, source.length)
    // Behind the bracket of the array; the comma of a pair is behind it.
    this.#cursor.at = at + 1
  }

  next(): void {
    const cursor = this.#cursor
    if (cursor.peek() === 0x2c) cursor.at++
    cursor.expect(0x5b, '[')
    this.#read(this.name)
    cursor.expect(0x2c, ',')
    this.#read(this.value)
    cursor.expect(0x5d, ']')
    assert(cursor.problem === '', 'headers were scanned before')
  }

  #read(part: HeaderPart): void {
    const cursor = this.#cursor
    // No container is around it for this cursor, and none is in it.
    const kind = cursor.scanValue(0)
    part.start = cursor.stringStart
    part.end = cursor.stringEnd
    part.bytes = kind === jsonKinds.string ? cursor.stringBytes : -1
    part.isEscaped = kind === jsonKinds.string && cursor.stringHasEscape
  }

  close(): void {
    this.#cursor.close()
  }
}
