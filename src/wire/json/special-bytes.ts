/**
 * Where the bytes stand that may end a plain stretch of a JSON string: quotes, backslashes and control characters. A WebAssembly
 * function of a few instructions, at the end of this file, looks at sixteen bytes at once. Any thread; the text is copied into
 * a window of its own, piece by piece, so that it may lie anywhere.
 */
/** The most that is looked at in one go. */
const WINDOW_BYTES_MAX = 64 * 1024
/** The first look takes so much, each further one twice as much as the last: most texts are small. */
const WINDOW_BYTES_FIRST = 2 * 1024
/** Bytes behind the text that are looked at with it. */
const LANES = 16
/** Where the positions are in memory: u16 each, from the beginning of the window. */
const POSITIONS_AT = 2 * WINDOW_BYTES_MAX
const MEMORY_PAGES = 4
const EMPTY: Buffer = Buffer.alloc(0)

/** What is used of the standard: the types of the language alone do not have it. */
interface Compiled {
  readonly memory: { readonly buffer: ArrayBuffer }
  /** @param length of the text at the beginning of the memory. @returns how many positions were written. */
  readonly index: (length: number) => number
}
declare const WebAssembly: {
  readonly Module: new (code: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: Compiled }
}

export class SpecialBytes {
  readonly #window: Buffer
  readonly #positions: Uint16Array
  readonly #index: (length: number) => number
  #text: Buffer = EMPTY
  #end = 0
  /** The window is text[start, windowEnd). */
  #start = 0
  #windowEnd = 0
  #windowBytes = WINDOW_BYTES_FIRST
  #count = 0
  /** Of the positions, the first that was not passed. */
  #next = 0
  #from = 0

  constructor() {
    const { memory, index } = new WebAssembly.Instance(new WebAssembly.Module(moduleCode())).exports
    this.#window = Buffer.from(memory.buffer, 0, WINDOW_BYTES_MAX)
    this.#positions = new Uint16Array(memory.buffer, POSITIONS_AT, WINDOW_BYTES_MAX)
    this.#index = index
  }

  /** Begins with text[…, end), borrowed until close(). Costs nothing until something is asked. */
  open(text: Buffer, end: number): void {
    this.#text = text
    this.#end = end
    this.#start = 0
    this.#windowEnd = 0
    this.#windowBytes = WINDOW_BYTES_FIRST
    this.#count = 0
    this.#next = 0
    this.#from = 0
  }

  /** Lets go of the text. */
  close(): void {
    this.open(EMPTY, 0)
  }

  /** True from open() with this text and end to the next open() or close(). */
  isOpenOn(text: Buffer, end: number): boolean {
    return this.#text === text && this.#end === end
  }

  /** @returns the first special byte from there on, or the end. @cost each byte is looked at once while `from` grows. */
  nextFrom(from: number): number {
    if (from < this.#from) this.#load(from)
    this.#from = from
    for (;;) {
      const start = this.#start
      for (let i = this.#next; i < this.#count; i++) {
        const at = start + (this.#positions[i] as number)
        if (at < from) continue
        this.#next = i
        return at
      }
      this.#next = this.#count
      const unseen = Math.max(from, this.#windowEnd)
      if (unseen >= this.#end) return this.#end
      this.#load(unseen)
    }
  }

  /** The window is the text from there on. */
  #load(start: number): void {
    const length = Math.min(this.#windowBytes, this.#end - start)
    // No record moves on here: what is copied is looked at and forgotten, so it is not counted as one that does.
    this.#text.copy(this.#window, 0, start, start + length)
    this.#windowBytes = Math.min(2 * this.#windowBytes, WINDOW_BYTES_MAX)
    this.#start = start
    this.#windowEnd = start + length
    this.#count = this.#index(length)
    this.#next = 0
  }
}

// The rest is that module in the binary form of WebAssembly: https://webassembly.github.io/spec/core/binary/

const I32 = 0x7f
const V128 = 0x7b
const NO_RESULT = 0x40

const BLOCK = [0x02, NO_RESULT]
const LOOP = [0x03, NO_RESULT]
const END = [0x0b]
const BRANCH = 0x0c
const BRANCH_IF = 0x0d
const GET = 0x20
const SET = 0x21
const TEE = 0x22
const I32_STORE16 = [0x3b, 1, 0]
const I32_CONST = 0x41
const I32_EQZ = [0x45]
const I32_GE_U = [0x4f]
const I32_CTZ = [0x68]
const I32_ADD = [0x6a]
const I32_SUB = [0x6b]
const I32_AND = [0x71]
const I32_SHR_U = [0x76]
const V128_LOAD = [0xfd, 0, 0, 0]
const V128_STORE = [0xfd, 11, 0, 0]
const I8X16_SPLAT = [0xfd, 15]
const I8X16_EQ = [0xfd, 35]
const I8X16_LT_U = [0xfd, 38]
const V128_OR = [0xfd, 80]
const I8X16_BITMASK = [0xfd, 100]

/** A number ≥ 0 in LEB128; for `i32.const` too, where bit 6 of the last byte would be the sign. */
function leb(value: number, isSigned = false): number[] {
  const bytes: number[] = []
  let rest = value
  for (;;) {
    const low = rest & 0x7f
    rest >>>= 7
    if (rest === 0 && (!isSigned || low < 0x40)) return [...bytes, low]
    bytes.push(low | 0x80)
  }
}

const constant = (value: number): number[] => [I32_CONST, ...leb(value, true)]
const sized = (content: readonly number[]): number[] => [...leb(content.length), ...content]
const section = (id: number, content: readonly number[]): number[] => [id, ...sized(content)]
const named = (name: string): number[] => sized([...Buffer.from(name)])

/** `index(length)`: writes the positions of the special bytes of memory[0, length). */
function indexBody(): number[] {
  const [length, at, hits, to, lanes, quote, backslash, space] = [0, 1, 2, 3, 4, 5, 6, 7]
  const splat = (byte: number, local: number): number[] => [...constant(byte), ...I8X16_SPLAT, SET, local]
  const code = [
    ...splat(0x22, quote),
    ...splat(0x5c, backslash),
    ...splat(0x20, space),
    // What is looked at behind the text is no special byte.
    ...[GET, length, GET, space, ...V128_STORE],
    ...[...constant(POSITIONS_AT), SET, to],
    ...[...BLOCK, ...LOOP],
    ...[GET, at, GET, length, ...I32_GE_U, BRANCH_IF, 1],
    ...[GET, at, ...V128_LOAD, TEE, lanes, GET, quote, ...I8X16_EQ],
    ...[GET, lanes, GET, backslash, ...I8X16_EQ, ...V128_OR],
    ...[GET, lanes, GET, space, ...I8X16_LT_U, ...V128_OR, ...I8X16_BITMASK, SET, hits],
    // One position for each bit of hits, the lowest first.
    ...[...BLOCK, ...LOOP],
    ...[GET, hits, ...I32_EQZ, BRANCH_IF, 1],
    ...[GET, to, GET, at, GET, hits, ...I32_CTZ, ...I32_ADD, ...I32_STORE16],
    ...[GET, to, ...constant(2), ...I32_ADD, SET, to],
    ...[GET, hits, GET, hits, ...constant(1), ...I32_SUB, ...I32_AND, SET, hits],
    ...[BRANCH, 0, ...END, ...END],
    ...[GET, at, ...constant(LANES), ...I32_ADD, SET, at],
    ...[BRANCH, 0, ...END, ...END],
    ...[GET, to, ...constant(POSITIONS_AT), ...I32_SUB, ...constant(1), ...I32_SHR_U],
    ...END
  ]
  const locals = [2, 3, I32, 4, V128]
  return sized([...locals, ...code])
}

/** The module: exports `memory` and `index`, imports nothing. */
function moduleCode(): Uint8Array {
  const magicAndVersion = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
  return Uint8Array.from([
    ...magicAndVersion,
    ...section(1, [1, 0x60, 1, I32, 1, I32]),
    ...section(3, [1, 0]),
    ...section(5, [1, 1, MEMORY_PAGES, MEMORY_PAGES]),
    ...section(7, [2, ...named('memory'), 2, 0, ...named('index'), 0, 0]),
    ...section(10, [1, ...indexBody()])
  ])
}
