/**
 * Loads the native CRC32C of the optional package `@node-rs/crc32`, once per thread, when this module is first imported.
 * Where the package or its binary is missing, crc32c.ts computes the same values itself, only slower.
 */
import { createRequire } from 'node:module'

/** CRC32C of all of `bytes`, continued from `seed`. Takes views of shared memory. @returns u32. */
export type NativeCrc32c = (bytes: Uint8Array, seed: number) => number

const require = createRequire(import.meta.url)

/** CRC32C of the ASCII digits 1 to 9: the check value that every description of the checksum gives. */
const CHECK_VALUE = 0xe3069283

function isCrc32c(candidate: unknown): candidate is NativeCrc32c {
  return typeof candidate === 'function' && candidate(Buffer.from('123456789'), 0) === CHECK_VALUE
}

function load(): { crc32c: NativeCrc32c | null; problem: string | null } {
  try {
    const loaded: { crc32c?: unknown } = require('@node-rs/crc32')
    if (isCrc32c(loaded.crc32c)) return { crc32c: loaded.crc32c, problem: null }
    return { crc32c: null, problem: 'the native CRC32C does not give the known check value' }
  } catch (error) {
    // MODULE_NOT_FOUND (the package is optional) or a binary that this system cannot load: both mean the fallback.
    return { crc32c: null, problem: error instanceof Error ? error.message : String(error) }
  }
}

const loaded = load()

/** The native function, or null. */
export const nativeCrc32c: NativeCrc32c | null = loaded.crc32c

/** Why there is no native function, for the log; null if there is one. */
export const nativeCrc32cProblem: string | null = loaded.problem
