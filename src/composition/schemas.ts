/** The schema registry as the composition root builds it. Main thread. */
import type { SchemaJobs } from '../background/jobs.ts'
import { BackgroundPool } from '../background/pool.ts'
import { systemClock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { SchemaCommands } from '../broker/schemas.ts'
import { ChangeTurns } from '../control/change-turns.ts'
import { SchemaTable } from '../control/schemas.ts'
import { limits } from '../model/limits.ts'
import type { Store } from '../store/store.ts'

export interface SchemaComposition {
  readonly schemas: SchemaCommands
  /** Ends its threads; what runs or waits there fails with STOPPING. */
  stop(): Promise<void>
}

/** No thread runs before the first schema, nor a while after the last. */
export function buildSchemas({ store, logger }: { store: Store; logger: Logger }): SchemaComposition {
  const pool = new BackgroundPool<SchemaJobs>({
    threadsMax: limits.schemaCheckThreads,
    jobsMax: limits.schemaChangesMax,
    heapMb: limits.schemaCheckHeapMb,
    logger
  })
  const table = new SchemaTable(store.image)
  const parts = { table, turns: new ChangeTurns(), store, pool, clock: systemClock, checkMs: limits.schemaCheckMs }
  const schemas = new SchemaCommands(parts)
  return { schemas, stop: () => pool.close() }
}
