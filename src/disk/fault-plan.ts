/**
 * Faults armed by tests at the named points of the disk: errors, short writes and kills at the n-th call of a point.
 * One plan belongs to one Disk, on the thread of that Disk. It counts calls; it never touches a file itself.
 *
 * Invariants: calls of a point are counted from 1, whether a fault is armed there or not; a plan that names no point
 * costs one map look-up per call. Production runs without a plan.
 */
import { BugError } from '../base/assert.ts'
import { DiskError } from './disk.ts'
import { faultPoints } from './faults.ts'
import type { FaultPoint } from './faults.ts'

/**
 * What may be armed. ENOSPC: the disk is full. EMFILE: no file descriptor left. EIO: the device failed.
 * EINVAL: where a direct file is opened, read or written, the file system does not do that, and the file is buffered
 * from then on; elsewhere an error like the others.
 */
export const faultErrors = ['EIO', 'ENOSPC', 'EMFILE', 'EACCES', 'EINVAL'] as const
export type FaultError = (typeof faultErrors)[number]

/**
 * error: nothing is done, then DiskError. short: half of a write's bytes are done, then DiskError.
 * kill: SIGKILL before the call. short-kill: half of a write's bytes, then SIGKILL. kill-after: SIGKILL once it is done.
 * bug: nothing is done, then BugError, as if an assertion of ours had failed there: it ends the thread, not the process.
 * hold: the call waits while the file `while` is there, then is done: a disk as slow as a test needs it.
 */
export type Fault =
  | { readonly kind: 'error' | 'short'; readonly code: FaultError }
  | { readonly kind: 'kill' | 'short-kill' | 'kill-after' | 'bug' }
  | { readonly kind: 'hold'; readonly while: string }

/** A fault at the calls firstCall…lastCall (both included, counted from 1) of one point. */
export interface ArmedFault {
  readonly point: FaultPoint
  readonly firstCall: number
  readonly lastCall: number
  readonly fault: Fault
}

export class FaultPlan {
  readonly #armed: Map<FaultPoint, ArmedFault[]> = new Map()
  readonly #calls: Map<FaultPoint, number> = new Map()

  constructor(armed: readonly ArmedFault[] = []) {
    for (const fault of armed) this.arm(fault)
  }

  /** Adds a fault; calls made before count. Where two cover one call, the one armed first counts. */
  arm(fault: ArmedFault): void {
    const atPoint = this.#armed.get(fault.point)
    if (atPoint === undefined) this.#armed.set(fault.point, [fault])
    else atPoint.push(fault)
  }

  /** Takes all faults away, as when the disk has room again. Counting goes on. */
  disarm(): void {
    this.#armed.clear()
  }

  /** Calls seen at a point so far. */
  callCount(point: FaultPoint): number {
    return this.#calls.get(point) ?? 0
  }

  /** True if a fault ends or holds the process or the thread: a simulated disk plays errors of the disk alone. */
  hasKills(): boolean {
    return [...this.#armed.values()].flat().some(armed => !('code' in armed.fault))
  }

  /** Counts a call of the point. @returns the fault that strikes it, or null. */
  strike(point: FaultPoint): Fault | null {
    const call = this.callCount(point) + 1
    this.#calls.set(point, call)
    const hit = this.#armed.get(point)?.find(armed => call >= armed.firstCall && call <= armed.lastCall)
    return hit?.fault ?? null
  }
}

/** The DiskError of an armed fault. */
export function faultError(code: FaultError, point: FaultPoint, path: string): DiskError {
  return new DiskError(code, point, `${code} at ${point} of ${path} (armed by a test)`)
}

/** True if the fault stands for a file system that does not bypass the page cache: a direct file falls back. */
export function refusesDirect(fault: Fault | null): boolean {
  return fault?.kind === 'error' && fault.code === 'EINVAL'
}

/** What a fault of kind bug throws. */
export function plantedBug(point: FaultPoint): BugError {
  return new BugError(`a bug planted at ${point} by a test`)
}

const itemPattern = /^([a-z.-]+):(\d+)(\+|-(\d+))?=(.+)$/

/**
 * Reads a plan from one line, so that a crash test can hand it to a child process:
 * `point:call=fault`, separated by commas; a call is `3`, `3-5` or `3+` (from the third on).
 * A fault is an errno (`EIO`), `short-<errno>`, `kill`, `short-kill`, `kill-after`, `bug` or `hold@<path>`.
 * Example: `group.sync:3=EIO,slot.rename:1=kill`.
 *
 * @throws Error naming the item that is wrong.
 */
export function parseFaultPlan(text: string): FaultPlan {
  const items = text.split(',').filter(item => item.trim() !== '')
  return new FaultPlan(items.map(item => parseItem(item.trim())))
}

function parseItem(item: string): ArmedFault {
  const match = itemPattern.exec(item)
  if (match === null) throw new Error(`fault '${item}' is not of the form point:call=fault`)
  const [, pointName, first, range, last, faultName] = match
  const point = faultPoints.find(known => known === pointName)
  if (point === undefined) throw new Error(`fault '${item}': no point is named '${pointName}'`)
  const firstCall = Number(first)
  const lastCall = range === undefined ? firstCall : range === '+' ? Number.MAX_SAFE_INTEGER : Number(last)
  if (firstCall < 1 || lastCall < firstCall) throw new Error(`fault '${item}': calls are counted from 1, upwards`)
  return { point, firstCall, lastCall, fault: parseFault(item, faultName ?? '') }
}

function parseFault(item: string, name: string): Fault {
  if (name === 'kill' || name === 'short-kill' || name === 'kill-after' || name === 'bug') return { kind: name }
  if (name.startsWith('hold@')) return { kind: 'hold', while: name.slice('hold@'.length) }
  const isShort = name.startsWith('short-')
  const errorName = isShort ? name.slice('short-'.length) : name
  const code = faultErrors.find(known => known === errorName)
  if (code === undefined) {
    throw new Error(
      `fault '${item}': allowed are ${faultErrors.join(', ')}, short-<error>, kill, short-kill, kill-after, bug, hold@<path>`
    )
  }
  return { kind: isShort ? 'short' : 'error', code }
}
