/**
 * The two hashes that route keys to partitions: FNV-1a 64 and murmur2 (model/key-hashes.ts has them by name).
 * Pure functions, any thread. Both are contracts: a changed result moves keys to other partitions, so never "improve" one.
 * Arithmetic is 32-bit integers only; nothing here allocates.
 */
import { assert } from './assert.ts'

/** A hash of bytes[start, end), reduced to 0 … modulus − 1. */
export type KeyHash = (bytes: Uint8Array, start: number, end: number, modulus: number) => number

const FNV_BASIS_HIGH = 0xcbf29ce4 | 0
const FNV_BASIS_LOW = 0x84222325 | 0
/** The FNV prime is 2^40 + 0x1b3: a multiplication by this part and a shift by the other. */
const FNV_PRIME_LOW = 0x1b3
/** Below this the reduction stays exact in a double: (modulus − 1)² + 2^32 < 2^53. */
const FNV_MODULUS_END = 2 ** 20

const MURMUR_SEED = 0x9747b28c | 0
const MURMUR_MULTIPLIER = 0x5bd1e995

/**
 * FNV-1a, 64 bits, of bytes[start, end), reduced to 0 … modulus − 1.
 *
 * @param modulus whole number, 1 ≤ modulus < 2^20 (a topic has at most 10,000 partitions).
 * @cost about 3 ns per byte.
 */
export function fnv1a64Modulo(bytes: Uint8Array, start: number, end: number, modulus: number): number {
  assert(modulus >= 1 && modulus < FNV_MODULUS_END, 'the modulus of a key hash must be from 1 to 2^20 − 1')
  assert(start >= 0 && start <= end && end <= bytes.length, 'the key must lie inside its bytes')
  let high = FNV_BASIS_HIGH
  let low = FNV_BASIS_LOW
  for (let i = start; i < end; i++) {
    low ^= bytes[i] as number
    // low × 0x1b3 in halves of 16 bits, because the full product has 41 bits; what exceeds 32 is the carry into high.
    const product0 = (low & 0xffff) * FNV_PRIME_LOW
    const product1 = (low >>> 16) * FNV_PRIME_LOW + (product0 >>> 16)
    // low × 2^40 lands in high, shifted by 40 − 32 bits.
    high = (Math.imul(high, FNV_PRIME_LOW) + (low << 8) + (product1 >>> 16)) | 0
    low = (product1 << 16) | (product0 & 0xffff)
  }
  return (((high >>> 0) % modulus) * (0x1_0000_0000 % modulus) + (low >>> 0)) % modulus
}

/**
 * murmur2 of bytes[start, end) as Kafka's default partitioner computes it (fixed seed, little-endian words).
 *
 * @returns a signed 32-bit number.
 */
export function murmur2(bytes: Uint8Array, start: number, end: number): number {
  assert(start >= 0 && start <= end && end <= bytes.length, 'the key must lie inside its bytes')
  const length = end - start
  let hash = MURMUR_SEED ^ length
  const wordsEnd = start + (length & ~3)
  let i = start
  for (; i < wordsEnd; i += 4) {
    const word =
      (bytes[i] as number) |
      ((bytes[i + 1] as number) << 8) |
      ((bytes[i + 2] as number) << 16) |
      ((bytes[i + 3] as number) << 24)
    const mixed = Math.imul(word, MURMUR_MULTIPLIER)
    hash = Math.imul(hash, MURMUR_MULTIPLIER) ^ Math.imul(mixed ^ (mixed >>> 24), MURMUR_MULTIPLIER)
  }
  const rest = end - i
  if (rest > 0) {
    if (rest > 2) hash ^= (bytes[i + 2] as number) << 16
    if (rest > 1) hash ^= (bytes[i + 1] as number) << 8
    hash = Math.imul(hash ^ (bytes[i] as number), MURMUR_MULTIPLIER)
  }
  hash = Math.imul(hash ^ (hash >>> 13), MURMUR_MULTIPLIER)
  return hash ^ (hash >>> 15)
}

/** The partition that Kafka's Java client gives a key, of `modulus` partitions: its murmur2 without the sign, and the rest. */
export function murmur2Modulo(bytes: Uint8Array, start: number, end: number, modulus: number): number {
  assert(modulus >= 1, 'the modulus of a key hash must be from 1 on')
  return (murmur2(bytes, start, end) & 0x7fff_ffff) % modulus
}
