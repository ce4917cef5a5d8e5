/**
 * All shards, as the rest of the main thread sees them: publishes requests, delivers replies, starts shards again when
 * they die. Main thread only.
 * Never stuck: main empties reply rings at once and never waits for a ring (reply-delivery.ts).
 */
import { assert } from '../base/assert.ts'
import type { Logger } from '../base/logger.ts'
import { BrokerError } from '../model/errors.ts'
import { shardOf } from '../model/ids.ts'
import { batchBytesMax } from '../model/limits.ts'
import type { ColdEvent, ControlMessage, ShardEvent, ShardTopic } from '../wire/shard/messages.ts'
import type { ShardPlace, TopicPlace } from '../wire/shard/settle.ts'
import type { CleaningSettings, SettlingSettings } from '../wire/shard/start.ts'
import { newShardState, noteDeath, type ShardState } from './shard-state.ts'
import { describeDeath, isOperatorsBusiness, isShardLoss, rethrowUnlessLost, startFailure } from './shard-death.ts'
import { openShard } from './open-shard.ts'
import type { LeaderEpochs } from './leader-epochs.ts'
import { ReplyDelivery } from './reply-delivery.ts'
import { settlerListener } from './settler-listener.ts'
import { SettlerThread } from './settler-thread.ts'
import { ShardLink, type LinkStart, type SharedSizes } from './shard-link.ts'
import { describeStart, shareStarted, startOf } from './start-progress.ts'

/** Between the attempts of a shard that is down: what failed it, such as a lack of file handles, may pass. */
const RESTART_DOWN_MS = 30_000

export interface ShardSetOptions {
  readonly shardCount: number
  readonly placementEpoch: number
  /** Absolute. */
  readonly dataDirectory: string
  /** Handles of settled files that one shard may keep open. */
  readonly openFilesMax: number
  /** Directory of a shard's journal. */
  readonly directoryOf: (shard: number) => string
  readonly settings: SharedSizes & {
    readonly journalSlotBytes: number
    readonly journalFirstSlotBytes: number
    readonly journalFillAheadBytes: number
    readonly maxRecordBytes: number
    readonly flushEveryRecords: number
    readonly flushIntervalMs: number
    readonly settling: SettlingSettings
    readonly segmentDeleteGraceMs: number
    readonly cleaning: CleaningSettings
  }
  /** Faults for one incarnation of a shard, armed by tests; null: none. */
  readonly faultsOf: (shard: number, isFirst: boolean) => string | null
  /** The same for the settler thread. */
  readonly settlerFaults: string | null
  /** Live and deleted topics, by first handle. */
  readonly topicPlaces: () => TopicPlace[]
  /** By shard: sequence of the newest journal slot known to be durable; absent: none. */
  readonly newestSlots: ReadonlyMap<number, number>
  /** A slot is durable: to be kept where the journal is not. */
  readonly onSlotOpened: (shard: number, sequence: number) => void
  readonly onColdEvent: (shard: number, event: ColdEvent) => void
  /** A shard lost some of its log, or may have, when it recovered: what points into it may point beyond its end. */
  readonly onCut: (shard: number) => void
  readonly epochs: LeaderEpochs
  /** The topics and the numbers of the producers that exist now: every shard that starts is told them. */
  readonly topics: () => ShardTopic[]
  readonly producers: () => number[]
  /** False for a handle that neither a topic nor a deleted topic ever had. */
  readonly isKnownHandle: (handle: number) => boolean
  /** Topic and partition of a handle, for the log; null: no topic has it. */
  readonly placeInTopic: (handle: number) => { readonly topic: string; readonly partition: number } | null
  readonly logger: Logger
}

export class ShardSet {
  readonly shardCount: number
  readonly placementEpoch: number
  readonly #options: ShardSetOptions
  readonly #states: ShardState[]
  readonly #newestSlots: Map<number, number>
  readonly #delivery = new ReplyDelivery(() => this.links())
  /** The thread that alone changes manifests. */
  readonly settler: SettlerThread
  readonly #settledHooks: ((shard: number, job: number, sequence: number) => void)[] = []
  #isPublishDue = false
  #isStopping = false
  #hasStarted = false

  constructor(options: ShardSetOptions) {
    this.#options = options
    this.shardCount = options.shardCount
    this.placementEpoch = options.placementEpoch
    this.#newestSlots = new Map(options.newestSlots)
    this.#states = Array.from({ length: options.shardCount }, newShardState)
    this.settler = new SettlerThread({
      ...options,
      listener: settlerListener({
        linkOf: shard => this.#state(shard).link,
        tell: (shard, make) => this.tell(shard, make),
        onSettled: (shard, sequence) => {
          for (const hook of this.#settledHooks) hook(shard, this.settler.settleJobs(shard), sequence)
        }
      }),
      placeOf: shard => this.#placeOf(shard),
      graceMs: options.settings.segmentDeleteGraceMs,
      faults: options.settlerFaults
    })
  }

  #placeOf(shard: number): ShardPlace {
    const { placementEpoch, directoryOf, dataDirectory } = this.#options
    return { shard, placementEpoch, journalDirectory: directoryOf(shard), dataDirectory }
  }

  /**
   * Starts every shard. @returns resolves when each is ready or down for good, and one at least is ready; a shard that
   * needs an operator does not keep the others from serving. Rejects with what the operator of the first must know.
   */
  async start(): Promise<void> {
    const started = await Promise.allSettled(this.#states.map((_, shard) => this.#spawn(shard)))
    const failures = started.flatMap(result => (result.status === 'rejected' ? [result.reason as unknown] : []))
    if (failures.length === started.length) throw failures[0]
    this.#hasStarted = true
    for (const failure of failures)
      this.#options.logger.error({ err: failure }, 'a shard did not start; the others serve')
  }

  /** The link of the shard that owns a handle, if it is ready. */
  linkOf(handle: number): ShardLink | null {
    return this.link(shardOf(handle, this.shardCount))
  }

  link(shard: number): ShardLink | null {
    const state = this.#states[shard]
    return state !== undefined && state.isReady ? state.link : null
  }

  /** What is wrong, one sentence a shard; empty when all are ready. */
  problems(): string[] {
    return this.#states.flatMap((state, shard) => {
      if (state.red !== null) return [`shard ${shard} is down: ${state.red}`]
      return state.isReady ? [] : [describeStart(shard, startOf(state))]
    })
  }

  /** Share of the start that is done, 0 to 1; null: no shard is starting. */
  progress(): number | null {
    const shards = this.#states.filter(state => state.red === null)
    const starting = shards.filter(state => !state.isReady).map(startOf)
    return starting.length === 0 ? null : shareStarted(starting, shards.length)
  }

  /** The first shard that is not ready; null: all are. */
  firstDown(): number | null {
    const shard = this.#states.findIndex(state => !state.isReady)
    return shard < 0 ? null : shard
  }

  /** What a request hears for which link() has none. Nothing of it was written. */
  refusal(shard: number): BrokerError {
    const { red } = this.#state(shard)
    if (red === null && !this.#hasStarted) {
      return new BrokerError('NOT_READY', { problem: describeStart(shard, startOf(this.#state(shard))) })
    }
    if (red === null) return new BrokerError('SHARD_DOWN', { shard })
    return new BrokerError('NOT_READY', { problem: `shard ${shard} is down: ${red}` })
  }

  /** Every shard as it is now. To be looked at only. */
  get states(): readonly Readonly<ShardState>[] {
    return this.#states
  }

  links(): ShardLink[] {
    return this.#states.flatMap(state => (state.link === null ? [] : [state.link]))
  }

  /** Sends a control message to every shard that is up and waits for all. One that dies meanwhile opens anew. */
  async broadcast(send: (link: ShardLink) => Promise<unknown>): Promise<void> {
    const sent = await Promise.allSettled(this.links().map(send))
    for (const result of sent) {
      // A shard that died is given the present topics when it starts again: for it the change has happened.
      if (result.status === 'rejected' && !isShardLoss(result.reason)) throw result.reason
    }
  }

  /** Publishes what was sent and delivers what waits. */
  turn(): void {
    this.#publish()
    this.#delivery.deliver()
  }

  #publish(): void {
    this.#isPublishDue = false
    for (const state of this.#states) state.link?.publish()
  }

  /** Sees to it that what was sent is published in this tick at the latest. Replies are delivered by turn() or a doorbell. */
  publishSoon(): void {
    if (this.#isPublishDue) return
    this.#isPublishDue = true
    queueMicrotask(() => {
      if (this.#isPublishDue) this.#publish()
    })
  }

  whenRoom(callback: () => void): void {
    this.#delivery.whenRoom(callback)
  }

  onDelivered(hook: () => void): void {
    this.#delivery.onDelivered(hook)
  }

  /** Lets every shard finish what it accepted and seal its log. Nothing may be sent afterwards. */
  async stop(): Promise<void> {
    this.#isStopping = true
    for (const state of this.#states) if (state.restartTimer !== null) clearTimeout(state.restartTimer)
    await this.settler.stop()
    await Promise.all(
      this.#states.map(async state => {
        const { link } = state
        if (link === null) return
        if (!state.isReady) return link.terminate()
        const stopped = new Promise<void>(resolve => this.#exitWaiters.push({ link, resolve }))
        await link.control(id => ({ kind: 'stop', id })).catch(rethrowUnlessLost)
        await stopped
      })
    )
  }
  readonly #exitWaiters: { link: ShardLink; resolve: () => void }[] = []

  /** Calls the hook when a settle job is committed and adopted: its number, and up to which slot all is settled. */
  onSettled(hook: (shard: number, job: number, sequence: number) => void): void {
    this.#settledHooks.push(hook)
  }

  /** Sequence of the newest slot that a shard has opened; 0: none. */
  newestSlot(shard: number): number {
    return this.#newestSlots.get(shard) ?? 0
  }

  /** Has everything settled that was written so far, on every shard that is up. @fails DISK_FULL, OVERLOADED */
  settleAll(): Promise<void> {
    return this.broadcast(link => link.control(id => ({ kind: 'settle-all', id })))
  }

  /** Counters of all shards that run, by shard. */
  counters(): { shard: number; counters: ShardLink['counters'] }[] {
    return this.links().map(link => ({ shard: link.shard, counters: link.counters }))
  }

  #spawn(shard: number): Promise<void> {
    const { settings, placementEpoch, directoryOf, faultsOf, logger } = this.#options
    const state = this.#state(shard)
    return new Promise((resolve, reject) => {
      const start: LinkStart = {
        placementEpoch,
        newestSlot: this.#newestSlots.get(shard) ?? 0,
        directory: directoryOf(shard),
        dataDirectory: this.#options.dataDirectory,
        openFilesMax: this.#options.openFilesMax,
        slotBytes: settings.journalSlotBytes,
        firstSlotBytes: settings.journalFirstSlotBytes,
        fillAheadBytes: settings.journalFillAheadBytes,
        settling: settings.settling,
        cleaning: settings.cleaning,
        recordBytesMax: batchBytesMax(settings.maxRecordBytes),
        flushEveryRecords: settings.flushEveryRecords,
        flushIntervalMs: settings.flushIntervalMs,
        faults: faultsOf(shard, state.startCount++ === 0)
      }
      const link: ShardLink = new ShardLink({
        shard,
        start,
        asleep: this.#delivery.asleepMemory,
        requestRingBytes: settings.requestRingBytes,
        readRingBytes: settings.readRingBytes,
        replyRingBytes: settings.replyRingBytes,
        lentChunkCount: settings.lentChunkCount,
        encodeBufferBytes: settings.encodeBufferBytes,
        onDoorbell: () => this.#delivery.deliver(),
        onEvent: event => {
          if (event.kind !== 'recovered') return this.#handleEvent(link, event)
          logger.info({ shard, ...event.report }, 'shard recovered its log')
          if (event.report.cutGroups + event.report.quarantinedRuns > 0) this.#options.onCut(shard)
          this.settler.admit(shard)
          state.isRecovered = true
          this.#openTopics(state, link).then(resolve, reject)
        },
        onExit: cause => {
          this.#shardExited(shard, link, cause)
          reject(startFailure(shard, cause))
        }
      })
      state.link = link
      state.isRecovered = false
      state.startedAtMs = performance.now()
      // Raises the asleep flag over the new ring: its first reply must ring.
      this.#delivery.deliver()
    })
  }

  async #openTopics(state: ShardState, link: ShardLink): Promise<void> {
    await openShard(link, this.#options)
    if (state.link !== link) return
    state.isReady = true
    state.red = null
  }

  #handleEvent(
    { shard, sharedCounters: counters }: ShardLink,
    event: Exclude<ShardEvent, { kind: 'recovered' }>
  ): void {
    const { logger } = this.#options
    switch (event.kind) {
      case 'log':
        logger[event.level]({ shard, ...this.#named(event.fields) }, event.message)
        break
      case 'poisoned':
        logger.error({ shard, cause: event.cause }, 'shard stops: its disk failed; it restarts by its recovery rules')
        break
      case 'unclaimed': {
        const handles = event.handles.filter(handle => !this.#options.isKnownHandle(handle))
        if (handles.length > 0)
          logger.warn({ shard, handles }, 'the journal has data of partitions that no topic ever had: kept')
        break
      }
      case 'slot-opened':
        this.#newestSlots.set(shard, event.sequence)
        this.#options.onSlotOpened(shard, event.sequence)
        break
      case 'leader-epochs':
        this.#options.epochs.note(event.found.filter(({ handle }) => this.#options.placeInTopic(handle) !== null))
        break
      case 'writer-wanted':
        this.#state(shard).link?.startWriter()
        break
      case 'slots-wanted':
        this.settler.fill({ shard, directory: this.#options.directoryOf(shard), counters }, event.files)
        break
      case 'fetch-wanted':
      case 'copies-used':
        this.#options.onColdEvent(shard, event)
        break
      case 'settle-wanted':
        this.settler.settle(shard, event.wish)
        break
    }
  }

  /** A shard knows handles, not names. */
  #named({ handle, ...fields }: Record<string, unknown>): Record<string, unknown> {
    if (typeof handle !== 'number') return fields
    return { ...(this.#options.placeInTopic(handle) ?? { handle }), ...fields }
  }

  /** Sends a shard a control message that nobody waits for. */
  tell(shard: number, make: (id: number) => ControlMessage): void {
    const link = this.#state(shard).link
    if (link === null || this.#isStopping) return
    link.control(make).catch(rethrowUnlessLost)
  }

  #shardExited(shard: number, link: ShardLink, cause: Error | null): void {
    const state = this.#state(shard)
    assert(state.link === link, 'a shard has one link at a time')
    state.isReady = false
    state.link = null
    link.failAll()
    // The dead shard may have taken the asleep flag down with a doorbell that nobody heard: deliver, and raise it anew.
    this.#delivery.deliver()
    for (const waiter of this.#exitWaiters) if (waiter.link === link) waiter.resolve()
    if (this.#isStopping) return
    // A start that fails is told in one line by whoever started it; only a shard that served is news.
    const level = this.#hasStarted ? 'error' : 'debug'
    this.#options.logger[level]({ shard, err: cause ?? undefined }, 'shard ended')
    const waitMs = noteDeath(state)
    const needsOperator = isOperatorsBusiness(cause)
    if (waitMs === undefined || needsOperator) {
      // Callers hear it: where the directory lies is not for them.
      state.red = describeDeath(cause, state.deaths).replaceAll(`${this.#options.dataDirectory}/`, '')
      this.#options.logger.error({ shard, reason: state.red }, 'shard is down')
      if (needsOperator) return
    }
    this.#restartLater(shard, waitMs ?? RESTART_DOWN_MS)
  }

  #restartLater(shard: number, waitMs: number): void {
    this.#state(shard).restartTimer = setTimeout(() => {
      // The settler's jobs for the dead incarnation end first: two must never write one file.
      void this.settler
        .cancel(shard)
        .then(() => (this.#isStopping ? undefined : this.#spawn(shard)))
        .catch((error: unknown) => this.#options.logger.error({ shard, err: error }, 'shard did not start'))
    }, waitMs)
  }

  #state(shard: number): ShardState {
    const state = this.#states[shard]
    assert(state !== undefined, 'a shard that exists')
    return state
  }
}
