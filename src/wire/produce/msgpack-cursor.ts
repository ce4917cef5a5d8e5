/**
 * A cursor over the bytes of one MessagePack value: checks form, finds where values start and end, builds nothing.
 * Any thread. No length in it is believed: an array, map, string or binary that says more than the bytes that follow could
 * hold is refused before anything is done with it.
 *
 * Methods return false, or the kind `broken`, at the first fault, and leave `problem` and `at` for the message.
 */
import { limits } from '../../model/limits.ts'
import { TWO_32 } from '../primitives/u64.ts'

/** What stands at a place. `broken`: see `problem`. */
export const packKinds = {
  broken: 0,
  nil: 1,
  boolean: 2,
  number: 3,
  text: 4,
  bytes: 5,
  array: 6,
  map: 7,
  extension: 8
} as const
export type PackKind = (typeof packKinds)[keyof typeof packKinds]

const NO_BYTES: Buffer = Buffer.alloc(0)
const NO_VIEW = new DataView(new ArrayBuffer(0))

export class MsgpackCursor {
  /** The value is bytes[at, end); borrowed from open() to close(). */
  bytes: Buffer = NO_BYTES
  at = 0
  end = 0
  /** What is wrong at `at`, without the position; empty while nothing is. */
  problem = ''

  /** Of the last text, bytes or extension: bytes[start, stop). */
  start = 0
  stop = 0
  /** Of the last array: elements; of a map: pairs. */
  count = 0
  /** The last number is whole, and is these two halves as i64; a float counts if it is whole and a safe integer. */
  isI64 = false
  high = 0
  low = 0

  #view: DataView = NO_VIEW
  /** Values that are left of each container that is open. */
  readonly #left = new Float64Array(limits.jsonDepthMax + 1)

  open(bytes: Buffer, start: number, end: number): void {
    this.bytes = bytes
    this.at = start
    this.end = end
    this.problem = ''
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, end)
  }

  /** Lets go of the bytes. */
  close(): void {
    this.bytes = NO_BYTES
    this.#view = NO_VIEW
  }

  /** Consumes one value that is no container, or the head of one: what is in it comes next. */
  scanHead(): PackKind {
    const { bytes, at, end } = this
    if (at >= end) return this.#fail('it ends where a value should be')
    const type = bytes[at] as number
    this.at = at + 1
    if (type < 0x80) return this.#integer(0, type)
    if (type >= 0xe0) return this.#integer(-1, (type - 0x100) >>> 0)
    if (type >= 0xa0 && type < 0xc0) return this.#range(packKinds.text, type & 0x1f)
    if (type < 0x90) return this.#container(packKinds.map, type & 0x0f)
    if (type < 0xa0) return this.#container(packKinds.array, type & 0x0f)
    return this.#longHead(type)
  }

  /** The types that have a byte of their own: 0xc0 to 0xdf. */
  #longHead(type: number): PackKind {
    if (type === 0xc0) return packKinds.nil
    if (type === 0xc2 || type === 0xc3) return packKinds.boolean
    if (type >= 0xc4 && type <= 0xc6) return this.#sized(packKinds.bytes, type - 0xc4, 0)
    if (type >= 0xc7 && type <= 0xc9) return this.#sized(packKinds.extension, type - 0xc7, 1)
    if (type >= 0xca && type <= 0xd3) return this.#number(type)
    if (type >= 0xd4 && type <= 0xd8) return this.#range(packKinds.extension, 1 + (1 << (type - 0xd4)))
    if (type >= 0xd9 && type <= 0xdb) return this.#sized(packKinds.text, type - 0xd9, 0)
    if (type >= 0xdc) return this.#sized(type < 0xde ? packKinds.array : packKinds.map, 1 + (type & 1), 0)
    this.at--
    return this.#fail('the byte 0xc1 is no MessagePack')
  }

  /** A length of 1, 2 or 4 bytes, then what it is the length of. @param scale 0, 1, 2. @param more bytes beside it. */
  #sized(kind: PackKind, scale: number, more: number): PackKind {
    const { at } = this
    const behind = at + (1 << scale)
    if (behind > this.end) return this.#fail('it ends inside a length')
    const view = this.#view
    const length = scale === 0 ? view.getUint8(at) : scale === 1 ? view.getUint16(at) : view.getUint32(at)
    this.at = behind
    return kind === packKinds.array || kind === packKinds.map
      ? this.#container(kind, length)
      : this.#range(kind, length + more)
  }

  #range(kind: PackKind, length: number): PackKind {
    const { at } = this
    if (length > this.end - at) {
      return this.#fail(`${length} bytes should be here, but only ${this.end - at} follow`)
    }
    this.start = at
    this.stop = at + length
    this.at = this.stop
    return kind
  }

  /** Each value in it takes a byte at least. */
  #container(kind: PackKind, count: number): PackKind {
    const values = kind === packKinds.map ? count * 2 : count
    const left = this.end - this.at
    if (values > left) return this.#fail(`${values} values should be here, but only ${left} bytes follow`)
    this.count = count
    return kind
  }

  /** 0xca, 0xcb: floats; 0xcc to 0xcf: unsigned, 0xd0 to 0xd3: signed, each of 1, 2, 4 and 8 bytes. */
  #number(type: number): PackKind {
    const { at } = this
    const view = this.#view
    const length = type < 0xcc ? 4 << (type - 0xca) : 1 << (type & 3)
    if (length > this.end - at) return this.#fail('it ends inside a number')
    this.at = at + length
    switch (type) {
      case 0xca:
        return this.#float(view.getFloat32(at))
      case 0xcb:
        return this.#float(view.getFloat64(at))
      case 0xcc:
        return this.#integer(0, view.getUint8(at))
      case 0xcd:
        return this.#integer(0, view.getUint16(at))
      case 0xce:
        return this.#integer(0, view.getUint32(at))
      case 0xcf:
        this.#integer(view.getInt32(at), view.getUint32(at + 4))
        this.isI64 = this.high >= 0
        return packKinds.number
      case 0xd0:
        return this.#signed(view.getInt8(at))
      case 0xd1:
        return this.#signed(view.getInt16(at))
      case 0xd2:
        return this.#signed(view.getInt32(at))
      default:
        return this.#integer(view.getInt32(at), view.getUint32(at + 4))
    }
  }

  #integer(high: number, low: number): PackKind {
    this.isI64 = true
    this.high = high
    this.low = low
    return packKinds.number
  }

  #signed(value: number): PackKind {
    return this.#integer(value < 0 ? -1 : 0, value >>> 0)
  }

  #float(value: number): PackKind {
    const isWhole = Number.isSafeInteger(value)
    this.#integer(isWhole ? Math.floor(value / TWO_32) | 0 : 0, isWhole ? value >>> 0 : 0)
    this.isI64 = isWhole
    return packKinds.number
  }

  /** Consumes any value and all in it. @param depth how many containers are open around it. */
  scanValue(depth: number): PackKind {
    const kind = this.scanHead()
    if (kind !== packKinds.array && kind !== packKinds.map) return kind
    return this.skipContainer(kind, depth) ? kind : packKinds.broken
  }

  /** Consumes what is in the container whose head was just read, without recursion: depth costs a number, not a stack frame. */
  skipContainer(kind: PackKind, outerDepth: number): boolean {
    if (!this.checkDepth(outerDepth)) return false
    const left = this.#left
    let depth = outerDepth
    left[depth] = kind === packKinds.map ? this.count * 2 : this.count
    while (depth >= outerDepth) {
      if (left[depth] === 0) {
        depth--
        continue
      }
      left[depth] = (left[depth] as number) - 1
      const inner = this.scanHead()
      if (inner === packKinds.broken) return false
      if (inner !== packKinds.array && inner !== packKinds.map) continue
      if (!this.checkDepth(depth + 1)) return false
      left[++depth] = inner === packKinds.map ? this.count * 2 : this.count
    }
    return true
  }

  /** @param depth how many containers are open around one. @returns whether it may be opened. */
  checkDepth(depth: number): boolean {
    if (depth < limits.jsonDepthMax) return true
    this.#fail(`nested deeper than the limit of ${limits.jsonDepthMax} levels`)
    return false
  }

  /** True if nothing is left. */
  scanEnd(): boolean {
    if (this.at === this.end) return true
    this.#fail('nothing should follow the value')
    return false
  }

  #fail(problem: string): PackKind {
    this.problem = problem
    return packKinds.broken
  }
}
