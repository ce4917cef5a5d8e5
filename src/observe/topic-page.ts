/**
 * The series of topics and groups, for one caller. Main thread. They may be 60,000 lines and more: written by hand, column
 * by column, because a metrics library keeps an object for each.
 */
import { limits } from '../model/limits.ts'
import type { CommittedEntry, CompactedFigures, PartitionFigures, TopicTraffic } from '../model/metrics.ts'
import type { Principal } from '../model/principal.ts'
import type { Topic } from '../model/topic.ts'
import { escapeLabel, type PageWriter } from './page-writer.ts'
import { topicSeries, type TopicSeries } from './series.ts'

/** The numbers of one scrape. */
export interface TopicFigures {
  readonly partitions: PartitionFigures
  readonly committed: (owner: string | null) => Iterable<CommittedEntry>
  /** null: it is not counted. */
  readonly trafficOf: (topic: Topic) => TopicTraffic | null
  /** null: nothing was dropped. */
  readonly compactedOf: (topic: Topic, partition: number) => CompactedFigures | null
}

/** What is told of an offset that a group committed. */
interface GroupRow {
  readonly labels: string
  readonly offset: bigint
  /** null: the end is not known. */
  readonly lag: bigint | null
}

/** Entries between two turns of the event loop: about a millisecond. */
const TURN_ENTRIES = 2000

/** A topic that the caller may read: its index in the columns. */
interface Shown {
  readonly topic: Topic
  readonly place: number
  /** Escaped. */
  readonly label: string
}

const columns = {
  es_partition_start_offset: 'startOffset',
  es_partition_end_offset: 'endOffset',
  es_partition_size_bytes: 'sizeBytes',
  es_partition_segment_count: 'segmentCount'
} as const

const trafficFields = {
  es_topic_records_produced_total: 'producedRecords',
  es_topic_bytes_produced_total: 'producedBytes',
  es_topic_records_consumed_total: 'consumedRecords',
  es_topic_bytes_consumed_total: 'consumedBytes'
} as const

const retiredColumns = {
  es_retention_segments_deleted_total: 'retiredSegments',
  es_retention_bytes_reclaimed_total: 'retiredBytes'
} as const

const compactedFields = {
  es_compaction_runs_total: 'runs',
  es_compaction_records_dropped_total: 'recordsDropped'
} as const

/** Writes all of topicSeries, in its order. */
export async function writeTopicPage(page: PageWriter, figures: TopicFigures, who: Principal): Promise<void> {
  const writer = new TopicPage(page, figures)
  await writer.chooseTopics(who)
  for (const name of keysOf(columns)) await writer.partitionColumn(name, figures.partitions[columns[name]])
  for (const name of keysOf(trafficFields)) await writer.traffic(name, trafficFields[name])
  for (const name of keysOf(retiredColumns)) await writer.retired(name, figures.partitions[retiredColumns[name]])
  for (const name of keysOf(compactedFields)) await writer.compacted(name, compactedFields[name])
  await writer.groups(who)
}

function keysOf<Key extends TopicSeries>(table: { readonly [Name in Key]: unknown }): Key[] {
  return Object.keys(table) as Key[]
}

class TopicPage {
  readonly #page: PageWriter
  readonly #figures: TopicFigures
  readonly #shown: Shown[] = []

  constructor(page: PageWriter, figures: TopicFigures) {
    this.#page = page
    this.#figures = figures
  }

  async chooseTopics(who: Principal): Promise<void> {
    const { topics, places } = this.#figures.partitions
    for (const [i, topic] of topics.entries()) {
      if (i % 1000 === 999) await this.#page.breathe()
      if (who.mayRead(topic.name)) this.#shown.push({ topic, place: places[i] ?? 0, label: escapeLabel(topic.name) })
    }
  }

  async partitionColumn(name: TopicSeries, column: Float64Array): Promise<void> {
    await this.#partitions(name, this.#shown, (shown, partition) => column[shown.place + partition] ?? 0)
  }

  /** Only of topics that retention looks at, and of what it has dropped: the others would be lines of zeros. */
  async retired(name: TopicSeries, column: Float64Array): Promise<void> {
    const isLooked = new Set(this.#shown.filter(({ topic }) => isRetained(topic)))
    await this.#partitions(name, this.#shown, (shown, partition) => {
      const value = column[shown.place + partition] ?? 0
      return value > 0 || isLooked.has(shown) ? value : null
    })
  }

  /** Only of topics that are compacted, and of partitions that were. */
  async compacted(name: TopicSeries, field: keyof CompactedFigures): Promise<void> {
    const { compactedOf } = this.#figures
    await this.#partitions(name, this.#shown, ({ topic }, partition) => {
      const value = compactedOf(topic, partition)?.[field] ?? null
      return value ?? (topic.config.cleanup_policy === 'delete' ? null : 0)
    })
  }

  /** @param valueOf null: it has no sample. */
  async #partitions(
    name: TopicSeries,
    topics: readonly Shown[],
    valueOf: (shown: Shown, partition: number) => number | null
  ): Promise<void> {
    const page = this.#page
    const { isKnown } = this.#figures.partitions
    page.head(name, topicSeries[name])
    for (const shown of topics) {
      const start = `${name}{topic="${shown.label}",partition="`
      for (let partition = 0; partition < shown.topic.partitionCount; partition++) {
        const value = isKnown[shown.place + partition] === 0 ? null : valueOf(shown, partition)
        if (value !== null && page.sample(`${start}${partition}"}`, value)) await page.breathe()
      }
    }
  }

  async traffic(name: TopicSeries, field: keyof TopicTraffic): Promise<void> {
    const page = this.#page
    page.head(name, topicSeries[name])
    for (const { topic, label } of this.#shown) {
      const value = this.#figures.trafficOf(topic)?.[field]
      if (value !== undefined && page.sample(`${name}{topic="${label}"}`, value)) await page.breathe()
    }
  }

  /** Groups that the caller owns, on topics and partitions that exist and that it may read. */
  async groups(who: Principal): Promise<void> {
    const page = this.#page
    const rows = await this.#groupRows(who.isAdmin ? null : who.keyId)
    page.head('es_group_committed_offset', topicSeries.es_group_committed_offset)
    for (const { labels, offset } of rows)
      if (page.sample(`es_group_committed_offset${labels}`, offset)) await page.breathe()
    page.head('es_group_lag', topicSeries.es_group_lag)
    for (const { labels, lag } of rows)
      if (lag !== null && page.sample(`es_group_lag${labels}`, lag)) await page.breathe()
  }

  /** @param owner null: all groups. */
  async #groupRows(owner: string | null): Promise<GroupRow[]> {
    const { isKnown, endOffset } = this.#figures.partitions
    const byId = new Map<number, Shown>(this.#shown.map(shown => [shown.topic.id, shown]))
    const repeats = new RepeatedEntries()
    const rows: GroupRow[] = []
    let walked = 0
    for (const entry of this.#figures.committed(owner)) {
      if (++walked % TURN_ENTRIES === 0) await this.#page.breathe()
      const { group, topicId, partition, offset } = entry
      const shown = byId.get(topicId)
      if (shown === undefined || partition >= shown.topic.partitionCount || repeats.isRepeated(entry)) continue
      if (rows.length === limits.scrapedOffsetsMax) break
      const place = shown.place + partition
      const end = BigInt(endOffset[place] ?? 0)
      const lag = isKnown[place] === 0 ? null : end > offset ? end - offset : 0n
      const labels = `{group="${escapeLabel(group)}",topic="${shown.label}",partition="${partition}"}`
      rows.push({ labels, offset, lag })
    }
    return rows
  }
}

/** Whether an entry came before, in a walk over something that changes meanwhile: by group, then topic, then partition. */
class RepeatedEntries {
  /** Groups and topics whose entries came. */
  readonly #runs = new Set<string>()
  #group = ''
  #topicId = -1
  #partition = -1
  #isRepeatedRun = false

  isRepeated({ group, topicId, partition }: CommittedEntry): boolean {
    if (group !== this.#group || topicId !== this.#topicId) {
      const run = `${topicId} ${group}`
      this.#isRepeatedRun = this.#runs.has(run)
      this.#runs.add(run)
      this.#group = group
      this.#topicId = topicId
      this.#partition = -1
    }
    if (this.#isRepeatedRun || partition <= this.#partition) return true
    this.#partition = partition
    return false
  }
}

function isRetained({ config }: Topic): boolean {
  return config.cleanup_policy !== 'compact' && (config.retention_ms !== null || config.retention_bytes !== null)
}
