/**
 * Seeded dice for the tests of the log. One instance belongs to one test; the same seed gives the same throws.
 */
export interface Dice {
  readonly seed: number
  /** Uniform in [0, 1): what SimulatedDisk.crash wants. */
  readonly unit: () => number
  /** A whole number from 0 to end − 1. */
  below(end: number): number
  /** True with that probability. */
  chance(probability: number): boolean
  bytes(count: number): Buffer
  pick<T>(choices: readonly T[]): T
}

/** splitmix32: short, and good enough to choose cases. */
export function diceOf(seed: number): Dice {
  let state = seed >>> 0
  const unit = (): number => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed ^= mixed >>> 15
    mixed = Math.imul(mixed, 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 0x1_0000_0000
  }
  const below = (end: number): number => Math.floor(unit() * end)
  return {
    seed,
    unit,
    below,
    chance: probability => unit() < probability,
    bytes(count) {
      const bytes = Buffer.alloc(count)
      for (let i = 0; i + 4 <= count; i += 4) bytes.writeUInt32LE(below(0x1_0000_0000), i)
      for (let i = count & ~3; i < count; i++) bytes[i] = below(256)
      return bytes
    },
    pick(choices) {
      const choice = choices[below(choices.length)]
      if (choice === undefined) throw new RangeError('nothing to pick from')
      return choice
    }
  }
}

/** The seed of a run that is not asked for a certain one: MILLRACE_SEED, else the clock. */
export function chosenSeed(): number {
  const asked = process.env['MILLRACE_SEED']
  return asked === undefined ? Date.now() % 0x7fff_ffff : Number(asked)
}

/** For failure messages: the seed and the command that repeats the run. */
export function replayLine(seed: number, file: string): string {
  return `seed ${seed}; replay: MILLRACE_SEED=${seed} node --test ${file}`
}
