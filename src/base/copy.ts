/**
 * The one way in which record bytes are copied, so that copies can be counted.
 * One counter per thread; a test compares it with the payload that passed.
 */

/** Bytes of records copied by this thread since it started. Written by copyBytes alone. */
export const copied = { bytes: 0 }

/** Below this a byte loop beats the call into native memmove (measured: about 48 B). */
const LOOP_BYTES = 48

/**
 * Copies source[start, end) to target[at…]; both may be views of shared memory. The caller has checked the room.
 *
 * @cost one memmove. Buffer.copy of a strict sub-range is one; of a whole buffer, where either is shared memory, it is a loop
 * that is atomic byte by byte, at a quarter of the speed (measured). So a whole one goes without its last byte, and that after.
 * @returns the position after the last byte written.
 */
export function copyBytes(source: Buffer, start: number, end: number, target: Buffer, at: number): number {
  const length = end - start
  copied.bytes += length
  if (length <= LOOP_BYTES) {
    for (let i = 0; i < length; i++) target[at + i] = source[start + i] as number
  } else if (length === source.length) {
    source.copy(target, at, 0, length - 1)
    target[at + length - 1] = source[length - 1] as number
  } else {
    source.copy(target, at, start, end)
  }
  return at + length
}
