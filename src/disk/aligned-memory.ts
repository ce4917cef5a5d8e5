/**
 * Memory that direct files can be read into and written from, and the alignment they ask for. Any thread; a buffer
 * belongs to the thread that made it: on another one it is not known to be aligned.
 *
 * Buffers are not aligned and JavaScript cannot tell an address, so the memory comes from WebAssembly, whose memories
 * begin at a page of the machine, and is remembered here.
 */
import { assert } from '../base/assert.ts'

/** Positions, lengths and memory addresses of direct reads and writes are multiples of this. */
export const DIRECT_BLOCK_BYTES = 4096

/** Size of a page of a WebAssembly memory, fixed by its standard. */
const WASM_PAGE_BYTES = 65_536

/** What is used of the standard: the types of the language alone do not have it. */
declare const WebAssembly: {
  readonly Memory: new (pages: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer }
}

const alignedMemories = new WeakSet<ArrayBufferLike>()

/**
 * A zeroed buffer that begins at an address divisible by DIRECT_BLOCK_BYTES.
 *
 * @cost whole pages of 64 KiB, and some GiB of address space (no memory) for guard pages: make few, and keep them.
 * @throws RangeError if there is no memory.
 */
export function alignedBuffer(bytes: number): Buffer {
  assert(Number.isSafeInteger(bytes) && bytes > 0, 'an aligned buffer holds at least a byte')
  const pages = Math.ceil(bytes / WASM_PAGE_BYTES)
  const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages })
  alignedMemories.add(buffer)
  return Buffer.from(buffer, 0, bytes)
}

/** True if memory[start] is known to lie at an address divisible by DIRECT_BLOCK_BYTES. */
export function isAligned(memory: Uint8Array, start: number): boolean {
  return alignedMemories.has(memory.buffer) && (memory.byteOffset + start) % DIRECT_BLOCK_BYTES === 0
}

/** What a direct read or write of `length` bytes between memory[start…] and `position` of a file must keep. */
export function assertDirect(memory: Uint8Array, start: number, length: number, position: number): void {
  assert(position % DIRECT_BLOCK_BYTES === 0, 'a direct file is read and written at whole blocks')
  assert(length % DIRECT_BLOCK_BYTES === 0, 'a direct file is read and written in whole blocks')
  assert(isAligned(memory, start), 'a direct file is read and written from aligned memory')
}

/** Where a write of [start, end) that is struck half way stops: at a whole block if the file is direct. */
export function halfWay(start: number, end: number, isDirect: boolean): number {
  const half = (end - start) >> 1
  return start + (isDirect ? half - (half % DIRECT_BLOCK_BYTES) : half)
}
