/**
 * What the window runner needs of a load, whatever it does. Main thread of the generator.
 */
import type { Faults } from './connections.ts'
import type { Meter } from '../meter.ts'

export interface Load {
  readonly meter: Meter
  readonly faults: Faults
  /** From now on answers count. */
  openWindow(nowMs: number): void
  closeWindow(nowMs: number): void
  /** Sends the first requests. */
  start(): void
  /** Sends no more. */
  stop(): void
  /** Requests without an answer yet. */
  readonly inFlight: number
  /** Further figures of the window, by name with its unit, e.g. `readRecordsPerSecond`. */
  extras(): Readonly<Record<string, number>>
  close(): void
}

/** Records per second of a meter's window; 0 for an empty one. */
export function perSecond(count: number, seconds: number): number {
  return seconds > 0 ? count / seconds : 0
}
