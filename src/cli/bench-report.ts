/** What `millrace bench` prints. Pure. */
import { formatBytes, formatCount, formatMs } from '../base/amounts.ts'
import type { Host } from '../client/load/host.ts'
import type { LoadFigures } from '../client/load/meter.ts'

/** With --json it is printed as it is. */
export interface BenchReport {
  readonly protocol: 'es01' | 'http'
  readonly asksGzip: boolean
  readonly topic: string
  readonly partitions: number
  readonly valueBytes: number
  readonly keyed: boolean
  readonly batchRecords: number
  readonly connections: number
  readonly inFlight: number
  readonly isInterrupted: boolean
  /** deferred: an acknowledgement may precede its sync. */
  readonly durability: 'synced' | 'deferred'
  /** Of the client. */
  readonly host: Host
  readonly produce: LoadFigures
  readonly consume: LoadFigures | null
  /** That were there to be read back; consume has as many unless it was ended early, or others deleted some. */
  readonly recordsToRead: number | null
}

/** The figures for people. */
export function formatBench(report: BenchReport): string {
  const { protocol, connections, inFlight, batchRecords, valueBytes, partitions, keyed, host, durability } = report
  const routing = keyed ? `by key over ${partitions}` : `in turn to ${partitions}`
  const lines = [
    `load        ${protocol}${report.asksGzip ? ' with gzip' : ''}: ${connections} connections × ${inFlight} in flight × ${batchRecords} × ${valueBytes} B, ${routing} partition(s)`,
    `client      ${host.cores} × ${host.cpu}, ${formatBytes(host.memoryBytes)}, kernel ${host.kernel}, node ${host.node}`,
    `durability  ${durability === 'synced' ? 'an acknowledgement follows the sync' : 'an acknowledgement may precede the sync'}`,
    ...linesOf('produce', report.produce, report.produce.records),
    ...(report.consume === null ? [] : linesOf('consume', report.consume, report.recordsToRead ?? 0))
  ]
  if (report.isInterrupted) lines.push('interrupted: the figures are of what was done until then')
  return `${lines.join('\n')}\n`
}

/** @param wanted records that there were to be. */
function linesOf(name: string, figures: LoadFigures, wanted: number): string[] {
  const { records, bytes, seconds, recordsPerSecond, bytesPerSecond, requests, latency, errors, firstError } = figures
  const rate = `${formatCount(recordsPerSecond)} records/s, ${formatBytes(bytesPerSecond)}/s`
  const { p50Ms, p90Ms, p99Ms, maxMs } = latency
  const times = [
    `p50 ${formatMs(p50Ms)}`,
    `p90 ${formatMs(p90Ms)}`,
    `p99 ${formatMs(p99Ms)}`,
    `max ${formatMs(maxMs)} ms`
  ]
  const amount = records === wanted ? `${records}` : `${records} of ${wanted}`
  const lines = [
    `${name}     ${rate} (${amount} records, ${formatBytes(bytes)} in ${seconds.toFixed(2)} s)`,
    `latency     ${times.join(', ')} over ${requests} request(s)`
  ]
  if (errors > 0) lines.push(`errors      ${errors}; the first: ${firstError ?? ''}`)
  return lines
}
