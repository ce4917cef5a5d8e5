/**
 * A seeded generator for random tests: the seed comes from MILLRACE_SEED or the clock, is named in every failure, and
 * `replay` is the command line that repeats the run.
 */
export interface SeededRandom {
  readonly seed: number
  /** For failure messages: the seed and how to run it again. */
  readonly replay: string
  /** A whole number from 0 to end − 1. */
  below(end: number): number
  bytes(count: number): Buffer
}

/** @param file name of the test file, for the replay command. */
export function newRandom(file: string): SeededRandom {
  const seed = Number(process.env['MILLRACE_SEED'] ?? Date.now() % 0x7fff_ffff)
  let state = seed >>> 0
  // splitmix32: short, and good enough to choose cases.
  const nextU32 = (): number => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed ^= mixed >>> 15
    mixed = Math.imul(mixed, 0x735a2d97)
    return (mixed ^ (mixed >>> 15)) >>> 0
  }
  const below = (end: number): number => Math.floor((nextU32() / 0x1_0000_0000) * end)
  return {
    seed,
    replay: `seed ${seed}; replay: MILLRACE_SEED=${seed} node --test ${file}`,
    below,
    bytes(count) {
      const bytes = Buffer.alloc(count)
      for (let i = 0; i < count; i++) bytes[i] = below(256)
      return bytes
    }
  }
}
