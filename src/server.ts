/**
 * The composition root: the only file that builds the whole broker, in the order in which it depends on itself, and
 * takes it down in the reverse order. Main thread.
 */
import { availableParallelism } from 'node:os'
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ColdPlace } from './background/cold.ts'
import type { BackgroundJobs, ColdJobs, MaintenanceJobs } from './background/jobs.ts'
import { BackgroundPool } from './background/pool.ts'
import { ByteBudget } from './base/byte-budget.ts'
import { systemClock } from './base/clock.ts'
import type { Logger } from './base/logger.ts'
import { LocalBroker } from './broker/broker.ts'
import { ColdReads } from './broker/cold-reads.ts'
import { Compaction } from './broker/compaction.ts'
import { IdempotentProduce, type IdempotentParts } from './broker/idempotent-produce.ts'
import { LocalEngine, OpenTopics } from './broker/local-engine.ts'
import { ProducerCommands } from './broker/producer-commands.ts'
import { StructuralTurns } from './broker/structural-turns.ts'
import { Tiering } from './broker/tiering.ts'
import { TombstoneKeeper } from './broker/tombstones.ts'
import { parseBucketAddress, parseEndpoint } from './cold/cold-settings.ts'
import { budgetBytes, openFilesMax, reserveBytes } from './config/auto-sizes.ts'
import { descriptorLimit, measureMachine } from './config/machine.ts'
import type { Settings } from './config/settings.ts'
import { defaultShardCount } from './config/shards.ts'
import { Catalog } from './control/catalog.ts'
import { ChangeTurns } from './control/change-turns.ts'
import { ProducerTable } from './control/producer-table.ts'
import type { TopicDefaults } from './control/topic-decisions.ts'
import { FreeSpace } from './disk/free-space.ts'
import { createEs01Gateway, type Es01Gateway } from './gateway/es01/gateway.ts'
import { createHttpGateway, type HttpGateway } from './gateway/http/gateway.ts'
import { journalPath } from './log/shard-place.ts'
import { limits } from './model/limits.ts'
import { PlacementOfShards, type PlacementParts } from './placement.ts'
import { ShardSet } from './shards/shard-set.ts'
import { openStore } from './store/store-client.ts'
import type { Store } from './store/store.ts'
import { sumCounters, type ShardCounters } from './wire/shard/counters.ts'
import { COLD_CACHE_DIRECTORY, COLD_OUTGOING_DIRECTORY } from './wire/shard/cold.ts'
import type { ColdEvent } from './wire/shard/messages.ts'
import type { TopicPlace } from './wire/shard/settle.ts'
import type { CleaningSettings, SettlingSettings } from './wire/shard/start.ts'

/** A broker that answers. */
export interface RunningServer {
  /** host:port in effect; with port 0 the one the system picked. */
  readonly httpAddress: string
  readonly binaryAddress: string | null
  readonly dataDir: string
  readonly durability: string
  readonly shards: number
  readonly firstStart: boolean
  readonly engine: 'uws' | 'node'
  /** For tests and metrics: the shards and the ES01 listener, and what they count. */
  readonly shardSet: ShardSet
  readonly es01: Es01Gateway | null
  /** Answers what is in progress, seals the logs, gives the directory back. @returns what the shards did, in sum, for the log. */
  stop(): Promise<ShardCounters>
}

/**
 * Share of --shutdown-timeout after which clients that do not take their answers are cut off. The rest is for the
 * shards to seal their logs: one stuck client must not make a clean stop a failed one.
 */
const GATEWAY_STOP_SHARE = 0.75

/** One for uploads, which follow each other; the others for reads. */
const COLD_THREADS = 3

/** What is already running, newest last: taken down in reverse when a later part does not start. */
type Undo = () => Promise<void>

/**
 * Starts a broker. @returns when it accepts traffic on every listener.
 * @throws Error with one line for the person who started it.
 */
export async function startServer(settings: Settings, logger: Logger): Promise<RunningServer> {
  const undo: Undo[] = []
  try {
    return await build(settings, logger, undo)
  } catch (error) {
    for (const step of undo.reverse()) {
      await step().catch((failure: unknown) =>
        logger.error({ err: failure }, 'a part did not stop after a failed start')
      )
    }
    throw error
  }
}

async function build(settings: Settings, logger: Logger, undo: Undo[]): Promise<RunningServer> {
  const dataDir = resolve(settings.dataDir)
  const store = await openStore({ dataDir, logger })
  undo.push(() => store.close())
  const catalog = new Catalog(store.image)
  const table = new ProducerTable(store.image)
  const firstStart = store.image.shardCount === null
  const placement = placeShards({ catalog, store, dataDirectory: dataDir, logger }, settings)
  const { shardCount } = placement
  undo.push(() => placement.stop())

  // Of the last run: a copy that was cut off must not be taken for one.
  for (const name of [COLD_CACHE_DIRECTORY, COLD_OUTGOING_DIRECTORY])
    rmSync(`${dataDir}/${name}`, { recursive: true, force: true })

  const open = new OpenTopics()
  for (const topic of catalog.topics) open.set(topic)
  const journalBytes = budgetBytes(settings, measureMachine(dataDir), shardCount)
  const shardParts = { settings, logger, store, catalog, table, open, dataDir, placement, journalBytes }
  const shards = buildShards({ ...shardParts, onColdEvent: (shard, event) => upkeep.coldReads.onEvent(shard, event) })
  const tombstones = new TombstoneKeeper({ catalog, store, shards, logger, monotonicMs: systemClock.monotonicMs })
  shards.onSettled((shard, job, sequence) => tombstones.settled(shard, job, sequence))
  undo.push(() => shards.stop())
  // A share of the request memory, so that a few large frames leave room for the many small ones.
  const oversized = new ByteBudget(Math.floor(settings.requestMemoryBytes / limits.movedFrameShare))
  const engine = new LocalEngine(shards, open, oversized)
  const producerParts = { table, store, engine, clock: systemClock, logger }
  const { idempotent, producers } = buildProducers(producerParts, catalog, settings)
  const topicParts = { catalog, turns: new ChangeTurns(), store, engine, defaults: topicDefaults(settings) }
  const space = new FreeSpace({ directory: dataDir, reserveBytes: reserveBytes(settings, journalBytes), logger })
  await space.start()
  undo.push(() => Promise.resolve(space.stop()))
  const upkeep = buildUpkeep(shardParts, shards, space)
  const { compaction, tiering } = upkeep
  undo.push(() => upkeep.stop())
  const upkeeps = { compaction, tiering, tombstones, space }
  const parts = { ...topicParts, ...upkeeps, idempotent, producers, preparation: placement }
  const broker = new LocalBroker({ ...settings, ...parts })

  const started = placement.prepare().then(() => shards.start())
  // Its failure is met below; until then it must not count as unhandled.
  started.catch(() => undefined)
  const { http, es01, background, httpAddress, binaryAddress } = await listen(settings, logger, broker, undo)
  logger.info({ httpAddress, binaryAddress }, 'listening; shards are starting')
  await started
  const stopSweeping = await keepProducers(producers, logger)
  undo.push(stopSweeping)
  compaction.start()
  tiering.start()
  tombstones.start()
  http.markStarted()

  return {
    httpAddress,
    binaryAddress,
    dataDir,
    durability: broker.readiness().durability,
    shards: shardCount,
    firstStart,
    engine: http.engine,
    shardSet: shards,
    es01,
    async stop() {
      broker.beginStop()
      space.stop()
      const deadlineMs = settings.shutdownTimeoutMs * GATEWAY_STOP_SHARE
      await Promise.all([http.stop(deadlineMs), es01?.stop(deadlineMs)])
      await background.close()
      await upkeep.stop()
      await stopSweeping()
      const links = shards.links()
      await shards.stop()
      await store.close()
      return sumCounters(links.map(link => link.counters))
    }
  }
}

/** What the shards need of the rest. */
interface ShardParts {
  readonly settings: Settings
  readonly logger: Logger
  readonly store: Store
  readonly catalog: Catalog
  readonly table: ProducerTable
  readonly open: OpenTopics
  readonly dataDir: string
  readonly placement: PlacementOfShards
  /** Budget of the journal, over all shards. */
  readonly journalBytes: number
  readonly onColdEvent: (shard: number, event: ColdEvent) => void
}

function buildShards(parts: ShardParts): ShardSet {
  const { settings, logger, store, catalog, table, open, dataDir, placement, journalBytes } = parts
  const { shardCount, epoch: placementEpoch } = placement
  return new ShardSet({
    shardCount,
    placementEpoch,
    dataDirectory: dataDir,
    openFilesMax: Math.max(1, Math.floor(openFilesMax(settings, descriptorLimit()) / shardCount)),
    directoryOf: shard => `${dataDir}/${journalPath({ shard, placementEpoch })}`,
    settings: { ...settings, settling: settlingOf(settings, journalBytes, shardCount), cleaning: cleaningOf(settings) },
    faultsOf: armedFaults(process.env['MILLRACE_FAULTS']),
    settlerFaults: threadFaults(process.env['MILLRACE_FAULTS'], 'settler'),
    onColdEvent: parts.onColdEvent,
    topicPlaces: () => topicPlaces(catalog),
    newestSlots: placement.newestSlots,
    onSlotOpened: (shard, sequence) => {
      store.commit([{ kind: 'slot-opened', shard, sequence }]).catch((error: unknown) => {
        // Kept so that a lost file is noticed at a later start: a broker goes on without it.
        logger.warn({ shard, err: error }, 'the newest journal slot could not be noted in the store')
      })
    },
    topics: () => open.all(),
    producers: () => table.numbers(),
    isKnownHandle: handle => catalog.meaningOf(handle).kind !== 'unknown',
    logger
  })
}

/** What keeps the logs in shape beside the shards. */
interface Upkeep {
  readonly compaction: Compaction
  readonly tiering: Tiering
  readonly coldReads: ColdReads
  /** Ends the threads, and what waits for them. */
  stop(): Promise<void>
}

function buildUpkeep(
  { settings, logger, catalog, dataDir, journalBytes }: Omit<ShardParts, 'onColdEvent'>,
  shards: ShardSet,
  space: FreeSpace
): Upkeep {
  const { backgroundJobsMax: jobsMax } = limits
  // Apart from the pool of short jobs, and from each other: a pass may take minutes, and reads wait for cold storage.
  const maintenance = new BackgroundPool<MaintenanceJobs>({ threadsMax: 1, jobsMax, logger })
  const cold = new BackgroundPool<ColdJobs>({ threadsMax: COLD_THREADS, jobsMax, logger })
  const place = coldPlace(settings, dataDir)
  const shared = { catalog, shards, turns: new StructuralTurns(), logger }
  const compaction = new Compaction({
    ...shared,
    pool: maintenance,
    clock: systemClock,
    dataDirectory: dataDir,
    intervalMs: settings.compactionCheckIntervalMs,
    mapBytes: settings.compactionMemoryBytes,
    space,
    settleBytes: journalBytes
  })
  const tiering = new Tiering({ ...shared, pool: cold, place, intervalMs: settings.retentionCheckIntervalMs })
  const coldReads = new ColdReads({ shards, pool: cold, place, cacheBytes: settings.coldCacheBytes, logger })
  const stop = async (): Promise<void> => {
    await Promise.all([maintenance.close(), cold.close()])
    await Promise.all([compaction.stop(), tiering.stop()])
  }
  return { compaction, tiering, coldReads, stop }
}

/** null: none is configured. */
function coldPlace(settings: Settings, dataDirectory: string): ColdPlace | null {
  const { coldStorageDir, coldStorage, coldStorageEndpoint, coldStorageRegion, coldStoragePathStyle } = settings
  if (coldStorageDir === null && coldStorage === null) return null
  // Refused here, in one line: a background thread would find out at the first upload.
  if (coldStorage !== null) parseBucketAddress(coldStorage)
  if (coldStorageEndpoint !== null) parseEndpoint(coldStorageEndpoint)
  const faults = threadFaults(process.env['MILLRACE_FAULTS'], 'cold')
  const where = { coldStorageDir, coldStorage, coldStorageEndpoint, coldStorageRegion, coldStoragePathStyle }
  return { dataDirectory, ...where, faults }
}

/** What a topic gets that does not say otherwise. */
function topicDefaults({ segmentBytes, defaultTombstoneRetentionMs: tombstoneRetentionMs }: Settings): TopicDefaults {
  return { segmentBytes, tombstoneRetentionMs, partitioner: 'fnv1a' }
}

function buildProducers(
  parts: Omit<IdempotentParts, 'held'>,
  catalog: Catalog,
  settings: Settings
): { idempotent: IdempotentProduce; producers: ProducerCommands } {
  const held = new ByteBudget(Math.floor(settings.requestMemoryBytes / limits.heldRequestShare))
  const idempotent = new IdempotentProduce({ ...parts, held })
  return { idempotent, producers: new ProducerCommands({ ...parts, catalog, idempotent }) }
}

/** Settles what the last run left open, then keeps the rows of producers up to date. @returns ends it, with a last round. */
async function keepProducers(producers: ProducerCommands, logger: Logger): Promise<() => Promise<void>> {
  const sweep = (work: () => Promise<void>): Promise<void> =>
    work().catch((error: unknown) => logger.warn({ err: error }, 'producer ids could not be brought up to date'))
  await sweep(() => producers.settleUnclaimed())
  const timer = setInterval(() => void sweep(() => producers.sweep()), limits.producerSweepMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await sweep(() => producers.sweep())
  }
}

type PlacementPlace = Pick<PlacementParts, 'catalog' | 'store' | 'dataDirectory' | 'logger'>

function placeShards(place: PlacementPlace, settings: Settings): PlacementOfShards {
  return new PlacementOfShards({
    ...place,
    wanted: settings.shards,
    initial: defaultShardCount(),
    topicPlaces: () => topicPlaces(place.catalog),
    faultsOf: task => threadFaults(process.env['MILLRACE_FAULTS'], task)
  })
}

/** Each shard has its share of the journal's budget. */
function settlingOf(settings: Settings, journalBytes: number, shardCount: number): SettlingSettings {
  const { settleIdleMs: idleMs, settleAgeMs: ageMs } = settings
  return { budgetBytes: Math.floor(journalBytes / shardCount), idleMs, ageMs }
}

/** With cold storage nothing is dropped for its age or size: tiering moves it. */
function cleaningOf({ retentionCheckIntervalMs, segmentMs, coldStorageDir, coldStorage }: Settings): CleaningSettings {
  return { intervalMs: retentionCheckIntervalMs, segmentMs, isTiered: coldStorageDir !== null || coldStorage !== null }
}

/** Where the files of topics are; deleted ones have none. */
function topicPlaces(catalog: Catalog): TopicPlace[] {
  const live = catalog.topics.map(({ id, name, firstHandle, partitionCount }) => {
    return { firstHandle, partitionCount, directory: `topics/${name}~${id}` }
  })
  const deleted = catalog.tombstones.map(({ firstHandle, partitionCount }) => {
    return { firstHandle, partitionCount, directory: null }
  })
  return [...live, ...deleted].sort((a, b) => a.firstHandle - b.firstHandle)
}

interface Listening {
  readonly http: HttpGateway
  readonly es01: Es01Gateway | null
  readonly background: BackgroundPool<BackgroundJobs>
  readonly httpAddress: string
  readonly binaryAddress: string | null
}

async function listen(settings: Settings, logger: Logger, broker: LocalBroker, undo: Undo[]): Promise<Listening> {
  const requestBudget = new ByteBudget(settings.requestMemoryBytes)
  const replyBudget = new ByteBudget(settings.replyMemoryBytes)
  const shared = { broker, settings, logger, requestBudget, replyBudget }
  const background = buildBackground(logger)
  undo.push(() => background.close())
  const offload = { pool: background, bodyBytesMin: limits.offloadedBodyBytesMin }
  const http = await createHttpGateway({ ...shared, engine: settings.httpEngine, offload })
  if (http.engineNote !== null)
    logger.warn({ cause: http.engineNote }, 'HTTP runs on node:http: uWebSockets.js did not load')
  const httpAt = await http.listen()
  undo.push(() => http.stop(0))
  const httpAddress = showAddress(httpAt)
  if (settings.bindBinary === null) return { http, es01: null, background, httpAddress, binaryAddress: null }
  const es01 = createEs01Gateway(shared)
  const es01At = await es01.listen()
  undo.push(() => es01.stop(0))
  return { http, es01, background, httpAddress, binaryAddress: showAddress(es01At) }
}

/** As many threads as there are cores beside the main thread: they compete with the shards only while they have jobs. */
function buildBackground(logger: Logger): BackgroundPool<BackgroundJobs> {
  const { backgroundJobsMax: jobsMax } = limits
  return new BackgroundPool({ threadsMax: Math.max(1, availableParallelism() - 1), jobsMax, logger })
}

function showAddress({ host, port }: { host: string; port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/**
 * Faults armed by a test: `<shard>/<plan>` for the first incarnation of a shard, `<shard>+/<plan>` for each one, several
 * parted by `;` (disk/fault-plan). Calls are counted anew in each incarnation, so a plan meant to strike once must not
 * reach the next: the shard would die of it for ever.
 */
function armedFaults(text: string | undefined): (shard: number, isFirst: boolean) => string | null {
  const first = new Map<number, string>()
  const each = new Map<number, string>()
  for (const item of (text ?? '').split(';').filter(part => /^\d+\+?\//.test(part))) {
    const slash = item.indexOf('/')
    const isForEach = item[slash - 1] === '+'
    const shard = Number(item.slice(0, isForEach ? slash - 1 : slash))
    ;(isForEach ? each : first).set(shard, item.slice(slash + 1))
  }
  return (shard, isFirst) => (isFirst ? first.get(shard) : undefined) ?? each.get(shard) ?? null
}

/** `<thread>/<plan>`: faults of the settler thread in its first life, of a change of shards, of removing what it left, of cold storage. */
function threadFaults(text: string | undefined, thread: 'settler' | 'change' | 'remove' | 'cold'): string | null {
  const item = (text ?? '').split(';').find(part => part.startsWith(`${thread}/`))
  return item === undefined ? null : item.slice(thread.length + 1)
}
