/**
 * The job `scanProduce`: a produce body → its records in ring layout, or why it is refused.
 * Shapes and rules shared by the thread that scans (workers/background) and the main thread that asks.
 * Invariant: a body is refused with the same code and words wherever it was scanned, because refusalOf says them.
 */
import { BrokerError } from '../model/errors.ts'
import type { ErrorDetails } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import { HEADERS_LENGTH_BYTES, NO_HEADERS_BYTES, RECORD_FIXED_BYTES } from '../wire/produce/ring-layout.ts'
import { ProduceScanner } from '../wire/json/produce-scanner.ts'
import { MsgpackScanner } from '../wire/produce/msgpack-scanner.ts'
import { scanOutcomes, type RecordRows, type ScanOutcome } from '../wire/produce/record-rows.ts'
import { TABLE_ENTRY_BYTES } from './scanned-records.ts'
import type { ScannedProduce } from './scanned-records.ts'

/** What a body may be written in. */
export type BodyForm = 'json' | 'msgpack'

/** One scanner for each form. Each thread has its own, and uses them for one body at a time. */
export type ProduceScanners = Readonly<Record<BodyForm, RecordRows>>

/** Scanners for one thread. */
export function makeScanners(): ProduceScanners {
  return { json: new ProduceScanner(), msgpack: new MsgpackScanner() }
}

/** The body is the first `length` bytes. The job takes it, and frees it. */
export interface ScanProduceValue {
  readonly form: BodyForm
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

/** The shortest sound record: `{"value":""}`, and a map of one pair with a name of six bytes and an empty text. */
const recordBytesMin: Readonly<Record<BodyForm, number>> = { json: 12, msgpack: 8 }

/** What a record costs in the result beside its key, value and headers, at most: some of the others may have headers. */
const RECORD_COST_BYTES = RECORD_FIXED_BYTES + HEADERS_LENGTH_BYTES + NO_HEADERS_BYTES + TABLE_ENTRY_BYTES

/**
 * Most bytes that the result of a body of that length holds: what must be free before the job is given.
 * Decoding never lengthens a string, so key and value bytes are fewer than the body's; and a header has two lengths in the
 * result where the body has quotes, brackets and a comma, or two heads.
 */
export function scannedBytesMax(form: BodyForm, length: number): number {
  const recordsMax = Math.min(Math.floor(length / recordBytesMin[form]), limits.requestRecordsMax)
  return length + recordsMax * RECORD_COST_BYTES + TABLE_ENTRY_BYTES
}

/** What is refused of a scanned body for its form. @returns null if its records may go to the broker. */
export function refusalOf(scanner: RecordRows, outcome: ScanOutcome): BrokerError | null {
  const { field, problem } = scanner
  if (outcome === scanOutcomes.malformed) return new BrokerError(scanner.malformedCode, { problem })
  if (outcome === scanOutcomes.illTyped) return new BrokerError('FIELD_INVALID', { field, problem })
  return null
}
