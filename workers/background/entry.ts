/**
 * Entry of a background thread: one job at a time, named by its task. It decides nothing and writes only files that
 * nobody reads yet; what it throws is a bug and fails that job alone. Kept between jobs: the tables of the scanners.
 */
import { assert } from '../../src/base/assert.ts'
import type {
  BackgroundJobs,
  BatchJobs,
  ColdJobs,
  JobHandlers,
  MaintenanceJobs,
  SchemaJobs,
  ValidationJobs,
  Task
} from '../../src/background/jobs.ts'
import { moved } from '../../src/background/moved.ts'
import { makeScanners } from '../../src/background/produce-scan.ts'
import { checkRecordKeys } from './check-record-keys.ts'
import { fetchSegment, removeObjects, sweepCold, tierSegments } from './cold-jobs.ts'
import { runCompactPartition } from './compact-partition.ts'
import { readFields } from './read-fields.ts'
import { scanProduce } from './scan-produce.ts'

const scanners = makeScanners()

const handlers: JobHandlers<BackgroundJobs & BatchJobs & SchemaJobs & ValidationJobs & MaintenanceJobs & ColdJobs> = {
  scanProduce: value => {
    const result = scanProduce(scanners[value.form], value)
    return result.kind === 'scanned' && result.memory !== null ? moved(result, [result.memory]) : result
  },
  readFields,
  checkRecordKeys,
  // Loaded by the threads that need it alone: parsers of three languages.
  checkSchema: async value => (await import('./check-schema.ts')).checkSchema(value),
  validateRecords: async value => (await import('./validate-records.ts')).validateRecords(value),
  compactPartition: runCompactPartition,
  tierSegments,
  fetchSegment,
  removeObjects,
  sweepCold
}

/** Called by the pool. @throws whatever the job throws. */
export function run({ job, value }: Task): unknown {
  assert(Object.hasOwn(handlers, job), 'a background job must be one that this entry knows')
  // Structured clone keeps the shape that the typed side of the pool sent.
  const handler = handlers[job as keyof typeof handlers] as (value: unknown) => unknown
  return handler(value)
}
