/**
 * The job `scanProduce` (background/produce-scan.ts). Background thread.
 * It is given the body's memory and frees it; the memory of the records goes with the result.
 */
import { freeMemory } from '../../src/base/free-memory.ts'
import { refusalOf } from '../../src/background/produce-scan.ts'
import type { ScanProduceResult, ScanProduceValue } from '../../src/background/produce-scan.ts'
import { packRecords } from '../../src/background/scanned-records.ts'
import type { RecordRows } from '../../src/wire/produce/record-rows.ts'

/** Scans a body, with the scanner of its form, and decodes its records. @cost one pass over the body, and one copy of each key and value. */
export function scanProduce(scanner: RecordRows, { body, length }: ScanProduceValue): ScanProduceResult {
  try {
    const refusal = refusalOf(scanner, scanner.scan(Buffer.from(body), 0, length))
    if (refusal !== null) return { kind: 'refused', wire: refusal.spec.wire, details: refusal.details }
    return packRecords(scanner)
  } finally {
    scanner.release()
    freeMemory(body)
  }
}
