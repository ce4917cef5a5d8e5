/**
 * The job `scanProduce`: a produce body → its records in ring layout, or why it is refused.
 * Shapes and rules shared by the thread that scans (workers/background) and the main thread that asks.
 * Invariant: a body is refused with the same code and words wherever it was scanned, because refusalOf says them.
 */
import { BrokerError } from '../model/errors.ts'
import type { ErrorDetails } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import { RECORD_FIXED_BYTES } from '../wire/produce/ring-layout.ts'
import { scanOutcomes } from '../wire/json/produce-scanner.ts'
import type { ProduceScanner, ScanOutcome } from '../wire/json/produce-scanner.ts'
import { TABLE_ENTRY_BYTES } from './scanned-records.ts'
import type { ScannedProduce } from './scanned-records.ts'

/** The body is the first `length` bytes. The job takes it, and frees it. */
export interface ScanProduceValue {
  readonly body: ArrayBuffer
  readonly length: number
}

/** Numbers and details, never an Error: see errorTable. */
export interface ScanRefusal {
  readonly kind: 'refused'
  readonly wire: number
  readonly details: ErrorDetails
}

export type ScanProduceResult = ScanRefusal | ScannedProduce

/** `{"value":""}`: no sound record is shorter. */
const RECORD_JSON_BYTES_MIN = 12

/**
 * Most bytes that the result of a body of that length holds: what must be free before the job is given.
 * Decoding never lengthens a string, so key and value bytes are fewer than the body's.
 */
export function scannedBytesMax(length: number): number {
  const recordsMax = Math.min(Math.floor(length / RECORD_JSON_BYTES_MIN), limits.requestRecordsMax)
  return length + recordsMax * (RECORD_FIXED_BYTES + TABLE_ENTRY_BYTES) + TABLE_ENTRY_BYTES
}

/** What is refused of a scanned body for its form. @returns null if its records may go to the broker. */
export function refusalOf(scanner: ProduceScanner, outcome: ScanOutcome): BrokerError | null {
  const { field, problem } = scanner
  if (outcome === scanOutcomes.malformed) return new BrokerError('BODY_NOT_JSON', { problem })
  if (outcome === scanOutcomes.illTyped) return new BrokerError('FIELD_INVALID', { field, problem })
  return null
}
