/**
 * What the records of a load hold: printable pseudo-random text, so that no layer can gain from equal bytes, and keys that
 * repeat. The same seed gives the same bytes on every machine. Pure; any thread.
 */

/** Distinct keys of a keyed load: enough to reach every partition, few enough to repeat. */
export const KEY_COUNT = 100_000

/** Printable ASCII that JSON writes as it is: no quote, no backslash. */
const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_')

/** A small fixed generator (xorshift32) of unsigned 32-bit numbers. */
export function createDice(seed: number): () => number {
  let state = seed | 0 || 0x9e3779b9
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state >>> 0
  }
}

/** Fills `target` from `start` to before `end`. */
export function fillText(target: Buffer, start: number, end: number, dice: () => number): void {
  for (let at = start; at < end; at++) target[at] = ALPHABET[dice() & 63] as number
}

/** `key-000042`: all keys are of one length. */
export function keyOf(number: number): string {
  return `key-${String(number).padStart(6, '0')}`
}
