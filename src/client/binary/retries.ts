/** Calls that are made again until they succeed. Any thread with an event loop. */
import { clientErrorOf, closedError } from './client-error.ts'
import { backoffMs, type Backoff, type Bell } from './pauses.ts'

/** What holds while a call is made again. */
export interface Retrying {
  readonly backoff: Backoff
  /** Its ring ends a pause. */
  readonly bell: Bell
  /** Nobody waits for the result any more. */
  readonly isOver: () => boolean
}

/** @returns what the call gives. Rejects with ClientError: what will not pass, or `closed` once nobody waits any more. */
export async function untilItSucceeds<Result>(
  call: () => Promise<Result>,
  { backoff, bell, isOver }: Retrying
): Promise<Result> {
  for (let attempt = 1; !isOver(); attempt++) {
    try {
      return await call()
    } catch (error) {
      const failure = clientErrorOf(error)
      if (!failure.retryable) throw failure
      await bell.wait(failure.retryAfterMs ?? backoffMs(attempt, backoff, Math.random()))
    }
  }
  throw closedError()
}
