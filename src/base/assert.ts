/**
 * Assertions. A failed one is a bug of ours, never a user's or a disk's fault; it stays on in production.
 * Nothing catches a BugError but the top of a thread or of a request handler.
 */

/** A broken invariant: a programmer's fault. `message` is for the log only, never for a remote caller. */
export class BugError extends Error {
  override readonly name = 'BugError'
}

/** Throws BugError with that constant message unless `condition` holds. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new BugError(message)
}

/** For the default branch of a switch over a closed union: compiles only if every case is handled. */
export function unreachable(value: never): never {
  throw new BugError(`unreachable value ${String(value)}`)
}
