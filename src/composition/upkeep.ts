/** What keeps the logs in shape beside the shards: compaction, tiering, reads of cold storage. Main thread. */
import type { ColdPlace } from '../background/cold.ts'
import type { ColdJobs, MaintenanceJobs } from '../background/jobs.ts'
import { BackgroundPool } from '../background/pool.ts'
import { systemClock } from '../base/clock.ts'
import { ColdReads } from '../broker/cold-reads.ts'
import { Compaction } from '../broker/compaction.ts'
import { StructuralTurns } from '../broker/structural-turns.ts'
import { Tiering } from '../broker/tiering.ts'
import { parseBucketAddress, parseEndpoint } from '../cold/cold-settings.ts'
import type { Settings } from '../config/settings.ts'
import type { FreeSpace } from '../disk/free-space.ts'
import { limits } from '../model/limits.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import { threadFaults } from './armed-faults.ts'
import type { ShardParts } from './shards.ts'

/** One for uploads, which follow each other; the others for reads. */
const COLD_THREADS = 3

/** What keeps the logs in shape beside the shards. */
export interface Upkeep {
  readonly compaction: Compaction
  readonly tiering: Tiering
  readonly coldReads: ColdReads
  /** Ends the threads, and what waits for them. */
  stop(): Promise<void>
}

export function buildUpkeep(
  { settings, logger, catalog, dataDir, journalBytes }: Omit<ShardParts, 'onColdEvent' | 'onCut'>,
  shards: ShardSet,
  space: FreeSpace
): Upkeep {
  const { backgroundJobsMax: jobsMax } = limits
  // Apart from the pool of short jobs, and from each other: a pass may take minutes, and reads wait for cold storage.
  const maintenance = new BackgroundPool<MaintenanceJobs>({ threadsMax: 1, jobsMax, logger })
  const cold = new BackgroundPool<ColdJobs>({ threadsMax: COLD_THREADS, jobsMax, logger })
  const place = coldPlace(settings, dataDir)
  const shared = { catalog, shards, turns: new StructuralTurns(), clock: systemClock, logger }
  const compaction = new Compaction({
    ...shared,
    pool: maintenance,
    dataDirectory: dataDir,
    intervalMs: settings.compactionCheckIntervalMs,
    mapBytes: settings.compactionMemoryBytes,
    space,
    settleBytes: journalBytes
  })
  const tiering = new Tiering({ ...shared, pool: cold, place, intervalMs: settings.retentionCheckIntervalMs })
  const coldReads = new ColdReads({
    shards,
    pool: cold,
    place,
    cacheBytes: settings.coldCacheBytes,
    fetchesAtOnce: COLD_THREADS,
    logger
  })
  const stop = async (): Promise<void> => {
    await Promise.all([maintenance.close(), cold.close()])
    await Promise.all([compaction.stop(), tiering.stop()])
  }
  return { compaction, tiering, coldReads, stop }
}

/** null: none is configured. */
export function coldPlace(settings: Settings, dataDirectory: string): ColdPlace | null {
  const { coldStorageDir, coldStorage, coldStorageEndpoint, coldStorageRegion, coldStoragePathStyle } = settings
  if (coldStorageDir === null && coldStorage === null) return null
  // Refused here, in one line: a background thread would find out at the first upload.
  if (coldStorage !== null) parseBucketAddress(coldStorage)
  if (coldStorageEndpoint !== null) parseEndpoint(coldStorageEndpoint)
  const faults = threadFaults(process.env['MILLRACE_FAULTS'], 'cold')
  const where = { coldStorageDir, coldStorage, coldStorageEndpoint, coldStorageRegion, coldStoragePathStyle }
  return { dataDirectory, ...where, faults }
}
