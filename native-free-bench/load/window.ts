/**
 * Runs a load: warm-up, one measured window, drain. The window ends by time, or earlier when the load has written as
 * many bytes as were promised to be ready for it. CPU of both sides is taken at the window's two ends.
 * Main thread of the generator.
 */
import type { WindowSums } from '../meter.ts'
import { processCpuSeconds } from '../machine.ts'
import type { Load } from './load.ts'

export interface WindowOptions {
  readonly warmUpMs: number
  readonly windowMs: number
  /** Bytes (keys and values) after which load and window end; Infinity for none. The warm-up takes a quarter at most. */
  readonly bytesMax: number
  /** Process of the broker, or null when it is not ours. */
  readonly brokerPid: number | null
}

export interface WindowResult {
  readonly sums: WindowSums
  /** Cores in use during the window: 1 is one core; null where nobody could tell. */
  readonly clientCores: number
  readonly brokerCores: number | null
  readonly endedBy: 'time' | 'bytes'
  readonly extras: Readonly<Record<string, number>>
  readonly refusals: number
  readonly firstRefusal: string
}

/** How often the end of a window is looked for. */
const LOOK_MS = 5
/** Requests that are not answered so long after the last send are given up, and the round with them. */
const DRAIN_TIMEOUT_MS = 30_000

/** @throws Error when the load ended by itself, when nothing was answered, or when answers stay out. */
export async function runWindow(load: Load, options: WindowOptions): Promise<WindowResult> {
  load.start()
  await until(load, options.warmUpMs, () => load.meter.totalBytes >= options.bytesMax / 4)
  const isWritten = (): boolean => load.meter.totalBytes >= options.bytesMax
  const window = await measureWhile(load, options.brokerPid, () => until(load, options.windowMs, isWritten))
  await drain(load)
  return window
}

/**
 * A window over a load that runs already, and goes on running.
 * @param whole resolves at the end of the window, true when it ended for its bytes. @throws Error when nothing was answered.
 */
export async function measureWhile(
  load: Load,
  brokerPid: number | null,
  whole: () => Promise<boolean>
): Promise<WindowResult> {
  const clientBefore = process.cpuUsage()
  const brokerBefore = brokerPid === null ? null : processCpuSeconds(brokerPid)
  load.openWindow(performance.now())
  const filled = await whole()
  load.closeWindow(performance.now())
  const client = process.cpuUsage(clientBefore)
  const brokerAfter = brokerPid === null ? null : processCpuSeconds(brokerPid)
  const extras = load.extras()
  const sums = load.meter.sums()
  if (sums.requests === 0) throw new Error(`no answer in a window of ${sums.seconds.toFixed(2)} s`)
  return {
    sums,
    clientCores: (client.user + client.system) / 1e6 / sums.seconds,
    brokerCores: brokerBefore === null || brokerAfter === null ? null : (brokerAfter - brokerBefore) / sums.seconds,
    endedBy: filled ? 'bytes' : 'time',
    extras,
    refusals: load.faults.refusals,
    firstRefusal: load.faults.firstRefusal
  }
}

/** Sends no more and waits for the answers that are out. @throws Error when they stay out. */
export async function drain(load: Load): Promise<void> {
  load.stop()
  if (await until(load, DRAIN_TIMEOUT_MS, () => load.inFlight === 0)) return
  throw new Error(`${load.inFlight} requests had no answer ${DRAIN_TIMEOUT_MS / 1000} s after the last send`)
}

/** Waits until `done` or for `timeoutMs`. @returns whether it was done. @throws the load's fatal fault. */
export async function until(load: Load, timeoutMs: number, done: () => boolean): Promise<boolean> {
  const end = performance.now() + timeoutMs
  for (;;) {
    if (load.faults.fatal !== null) throw load.faults.fatal
    if (done()) return true
    const left = end - performance.now()
    if (left <= 0) return false
    await new Promise(resolve => setTimeout(resolve, Math.min(LOOK_MS, left)))
  }
}
