/**
 * The result of a job together with the memory that goes with it to the main thread, uncopied. Background threads.
 */
import { move, transferableSymbol, valueSymbol } from 'piscina'

/** A result on its way; only the pool looks inside. */
export interface Moved<Result> {
  readonly [valueSymbol]: Result
}

/** @param memory what the result refers to; it is gone from this thread once the job has returned. */
export function moved<Result extends object>(result: Result, memory: readonly ArrayBuffer[]): Moved<Result> {
  const wrapped = { [valueSymbol]: result, [transferableSymbol]: memory }
  move(wrapped)
  return wrapped
}
