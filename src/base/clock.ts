/** Time as a dependency. `now` is wall clock in ms since the Unix epoch and may jump; `monotonic` never falls. */
export interface Clock {
  nowMs(): number
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now()
}
