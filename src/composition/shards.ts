/** The shards as the composition root builds them: out of the settings, the store and where things lie. Main thread. */
import { rangesOf } from '../model/handles.ts'
import type { Logger } from '../base/logger.ts'
import { OpenTopics } from '../broker/local-engine.ts'
import { lentChunkCount, openFilesMax } from '../config/auto-sizes.ts'
import { descriptorLimit } from '../config/machine.ts'
import type { Settings } from '../config/settings.ts'
import { defaultShardCount } from '../config/shards.ts'
import type { Catalog } from '../control/catalog.ts'
import type { ProducerTable } from '../control/producer-table.ts'
import { journalPath } from '../log/shard-place.ts'
import { PlacementOfShards, type PlacementParts } from '../placement.ts'
import type { LeaderEpochs } from '../shards/leader-epochs.ts'
import { ShardSet } from '../shards/shard-set.ts'
import type { Store } from '../store/store.ts'
import type { ColdEvent } from '../wire/shard/messages.ts'
import type { TopicPlace } from '../wire/shard/settle.ts'
import type { CleaningSettings, SettlingSettings } from '../wire/shard/start.ts'
import { armedFaults, threadFaults } from './armed-faults.ts'

/** What the shards need of the rest. */
export interface ShardParts {
  readonly settings: Settings
  readonly logger: Logger
  readonly store: Store
  readonly catalog: Catalog
  readonly table: ProducerTable
  readonly open: OpenTopics
  readonly epochs: LeaderEpochs
  readonly dataDir: string
  readonly placement: PlacementOfShards
  /** Budget of the journal, over all shards. */
  readonly journalBytes: number
  readonly onColdEvent: (shard: number, event: ColdEvent) => void
  readonly onCut: (shard: number) => void
}

export function buildShards(parts: ShardParts): ShardSet {
  const { settings, logger, store, catalog, table, open, dataDir, placement, journalBytes } = parts
  const { shardCount, epoch: placementEpoch } = placement
  return new ShardSet({
    shardCount,
    placementEpoch,
    dataDirectory: dataDir,
    openFilesMax: Math.max(1, Math.floor(openFilesMax(settings, descriptorLimit()) / shardCount)),
    directoryOf: shard => `${dataDir}/${journalPath({ shard, placementEpoch })}`,
    settings: {
      ...settings,
      lentChunkCount: lentChunkCount(settings, shardCount),
      settling: settlingOf(settings, journalBytes, shardCount),
      cleaning: cleaningOf(settings)
    },
    faultsOf: armedFaults(process.env['MILLRACE_FAULTS']),
    settlerFaults: threadFaults(process.env['MILLRACE_FAULTS'], 'settler'),
    onColdEvent: parts.onColdEvent,
    onCut: parts.onCut,
    epochs: parts.epochs,
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
    placeInTopic: handle => {
      const meaning = catalog.meaningOf(handle)
      return meaning.kind === 'live' ? { topic: meaning.topic.name, partition: meaning.partition } : null
    },
    logger
  })
}

export type PlacementPlace = Pick<PlacementParts, 'catalog' | 'store' | 'dataDirectory' | 'logger'>

export function placeShards(place: PlacementPlace, settings: Settings): PlacementOfShards {
  return new PlacementOfShards({
    ...place,
    wanted: settings.shards,
    initial: defaultShardCount(),
    topicPlaces: () => topicPlaces(place.catalog),
    faultsOf: task => threadFaults(process.env['MILLRACE_FAULTS'], task)
  })
}

/** Each shard has its share of the journal's budget. */
export function settlingOf(settings: Settings, journalBytes: number, shardCount: number): SettlingSettings {
  const { settleIdleMs: idleMs, settleAgeMs: ageMs } = settings
  return { budgetBytes: Math.floor(journalBytes / shardCount), idleMs, ageMs }
}

/** With cold storage nothing is dropped for its age or size: tiering moves it. */
export function cleaningOf({
  retentionCheckIntervalMs,
  segmentMs,
  coldStorageDir,
  coldStorage
}: Settings): CleaningSettings {
  return { intervalMs: retentionCheckIntervalMs, segmentMs, isTiered: coldStorageDir !== null || coldStorage !== null }
}

/** Where the files of topics are; deleted ones have none. */
export function topicPlaces(catalog: Catalog): TopicPlace[] {
  const live = catalog.topics.flatMap(topic => {
    const directory = `topics/${topic.name}~${topic.id}`
    return rangesOf(topic).map(range => ({ ...range, directory }))
  })
  const deleted = catalog.tombstones.flatMap(topic => rangesOf(topic).map(range => ({ ...range, directory: null })))
  return [...live, ...deleted].sort((a, b) => a.firstHandle - b.firstHandle)
}
