/**
 * The composition root: builds the whole broker, in the order in which it depends on itself, and takes it down in the
 * reverse order. Its larger parts are in composition/. Main thread.
 */
import { existsSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import type { BatchJobs } from './background/jobs.ts'
import type { BackgroundPool } from './background/pool.ts'
import { ByteBudget } from './base/byte-budget.ts'
import { systemClock } from './base/clock.ts'
import { collectWhenIdle } from './base/idle-memory.ts'
import type { Logger } from './base/logger.ts'
import { LocalBroker } from './broker/broker.ts'
import { IdempotentProduce, type IdempotentParts } from './broker/idempotent-produce.ts'
import { LocalEngine, OpenTopics } from './broker/local-engine.ts'
import { LeaderEpochs } from './shards/leader-epochs.ts'
import { ProducerCommands } from './broker/producer-commands.ts'
import { TombstoneKeeper } from './broker/tombstones.ts'
import { ProduceGates } from './broker/produce-gate.ts'
import { Traffic } from './broker/traffic.ts'
import { WatchHub } from './broker/watches.ts'
import { openKeys } from './composition/access.ts'
import { findAddressesFree } from './composition/free-addresses.ts'
import { buildGroups, type GroupComposition } from './composition/groups.ts'
import { buildKeyedBatches, buildRecordKeyPool } from './composition/record-key-pool.ts'
import { listen, openCertificates, type Undo } from './composition/listeners.ts'
import { buildMetrics } from './composition/metrics.ts'
import { judgeBinds } from './composition/open-bind.ts'
import { buildSchemas, buildValidation, type SchemaComposition } from './composition/schemas.ts'
import { buildShards, placeShards } from './composition/shards.ts'
import { dumpState } from './composition/state-dump.ts'
import { buildUpkeep } from './composition/upkeep.ts'
import { budgetBytes, reserveBytes } from './config/auto-sizes.ts'
import { measureMachine } from './config/machine.ts'
import type { Settings } from './config/settings.ts'
import { Catalog } from './control/catalog.ts'
import { ChangeTurns } from './control/change-turns.ts'
import { ProducerTable } from './control/producer-table.ts'
import { Quotas } from './control/quotas.ts'
import type { TopicDefaults } from './control/topic-decisions.ts'
import { FreeSpace } from './disk/free-space.ts'
import type { Es01Gateway } from './gateway/es01/gateway.ts'
import type { KafkaGateway } from './gateway/kafka/gateway.ts'
import type { Certificates } from './gateway/shared/certificates.ts'
import type { HttpGateway } from './gateway/http/gateway.ts'
import { batchBytesMax, limits } from './model/limits.ts'
import type { ShardSet } from './shards/shard-set.ts'
import { openStore } from './store/store-client.ts'
import { COLD_CACHE_DIRECTORY, COLD_OUTGOING_DIRECTORY } from './wire/shard/cold.ts'
import { sumCounters, type ShardCounters } from './wire/shard/counters.ts'

/** A broker that answers. */
export interface RunningServer {
  /** host:port in effect; with port 0 the one the system picked. */
  readonly httpAddress: string
  readonly binaryAddress: string | null
  /** Empty: no Kafka listener. */
  readonly kafkaAddresses: readonly string[]
  readonly dataDir: string
  readonly durability: string
  readonly shards: number
  readonly firstStart: boolean
  readonly engine: 'uws' | 'node'
  /** For tests and metrics: the shards and the listeners, and what they count. */
  readonly shardSet: ShardSet
  readonly es01: Es01Gateway | null
  readonly kafka: KafkaGateway | null
  readonly traffic: Traffic
  /** For tests: the use cases that no listener offers so far. */
  readonly broker: LocalBroker
  /** null: without TLS. */
  readonly tls: Certificates | null
  /**
   * Takes what can change while it runs (config/reload.ts), and reads the certificate anew.
   * @returns why the certificate was not taken; null: it was, or there is none.
   */
  reload(settings: Settings): string | null
  /** What it is doing, for the log. */
  describeState(): Promise<Record<string, unknown>>
  /** Answers what is in progress, seals the logs, gives the directory back. @returns what the shards did, in sum, for the log. */
  stop(): Promise<ShardCounters>
}

/**
 * Share of --shutdown-timeout after which clients that do not take their answers are cut off. The rest is for the
 * shards to seal their logs: one stuck client must not make a clean stop a failed one.
 */
const GATEWAY_STOP_SHARE = 0.75

/**
 * Starts a broker. @returns when it accepts traffic on every listener.
 * @throws Error with one line for the person who started it.
 */
export async function startServer(given: Settings, logger: Logger): Promise<RunningServer> {
  const undo: Undo[] = []
  try {
    return await build(await judgeBinds(given), logger, undo)
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
  const stopCollecting = collectWhenIdle()
  undo.push(() => Promise.resolve(stopCollecting()))
  const certificates = openCertificates(settings, logger, undo)
  if (!existsSync(settings.dataDir)) await findAddressesFree(settings)
  const storage = await openStorage(settings, logger, undo)
  const { store, placement, shards, space, upkeep, tombstones } = storage
  const schemas = buildSchemas({ store, logger })
  undo.push(() => schemas.stop())
  const recordKeyPool = buildRecordKeyPool(logger)
  undo.push(() => recordKeyPool.close())
  const offered = { certificates, recordKeyPool, ...schemas }
  const { broker, groups, producers, traffic, watches } = await buildBroker(storage, settings, logger, offered)

  const started = placement.prepare().then(() => shards.start())
  // Its failure is met below; until then it must not count as unhandled.
  started.catch(() => undefined)
  const counted = { ...storage, settings, traffic, groups, watches, certificate: certificates }
  const { metrics, gateways, stop: stopMetrics } = buildMetrics(counted, undo)
  const { directoryId } = storage.store.image
  const listening = await listen({ settings, logger, broker, certificates, metrics, gateways, directoryId }, undo)
  const { http, es01, kafka, background, httpAddress, binaryAddress, kafkaAddresses } = listening
  logger.info({ httpAddress, binaryAddress, kafkaAddresses }, 'listening; shards are starting')
  await started
  const stopSweeping = await keepProducers(producers, logger)
  undo.push(stopSweeping)
  upkeep.compaction.start()
  upkeep.tiering.start()
  tombstones.start()
  await groups.start()
  undo.push(() => groups.stop())
  http.markStarted()
  certificates?.watch()

  return {
    httpAddress,
    binaryAddress,
    kafkaAddresses,
    dataDir: storage.dataDir,
    durability: broker.readiness().durability,
    shards: placement.shardCount,
    firstStart: storage.isFirstStart,
    engine: http.engine,
    shardSet: shards,
    es01,
    kafka,
    traffic,
    broker,
    tls: certificates,
    reload: next => reload(next, http, certificates),
    describeState: () => dumpState({ ...listening, shards, broker }),
    async stop() {
      broker.beginStop()
      certificates?.stop()
      space.stop()
      stopMetrics()
      stopCollecting()
      const deadlineMs = settings.shutdownTimeoutMs * GATEWAY_STOP_SHARE
      await Promise.all([http.stop(deadlineMs), es01?.stop(deadlineMs), kafka?.stop(deadlineMs)])
      await Promise.all([background.close(), schemas.stop(), recordKeyPool.close()])
      await upkeep.stop()
      await stopSweeping()
      await groups.stop()
      const links = shards.links()
      await shards.stop()
      await store.close()
      return sumCounters(links.map(link => link.counters))
    }
  }
}

/** The use cases, and what of them others ask too. */
interface BrokerComposition {
  readonly broker: LocalBroker
  readonly groups: GroupComposition
  readonly producers: ProducerCommands
  readonly traffic: Traffic
  readonly watches: WatchHub
}

/** The use cases, over a storage that need not have started. */
async function buildBroker(
  storage: Storage,
  settings: Settings,
  logger: Logger,
  offered: SchemaComposition & {
    readonly certificates: Certificates | null
    readonly recordKeyPool: BackgroundPool<BatchJobs>
  }
): Promise<BrokerComposition> {
  const { dataDir, store, catalog, table, placement, engine, space, upkeep, tombstones } = storage
  const watches = new WatchHub(engine)
  const keys = await openKeys({ settings, store, dataDir, logger, onRevoked: () => watches.endRevoked() })
  const { certificates, schemas, recordKeyPool: pool } = offered
  const producerParts = { table, store, engine, clock: systemClock, logger }
  const { idempotent, producers } = buildProducers(producerParts, catalog, settings)
  const validation = buildValidation(offered, { catalog, engine, idempotent }, settings.requestMemoryBytes)
  const keyedBatches = buildKeyedBatches({ catalog, engine, pool }, settings.requestMemoryBytes)
  const topicParts = { catalog, turns: new ChangeTurns(), store, engine, defaults: topicDefaults(settings) }
  const groups = buildGroups({ ...storage, settings, logger, shardCount: placement.shardCount })
  const { compaction, tiering } = upkeep
  const upkeeps = { compaction, tiering, tombstones, space }
  const traffic = new Traffic()
  const metering = { quotas: new Quotas(systemClock), traffic, gates: new ProduceGates(), watches }
  const useCases = { ...groups, idempotent, validation, keyedBatches, producers, keys, schemas, certificates }
  const parts = { ...topicParts, ...upkeeps, ...metering, ...useCases, preparation: placement }
  return { broker: new LocalBroker({ ...settings, ...parts }), groups, producers, traffic, watches }
}

function reload(next: Settings, http: HttpGateway, certificates: Certificates | null): string | null {
  http.applyAccess(next)
  if (certificates === null || next.tlsCert === null || next.tlsKey === null) return null
  return certificates.reload({ cert: next.tlsCert, key: next.tlsKey })
}

type Storage = Awaited<ReturnType<typeof openStorage>>

/** The store, the shards and what keeps their logs in shape; the shards are not started yet. */
async function openStorage(settings: Settings, logger: Logger, undo: Undo[]) {
  const dataDir = resolve(settings.dataDir)
  const store = await openStore({ dataDir, logger })
  undo.push(() => store.close())
  const catalog = new Catalog(store.image)
  const table = new ProducerTable(store.image)
  const isFirstStart = store.image.shardCount === null
  const placement = placeShards({ catalog, store, dataDirectory: dataDir, logger }, settings)
  undo.push(() => placement.stop())

  removeColdCopies(dataDir)
  const open = new OpenTopics()
  const epochs = new LeaderEpochs()
  for (const topic of catalog.topics) open.set(topic)
  const journalBytes = budgetBytes(settings, measureMachine(dataDir), placement.shardCount)
  const shardParts = { settings, logger, store, catalog, table, open, epochs, dataDir, placement, journalBytes }
  const cutShards = new Set<number>()
  const shards = buildShards({
    ...shardParts,
    onColdEvent: (shard, event) => upkeep.coldReads.onEvent(shard, event),
    onCut: shard => cutShards.add(shard)
  })
  const tombstones = new TombstoneKeeper({ catalog, store, shards, logger, monotonicMs: systemClock.monotonicMs })
  shards.onSettled((shard, job, sequence) => tombstones.settled(shard, job, sequence))
  undo.push(() => shards.stop())
  // A share of the request memory, so that a few large frames leave room for the many small ones.
  const oversized = new ByteBudget(Math.floor(settings.requestMemoryBytes / limits.movedFrameShare))
  const engine = new LocalEngine(shards, open, epochs, oversized)
  const space = new FreeSpace({ directory: dataDir, reserveBytes: reserveBytes(settings, journalBytes), logger })
  await space.start()
  undo.push(() => Promise.resolve(space.stop()))
  const upkeep = buildUpkeep(shardParts, shards, space)
  undo.push(() => upkeep.stop())
  const parts = { dataDir, isFirstStart, store, catalog, table, placement, shards }
  return { ...parts, cutShards, engine, space, upkeep, tombstones }
}

/** What a topic gets that does not say otherwise. */
function topicDefaults(settings: Settings): TopicDefaults {
  const { segmentBytes, defaultTombstoneRetentionMs: tombstoneRetentionMs, maxRecordBytes } = settings
  return {
    segmentBytes,
    tombstoneRetentionMs,
    batchBytesMax: batchBytesMax(maxRecordBytes)
  }
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

/** Of the last run: a copy that was cut off must not be taken for one. */
function removeColdCopies(dataDirectory: string): void {
  for (const name of [COLD_CACHE_DIRECTORY, COLD_OUTGOING_DIRECTORY])
    rmSync(`${dataDirectory}/${name}`, { recursive: true, force: true })
}
