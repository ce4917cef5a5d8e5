/** The schema registry as the composition root builds it. Main thread. */
import type { SchemaJobs, ValidationJobs } from '../background/jobs.ts'
import { BackgroundPool } from '../background/pool.ts'
import { ByteBudget } from '../base/byte-budget.ts'
import { systemClock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { SchemaCommands } from '../broker/schemas.ts'
import { ValidatedProduce, type ValidationParts } from '../broker/validated-produce.ts'
import { ChangeTurns } from '../control/change-turns.ts'
import { SchemaTable } from '../control/schemas.ts'
import { limits } from '../model/limits.ts'
import type { Store } from '../store/store.ts'

export interface SchemaComposition {
  readonly schemas: SchemaCommands
  readonly table: SchemaTable
  /** For the records of produces. */
  readonly validationPool: BackgroundPool<ValidationJobs>
  /** Ends its threads; what runs or waits there fails with STOPPING. */
  stop(): Promise<void>
}

/** No thread runs before the first schema, nor a while after the last. */
export function buildSchemas({ store, logger }: { store: Store; logger: Logger }): SchemaComposition {
  const pool = new BackgroundPool<SchemaJobs>({
    threadsMax: limits.schemaCheckThreads,
    // And one comparison.
    jobsMax: limits.schemaChangesMax + 1,
    heapMb: limits.schemaCheckHeapMb,
    logger
  })
  const validationPool = new BackgroundPool<ValidationJobs>({
    threadsMax: limits.validationThreads,
    jobsMax: limits.validationLinesMax,
    heapMb: limits.validationHeapMb,
    logger
  })
  const table = new SchemaTable(store.image)
  const parts = { table, turns: new ChangeTurns(), store, pool, clock: systemClock, checkMs: limits.schemaCheckMs }
  const schemas = new SchemaCommands(parts)
  const stop = async (): Promise<void> => void (await Promise.all([pool.close(), validationPool.close()]))
  return { schemas, table, validationPool, stop }
}

type ValidationPlace = Omit<ValidationParts, 'schemas' | 'pool' | 'held' | 'validationMs' | 'validationMsPerMib'>

/** What matches records with those schemas. @param requestMemoryBytes its copies may hold a part of so much, beside it. */
export function buildValidation(
  { table: schemas, validationPool: pool }: Pick<SchemaComposition, 'table' | 'validationPool'>,
  place: ValidationPlace,
  requestMemoryBytes: number
): ValidatedProduce {
  const { catalog, engine, idempotent } = place
  const held = new ByteBudget(Math.floor(requestMemoryBytes / limits.validatedRequestShare))
  return new ValidatedProduce({ schemas, pool, catalog, engine, idempotent, held, ...limits })
}
