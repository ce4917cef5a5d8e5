/**
 * A cursor over the bytes of one JSON text: checks syntax, finds where values start and end, builds nothing.
 * Main thread (and any other: it has no effects). It accepts exactly what JSON.parse accepts, but for nesting deeper
 * than limits.jsonDepthMax; text that is not UTF-8 must be refused before (isUtf8).
 *
 * Methods return false at the first fault and leave `problem` and `at` for the message. Nothing is thrown: a bad body is
 * a caller's fault and the scan runs once per record.
 */
import { limits } from '../../model/limits.ts'
import { SpecialBytes } from './special-bytes.ts'

/** What scanValue found. `broken`: see `problem`. */
export const jsonKinds = { broken: 0, string: 1, number: 2, boolean: 3, null: 4, object: 5, array: 6 } as const
export type JsonKind = (typeof jsonKinds)[keyof typeof jsonKinds]

/** More digits than this are not summed exactly in a double; whoever needs them reads the text again. */
export const EXACT_DIGITS = 15

/** Names and short values end before so many bytes; what goes on is looked for in the index. */
const SHORT_STRING_BYTES = 16

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const MINUS = 0x2d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const NULL = Buffer.from('null')
/** Of this thread: of all cursors the one that asks has it. */
const special = new SpecialBytes()

const EMPTY = Buffer.alloc(0)
const EMPTY_VIEW = new DataView(new ArrayBuffer(0))

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39

/** The value of four hexadecimal digits at bytes[at…], or −1. Bytes past the text are the caller's to exclude. */
export function readHex4(bytes: Buffer, at: number): number {
  let value = 0
  for (let i = at; i < at + 4; i++) {
    const byte = bytes[i] as number
    const lower = byte | 0x20
    if (byte >= 0x30 && byte <= 0x39) value = (value << 4) | (byte - 0x30)
    else if (lower >= 0x61 && lower <= 0x66) value = (value << 4) | (lower - 0x57)
    else return -1
  }
  return value
}

/** True for the first half of a surrogate pair. */
export const isHighSurrogate = (unit: number): boolean => (unit & 0xfc00) === 0xd800
/** True for the second half of a surrogate pair. */
export const isLowSurrogate = (unit: number): boolean => (unit & 0xfc00) === 0xdc00

/** Bytes of one UTF-16 unit in UTF-8, alone: a surrogate without its other half becomes U+FFFD, three bytes. */
const unitBytes = (unit: number): number => (unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3)

export class JsonCursor {
  /** The text is bytes[at, end); borrowed from open() to close(). */
  bytes: Buffer = EMPTY
  at = 0
  end = 0
  /** What is wrong at `at`, without the position; empty while nothing is. */
  problem = ''

  // The last string scanned: bytes between the quotes, and what they decode to.
  stringStart = 0
  stringEnd = 0
  stringBytes = 0
  stringHasEscape = false

  // The last number scanned. The magnitude is exact while numberDigits ≤ EXACT_DIGITS.
  numberStart = 0
  numberDigits = 0
  numberMagnitude = 0
  numberIsNegative = false
  /** Written without fraction and exponent. */
  numberIsInteger = false

  #view: DataView = EMPTY_VIEW
  readonly #containers = new Uint8Array(limits.jsonDepthMax + 1)

  open(bytes: Buffer, start: number, end: number): void {
    this.bytes = bytes
    this.at = start
    this.end = end
    this.problem = ''
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, end)
    special.close()
  }

  /** Lets go of the bytes. */
  close(): void {
    special.close()
    this.bytes = EMPTY
    this.#view = EMPTY_VIEW
  }

  /** @returns the first byte that is not white space, not consumed, or −1 at the end. */
  peek(): number {
    const { bytes, end } = this
    let at = this.at
    while (at < end) {
      const byte = bytes[at] as number
      if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) {
        this.at = at
        return byte
      }
      at++
    }
    this.at = at
    return -1
  }

  /** Notes that the byte at the cursor is not what the grammar allows. @returns false. */
  fail(expected: string): false {
    this.problem = this.at >= this.end ? `it ends where ${expected} should be` : `${expected} should be`
    return false
  }

  /** Consumes white space and that one byte. */
  expect(byte: number, name: string): boolean {
    if (this.peek() !== byte) return this.fail(name)
    this.at++
    return true
  }

  /** Consumes `"name" :` of an object member; the name is then the last string. */
  scanName(): boolean {
    if (this.peek() !== QUOTE) return this.fail('a field name in quotes')
    return this.scanString() && this.expect(COLON, 'a colon')
  }

  /**
   * Consumes the string whose opening quote is at the cursor.
   * Its beginning, and what follows an escape, four bytes at a time while none is a quote, a backslash or below 0x20: a byte b has
   * such a value v exactly if (b ^ v) − 1 borrows into the top bit; a borrow can mislead only above a byte that is a hit itself.
   */
  scanString(): boolean {
    const { bytes, end } = this
    const view = this.#view
    let at = this.at + 1
    const start = at
    let saved = 0
    for (;;) {
      const nearEnd = Math.min(end, at + SHORT_STRING_BYTES)
      while (at + 4 <= nearEnd) {
        const word = view.getInt32(at, true)
        const quote = word ^ 0x22222222
        const slash = word ^ 0x5c5c5c5c
        const hits = ((word - 0x20202020) & ~word) | ((quote - 0x01010101) & ~quote) | ((slash - 0x01010101) & ~slash)
        if ((hits & 0x80808080) !== 0) break
        at += 4
      }
      if (at === nearEnd && at < end) at = this.#skipPlain(at)
      while (at < end) {
        const byte = bytes[at] as number
        if (byte === QUOTE || byte === BACKSLASH || byte < 0x20) break
        at++
      }
      this.at = at
      if (at >= end) return this.fail('the end of a string')
      const stop = bytes[at] as number
      if (stop === QUOTE) break
      if (stop !== BACKSLASH) return this.fail('an escape instead of a control character')
      const savedHere = this.#scanEscape()
      if (savedHere < 0) return false
      saved += savedHere
      at = this.at
    }
    this.stringStart = start
    this.stringEnd = at
    this.stringBytes = at - start - saved
    this.stringHasEscape = saved > 0
    this.at = at + 1
    return true
  }

  /** @returns the first byte from there on that is special, or the end. */
  #skipPlain(from: number): number {
    if (!special.isOpenOn(this.bytes, this.end)) special.open(this.bytes, this.end)
    return special.nextFrom(from)
  }

  /** Consumes one escape, or two that are a surrogate pair. @returns how much longer than its meaning it is, or −1. */
  #scanEscape(): number {
    const { bytes, end, at } = this
    switch (at + 1 < end ? (bytes[at + 1] as number) : -1) {
      case QUOTE:
      case BACKSLASH:
      case 0x2f: // slash
      case 0x62: // b
      case 0x66: // f
      case 0x6e: // n
      case 0x72: // r
      case 0x74: // t
        this.at = at + 2
        return 1
      case 0x75: // u
        break
      default:
        this.fail('a known escape')
        return -1
    }
    const unit = at + 6 <= end ? readHex4(bytes, at + 2) : -1
    if (unit < 0) {
      this.fail('four hexadecimal digits after \\u')
      return -1
    }
    this.at = at + 6
    if (isHighSurrogate(unit) && at + 12 <= end && bytes[at + 6] === BACKSLASH && bytes[at + 7] === 0x75) {
      if (isLowSurrogate(readHex4(bytes, at + 8))) {
        this.at = at + 12
        return 12 - 4
      }
    }
    return 6 - unitBytes(unit)
  }

  /** Consumes the number that starts at the cursor. */
  scanNumber(): boolean {
    const { bytes, end } = this
    this.numberStart = this.at
    this.numberIsNegative = bytes[this.at] === MINUS
    if (this.numberIsNegative) this.at++
    let at = this.at
    let magnitude = 0
    const first = at
    while (at < end && isDigit(bytes[at])) magnitude = magnitude * 10 + (bytes[at++] as number) - 0x30
    if (at === first) return this.fail('a digit')
    if (bytes[first] === 0x30 && at > first + 1) {
      this.at = first + 1
      return this.fail('no digit after a leading zero')
    }
    this.at = at
    this.numberDigits = at - first
    this.numberMagnitude = magnitude
    this.numberIsInteger = true
    if (at < end && bytes[at] === 0x2e) {
      this.at++
      this.numberIsInteger = false
      if (!this.#scanDigits()) return false
    }
    if (this.at < end && ((bytes[this.at] as number) | 0x20) === 0x65) {
      this.at++
      this.numberIsInteger = false
      if (this.at < end && (bytes[this.at] === 0x2b || bytes[this.at] === MINUS)) this.at++
      return this.#scanDigits()
    }
    return true
  }

  #scanDigits(): boolean {
    const first = this.at
    while (this.at < this.end && isDigit(this.bytes[this.at])) this.at++
    return this.at > first || this.fail('a digit')
  }

  #scanWord(word: Buffer): boolean {
    if (this.at + word.length > this.end || this.bytes.compare(word, 0, word.length, this.at, this.at + word.length)) {
      return this.fail('a value')
    }
    this.at += word.length
    return true
  }

  /** Consumes a value that is neither object nor array; white space before it is consumed already. */
  #scanScalar(first: number): JsonKind {
    if (first === QUOTE) return this.scanString() ? jsonKinds.string : jsonKinds.broken
    if (first === MINUS || isDigit(first)) return this.scanNumber() ? jsonKinds.number : jsonKinds.broken
    if (first === 0x6e) return this.#scanWord(NULL) ? jsonKinds.null : jsonKinds.broken
    if (first === 0x74) return this.#scanWord(TRUE) ? jsonKinds.boolean : jsonKinds.broken
    if (first === 0x66) return this.#scanWord(FALSE) ? jsonKinds.boolean : jsonKinds.broken
    this.fail('a value')
    return jsonKinds.broken
  }

  /** Consumes any value, white space before it included. @param depth how many objects and arrays are open around it. */
  scanValue(depth: number): JsonKind {
    const first = this.peek()
    if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return this.#scanScalar(first)
    if (!this.#scanNested(depth)) return jsonKinds.broken
    return first === OPEN_BRACE ? jsonKinds.object : jsonKinds.array
  }

  /** Consumes an object or array and all in it, without recursion: depth costs a byte, not a stack frame. */
  #scanNested(outerDepth: number): boolean {
    let depth = outerDepth
    for (;;) {
      let isClosed = true
      const first = this.peek()
      if (first === OPEN_BRACE || first === OPEN_BRACKET) {
        if (depth >= limits.jsonDepthMax) {
          this.problem = `nested deeper than the limit of ${limits.jsonDepthMax} levels`
          return false
        }
        this.#containers[++depth] = first
        this.at++
        isClosed = this.peek() === (first === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET)
        if (isClosed) {
          this.at++
          depth--
        } else if (first === OPEN_BRACE && !this.scanName()) return false
      } else if (this.#scanScalar(first) === jsonKinds.broken) return false
      if (!isClosed) continue
      depth = this.#closeContainers(outerDepth, depth)
      if (depth < 0) return false
      if (depth === outerDepth) return true
    }
  }

  /**
   * After a value: consumes closing marks up to the next comma, and the name that follows it in an object.
   * @returns the depth of the value that comes next; outerDepth if all is closed; −1 on a fault.
   */
  #closeContainers(outerDepth: number, depthNow: number): number {
    let depth = depthNow
    while (depth > outerDepth) {
      const isObject = this.#containers[depth] === OPEN_BRACE
      const next = this.peek()
      if (next === COMMA) {
        this.at++
        return isObject && !this.scanName() ? -1 : depth
      }
      if (next !== (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
        this.fail(isObject ? 'a comma or }' : 'a comma or ]')
        return -1
      }
      this.at++
      depth--
    }
    return depth
  }

  /** True if only white space is left. */
  scanEnd(): boolean {
    if (this.peek() === -1) return true
    this.problem = 'nothing should follow the value'
    return false
  }
}
