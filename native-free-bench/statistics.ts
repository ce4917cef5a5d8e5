/**
 * The few sums that a comparison of rounds needs. Pure; any thread.
 * Ratios are taken within a round first, because two cases of one round saw the same weather.
 */

/** The middle value; the mean of the two middle ones for an even count; NaN of nothing. */
export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** A ratio over rounds: one value per round that has both sides, and their median (NaN if there is none). */
export interface Ratio {
  readonly perRound: readonly number[]
  readonly median: number
}

/**
 * numerator[round] / denominator[round]. Rounds in which a side is missing or zero are left out, so a failed case
 * never pairs with the weather of another round.
 */
export function pairedRatio(
  numerator: readonly (number | undefined)[],
  denominator: readonly (number | undefined)[]
): Ratio {
  const perRound: number[] = []
  for (let round = 0; round < Math.min(numerator.length, denominator.length); round++) {
    const top = numerator[round]
    const bottom = denominator[round]
    if (top !== undefined && bottom !== undefined && bottom > 0) perRound.push(top / bottom)
  }
  return { perRound, median: median(perRound) }
}
