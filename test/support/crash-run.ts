/**
 * What a crash test is asked for by its environment: MILLRACE_SEED replays a run, MILLRACE_LONG=1 makes it a long one.
 * Both are taken out of the environment: a broker started as a child would inherit them, and refuses what it does not know.
 */
import { chosenSeed, diceOf } from './log-random.ts'

/** Seed of the tests of this process. */
export const seed = chosenSeed()
export const isLong = process.env['MILLRACE_LONG'] === '1'

delete process.env['MILLRACE_SEED']
delete process.env['MILLRACE_LONG']

/** All of them in a long run; else so many, in their order, which the seed chooses. */
export function sampleOf<T>(all: readonly T[], count: number): readonly T[] {
  if (isLong) return all
  const dice = diceOf(seed)
  const left = [...all]
  while (left.length > count) left.splice(dice.below(left.length), 1)
  return left
}
