/**
 * The page of metrics: gathers numbers, then writes them for each caller. Main thread.
 *
 * What it costs is bounded: one gathering at a time, and none while a page is written; who asks meanwhile shares the next
 * one, so that nobody is told numbers older than the request; with very many partitions numbers serve for up to a second.
 * Pages are written one after the other: half of one may be tens of megabytes that no budget knows of. Gathering and
 * writing let the event loop have a turn about every millisecond.
 */
import type { Clock } from '../base/clock.ts'
import { limits } from '../model/limits.ts'
import type { CommittedEntry, CompactedFigures, MetricsPage, PartitionFigures, TopicTraffic } from '../model/metrics.ts'
import type { Principal } from '../model/principal.ts'
import type { Topic } from '../model/topic.ts'
import { PageWriter } from './page-writer.ts'
import { ProcessPage, type ProcessReaders } from './process-page.ts'
import { writeTopicPage, type TopicFigures } from './topic-page.ts'

/** Where the numbers come from. */
export interface MetricsSources {
  /** Of all partitions, gathered in slices. */
  readonly partitions: () => Promise<PartitionFigures>
  readonly isLive: (topic: Topic) => boolean
  /** null: it is not counted. */
  readonly trafficOf: (topic: Topic) => TopicTraffic | null
  readonly compactedOf: (topic: Topic, partition: number) => CompactedFigures | null
  /** Offsets that groups committed, of one owner or, with null, of all; may change while it is walked. */
  readonly committed: (owner: string | null) => Iterable<CommittedEntry>
  /** `millrace_scrape_seconds` is read here. */
  readonly process: Omit<ProcessReaders, 'millrace_scrape_seconds'>
  readonly clock: Clock
}

/** The numbers of one gathering. */
interface Gathered {
  readonly figures: TopicFigures
  readonly atMs: number
  /** Pages of it that are being written, and the one for admins, by key. */
  readonly pages: Map<string, Promise<readonly Buffer[]>>
}

/** How old numbers may be where gathering them is a matter of many partitions. */
const REUSE_MS = 1000
/** Stands for all admins: they get the same page. */
const ADMINS = ''

export class Metrics implements MetricsPage {
  readonly contentType = 'text/plain; version=0.0.4'
  readonly #sources: MetricsSources
  readonly #process: ProcessPage
  /** Numbers that serve again. */
  #gathered: Gathered | null = null
  #running: Promise<Gathered> | null = null
  /** Ends when every page that was asked for so far is written. */
  #written: Promise<unknown> = Promise.resolve()
  #writing = 0
  /** The gathering that begins when the running one ends, and the pages of those before are written. */
  #next: Promise<Gathered> | null = null
  #seconds = 0

  constructor(sources: MetricsSources) {
    this.#sources = sources
    const scrape = (): { labels: Record<string, never>; value: number }[] => [{ labels: {}, value: this.#seconds }]
    this.#process = new ProcessPage({ ...sources.process, millrace_scrape_seconds: scrape })
  }

  async scrape(who: Principal): Promise<readonly Buffer[]> {
    const gathered = await this.#gather()
    const key = who.isAdmin ? ADMINS : who.keyId
    let page = gathered.pages.get(key)
    if (page === undefined) {
      page = this.#writeInTurn(gathered, who)
      gathered.pages.set(key, page)
      // Kept only if others will want it: the pages of many keys would add up.
      const forget = (): void => void gathered.pages.delete(key)
      page.then(() => (key === ADMINS ? undefined : forget()), forget)
    }
    return page
  }

  #gather(): Promise<Gathered> {
    const last = this.#gathered
    if (last !== null && this.#sources.clock.monotonicMs() - last.atMs < REUSE_MS) return Promise.resolve(last)
    if (this.#running === null && this.#writing === 0) return this.#begin()
    this.#next ??= this.#whenIdle().then(() => this.#begin())
    return this.#next
  }

  /** However it ended: those who asked hear of it. */
  async #whenIdle(): Promise<void> {
    while (this.#running !== null || this.#writing > 0) await Promise.allSettled([this.#running, this.#written])
  }

  #begin(): Promise<Gathered> {
    this.#next = null
    const running = this.#read().finally(() => {
      if (this.#running === running) this.#running = null
    })
    this.#running = running
    return running
  }

  async #read(): Promise<Gathered> {
    const { clock, partitions, isLive, trafficOf, compactedOf, committed } = this.#sources
    const atMs = clock.monotonicMs()
    const read = await partitions()
    const figures = { partitions: liveOnly(read, isLive), committed, trafficOf, compactedOf }
    this.#seconds = (clock.monotonicMs() - atMs) / 1000
    const gathered = { figures, atMs, pages: new Map() }
    if (figures.partitions.isKnown.length > limits.freshPartitionsMax) this.#keep(gathered)
    return gathered
  }

  /** For others, but not for long: the page of very many partitions is megabytes. */
  #keep(gathered: Gathered): void {
    this.#gathered = gathered
    const drop = (): void => {
      if (this.#gathered === gathered) this.#gathered = null
    }
    setTimeout(drop, REUSE_MS).unref()
  }

  #writeInTurn(gathered: Gathered, who: Principal): Promise<readonly Buffer[]> {
    this.#writing++
    const page = this.#written
      .then(() => this.#write(gathered, who))
      .finally(() => {
        this.#writing--
      })
    // Whoever asked for it hears of what it ended with.
    this.#written = page.catch(() => undefined)
    return page
  }

  async #write({ figures }: Gathered, who: Principal): Promise<readonly Buffer[]> {
    const page = new PageWriter()
    await writeTopicPage(page, figures, who)
    if (who.isAdmin) await this.#process.write(page)
    else this.#process.writeHeads(page)
    return page.finish()
  }
}

/** Without topics that were deleted while the shards were asked: their partitions would look empty. */
function liveOnly(figures: PartitionFigures, isLive: (topic: Topic) => boolean): PartitionFigures {
  if (figures.topics.every(isLive)) return figures
  const kept = figures.topics.flatMap((topic, i) => (isLive(topic) ? [{ topic, place: figures.places[i] ?? 0 }] : []))
  return { ...figures, topics: kept.map(({ topic }) => topic), places: Float64Array.from(kept, ({ place }) => place) }
}
