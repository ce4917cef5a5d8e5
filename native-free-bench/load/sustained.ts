/**
 * Runs a load through two windows without a pause between them: a burst into an empty journal, then, once settling has
 * begun, everything up to the last byte. The load of both is the same. Main thread of the generator.
 */
import type { Load } from './load.ts'
import { drain, measureWhile, until } from './window.ts'
import type { WindowResult } from './window.ts'

export interface SustainedOptions {
  /** The warm-up takes a quarter of the burst's bytes at most. */
  readonly warmUpMs: number
  /** Keys and values after which the burst ends at the latest, the warm-up included. */
  readonly burstBytesMax: number
  /** The second window opens here even if nobody saw settling begin. */
  readonly sustainedFromBytes: number
  /** Keys and values in all, after which load and second window end. */
  readonly bytesMax: number
  /** Whether sealed slots are settled by now. Asked every few milliseconds until it was true. */
  readonly hasSettled: () => boolean
  readonly brokerPid: number | null
  /** Bytes that the device has taken so far; null where nobody counts. */
  readonly deviceBytes: () => number | null
  /** Patience for each of the two windows. */
  readonly timeoutMs: number
}

export interface SustainedResult {
  readonly burst: WindowResult
  readonly sustained: WindowResult
  /** What the device took during the second window, from anybody; null where nobody counts. */
  readonly deviceBytes: number | null
}

/** @throws Error when the load ended by itself, when a window got no answers, or when the bytes were not reached in time. */
export async function runSustained(load: Load, options: SustainedOptions): Promise<SustainedResult> {
  const written = (): number => load.meter.totalBytes
  load.start()
  await until(load, options.warmUpMs, () => written() >= options.burstBytesMax / 4)
  const burst = await measureWhile(load, options.brokerPid, () =>
    reach(load, options, () => written() >= options.burstBytesMax || options.hasSettled())
  )
  await reach(load, options, () => written() >= options.sustainedFromBytes || options.hasSettled())
  const deviceBefore = options.deviceBytes()
  const sustained = await measureWhile(load, options.brokerPid, () =>
    reach(load, options, () => written() >= options.bytesMax)
  )
  const deviceAfter = options.deviceBytes()
  await drain(load)
  return {
    burst,
    sustained,
    deviceBytes: deviceBefore === null || deviceAfter === null ? null : deviceAfter - deviceBefore
  }
}

async function reach(load: Load, { timeoutMs }: SustainedOptions, done: () => boolean): Promise<boolean> {
  if (await until(load, timeoutMs, done)) return true
  throw new Error(`only ${load.meter.totalBytes} bytes were written in ${timeoutMs / 1000} s`)
}
