/**
 * Reads plain values out of msgpack that nobody vouches for: of a manifest that was damaged, or forged. Pure.
 *
 * Two steps. `unpackPlain` walks the bytes before the package sees them, and lets through only numbers, texts, booleans,
 * null and arrays, every length of which fits into what is left: so nothing is allocated from a length that lies, and
 * none of the package's extensions (dates, errors, expressions, typed arrays) can be asked for. `Fields` then takes the
 * values of an array one by one and notes the first that is not what it should be.
 */
import { unpackMessage } from '../wire/msgpack.ts'

/** Arrays in arrays. A manifest has none; a bound keeps the walk short. */
const DEPTH_MAX = 8

/** The one plain value that fills bytes[start, end); undefined if they hold anything else. */
export function unpackPlain(bytes: Buffer, start: number, end: number): unknown {
  return isPlain(bytes, start, end) ? unpackMessage(bytes, start, end) : undefined
}

/** True if bytes[start, end) are exactly one value made of numbers, texts, booleans, null and arrays. */
function isPlain(bytes: Buffer, start: number, end: number): boolean {
  /** Values still to come, by depth of the array they stand in. */
  const missing = [1]
  let at = start
  while (missing.length > 0) {
    const left = missing.pop() ?? 0
    if (left === 0) continue
    if (at >= end || missing.length >= DEPTH_MAX) return false
    missing.push(left - 1)
    const token = bytes.readUInt8(at)
    const lengthBytes = lengthBytesOf(token)
    if (lengthBytes < 0 || at + 1 + lengthBytes > end) return false
    const length = lengthBytes === 0 ? 0 : bytes.readUIntBE(at + 1, lengthBytes)
    at += 1 + lengthBytes
    if (isArray(token)) {
      missing.push(lengthBytes === 0 ? token & 0x0f : length)
    } else {
      const size = fixedBytesOf(token) ?? length
      if (size > end - at) return false
      at += size
    }
  }
  return at === end
}

function isArray(token: number): boolean {
  return (token & 0xf0) === 0x90 || token === 0xdc || token === 0xdd
}

/** Bytes of the length behind the token of a text or an array; 0: it has none; −1: the token is not plain. */
function lengthBytesOf(token: number): number {
  if (token === 0xd9) return 1
  if (token === 0xda || token === 0xdc) return 2
  if (token === 0xdb || token === 0xdd) return 4
  return isArray(token) || fixedBytesOf(token) !== null ? 0 : -1
}

/** Bytes behind a token that says itself how many; null: it does not, or it is not plain. */
function fixedBytesOf(token: number): number | null {
  if (token <= 0x7f || token >= 0xe0) return 0
  if ((token & 0xe0) === 0xa0) return token & 0x1f
  switch (token) {
    case 0xc0: // null
    case 0xc2: // false
    case 0xc3: // true
      return 0
    case 0xcc: // u8
    case 0xd0: // i8
      return 1
    case 0xcd: // u16
    case 0xd1: // i16
      return 2
    case 0xce: // u32
    case 0xd2: // i32
      return 4
    case 0xcb: // f64: how the package writes whole numbers beyond 32 bits
      return 8
    default:
      return null
  }
}

/** The first thing found wrong. */
export interface Faults {
  problem: string | null
}

/**
 * Takes the values of one list in order. What is not what it should be is noted, and a harmless value (0, false, an empty
 * text) stands for it; the caller looks at the faults before it uses any.
 */
export class Fields {
  readonly #values: readonly unknown[]
  readonly #faults: Faults
  #taken = 0

  /** @param value what should be a list. */
  constructor(value: unknown, faults: Faults) {
    this.#faults = faults
    this.#values = Array.isArray(value) ? value : []
    if (!Array.isArray(value)) this.#note('it is no list')
  }

  /** A whole number of at most 53 bits, of either sign. */
  integer(name: string): number {
    const value = this.#values[this.#taken++]
    if (typeof value === 'number' && Number.isSafeInteger(value)) return value
    this.#note(`${name} is no whole number`)
    return 0
  }

  text(name: string): string {
    const value = this.#values[this.#taken++]
    if (typeof value === 'string') return value
    this.#note(`${name} is no text`)
    return ''
  }

  textOrNull(name: string): string | null {
    if (this.#values[this.#taken] !== null) return this.text(name)
    this.#taken++
    return null
  }

  boolean(name: string): boolean {
    const value = this.#values[this.#taken++]
    if (typeof value === 'boolean') return value
    this.#note(`${name} is neither true nor false`)
    return false
  }

  /** How many items follow. Never more than there are values left: an item takes one at least. */
  count(name: string): number {
    const count = this.integer('number of items')
    if (count >= 0 && count <= this.#values.length - this.#taken) return count
    this.#note(`the number of ${name} is out of range`)
    return 0
  }

  /** A count, and as many items; `take` takes one. Stops at the first fault. */
  items<T>(name: string, take: () => T): T[] {
    const items: T[] = []
    for (let left = this.count(name); left > 0 && this.#faults.problem === null; left--) items.push(take())
    return items
  }

  /** True while something is left. */
  get hasMore(): boolean {
    return this.#taken < this.#values.length
  }

  /** Notes what is left over. */
  end(): void {
    if (this.#taken < this.#values.length) this.#note('it has more fields than it should have')
  }

  #note(problem: string): void {
    this.#faults.problem ??= problem
  }
}
