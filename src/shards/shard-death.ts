/**
 * What a shard's death says: whether a restart can help, and words for callers. Pure; main thread.
 * An error that comes across a thread is a copy without its class: it is told apart by its fields. Messages of bugs and
 * of the disk stay in the log, they may name files.
 */
import { BrokerError } from '../model/errors.ts'

/** Whether recovery itself said that an operator must decide: a restart would find the same. */
export function isOperatorsBusiness(cause: Error | null): boolean {
  return cause?.name === 'BrokerError'
}

/** Why a shard stays down, for readyz and for callers. @param deaths since it last ran for long. */
export function describeDeath(cause: Error | null, deaths: number): string {
  if (cause !== null && isOperatorsBusiness(cause)) return problemOf(cause)
  return `it failed ${deaths} times, last by ${reasonOf(cause)}; its log lines say more; it is tried again every 30 s`
}

function problemOf(cause: Error): string {
  const details: unknown = 'details' in cause ? cause.details : null
  const hasProblem = typeof details === 'object' && details !== null && 'problem' in details
  return hasProblem ? String(details.problem) : cause.message
}

function reasonOf(cause: Error | null): string {
  for (let current: unknown = cause; current instanceof Error; current = current.cause) {
    if ('code' in current && 'point' in current) return `${String(current.code)} at ${String(current.point)}`
  }
  return 'a bug'
}

/** True if a request failed because its shard is gone or not there. */
export function isShardLoss(error: unknown): boolean {
  return error instanceof BrokerError && (error.code === 'SHARD_DIED' || error.code === 'SHARD_DOWN')
}

/** For messages that nobody waits for: what a dead shard was not told, its successor reads from disk. */
export function rethrowUnlessLost(error: unknown): void {
  if (!isShardLoss(error)) throw error
}

/** What whoever started the shard is told, in one line. */
export function startFailure(shard: number, cause: Error | null): Error {
  return new Error(`shard ${shard} did not start: ${cause?.message ?? 'it ended'}`, { cause })
}
