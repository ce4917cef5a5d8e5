/**
 * The table of background jobs: what each is given and what it answers, for both sides of the thread.
 *
 * Values travel as structured clones. Large inputs and results lie in ArrayBuffers that move with them: one thread has
 * them at a time, and whoever has them last frees them with freeMemory (README.md says why they are not shared).
 * A job answers with a value for everything a caller or a disk can cause; what it throws is a bug.
 */
import type {
  ColdResult,
  FetchSegmentValue,
  RemoveObjectsResult,
  RemoveObjectsValue,
  SweepColdValue,
  TierSegmentsResult,
  TierSegmentsValue
} from './cold.ts'
import type { CheckRecordKeysResult, CheckRecordKeysValue } from './record-key-check.ts'
import type { CompactPartitionResult, CompactPartitionValue } from './compaction.ts'
import type { Moved } from './moved.ts'
import type { ScanProduceResult, ScanProduceValue } from './produce-scan.ts'
import type { ReadFieldsResult, ReadFieldsValue } from './read-fields.ts'
import type { ValidateRecordsResult, ValidateRecordsValue } from './record-validation.ts'
import type { CheckSchemaResult, CheckSchemaValue } from './schema-check.ts'

/** One entry per job, by name. */
export type JobTable = Readonly<Record<string, { readonly value: unknown; readonly result: unknown }>>

/** Short jobs, for requests. */
export type BackgroundJobs = {
  readonly scanProduce: { readonly value: ScanProduceValue; readonly result: ScanProduceResult }
  readonly readFields: { readonly value: ReadFieldsValue; readonly result: ReadFieldsResult }
}

/** Jobs whose cost a client decides: their threads are ended when they take too long, so they have their own. */
export type SchemaJobs = {
  readonly checkSchema: { readonly value: CheckSchemaValue; readonly result: CheckSchemaResult }
}

/** Jobs that clients wait for with their records; ended like those above, and apart from them, so that neither waits for the other. */
export type ValidationJobs = {
  readonly validateRecords: { readonly value: ValidateRecordsValue; readonly result: ValidateRecordsResult }
}

/** Short jobs that Kafka's clients wait for with their batches. */
export type BatchJobs = {
  readonly checkRecordKeys: { readonly value: CheckRecordKeysValue; readonly result: CheckRecordKeysResult }
}

/** Long jobs: they have threads of their own, so that no request waits behind them. */
export type MaintenanceJobs = {
  readonly compactPartition: { readonly value: CompactPartitionValue; readonly result: CompactPartitionResult }
}

/** Jobs that talk to cold storage: threads of their own again, because reads wait for some of them. */
export type ColdJobs = {
  readonly tierSegments: { readonly value: TierSegmentsValue; readonly result: TierSegmentsResult }
  readonly fetchSegment: { readonly value: FetchSegmentValue; readonly result: ColdResult }
  readonly removeObjects: { readonly value: RemoveObjectsValue; readonly result: RemoveObjectsResult }
  readonly sweepCold: { readonly value: SweepColdValue; readonly result: ColdResult }
}

/** What a thread is handed; its entry exports `run(task)`. */
export interface Task {
  readonly job: string
  readonly value: unknown
}

/** The code behind the names: what an entry must have to serve these jobs. */
export type JobHandlers<Jobs extends JobTable> = {
  readonly [Name in keyof Jobs]: (
    value: Jobs[Name]['value']
  ) => Jobs[Name]['result'] | Moved<Jobs[Name]['result']> | Promise<Jobs[Name]['result'] | Moved<Jobs[Name]['result']>>
}
