/** Counters by reason, as they begin. Pure, any thread. */

/** @returns 0 for each: what has not happened yet is shown, too. */
export function noneOf<Reason extends string>(reasons: readonly Reason[]): Record<Reason, number> {
  return Object.fromEntries(reasons.map(reason => [reason, 0])) as Record<Reason, number>
}
