/**
 * Load for crash tests: producers and readers over ES01 and HTTP at once, that note what they sent and what they were
 * told (history.ts). They keep no rate: each waits for answers only. A lost connection ends its producer.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { connectEs01, Es01Error, type Es01Client } from '../../src/client/es01/client.ts'
import type { Written } from '../../src/model/errors.ts'
import { diceOf, type Dice } from './log-random.ts'
import { makeValue, type FoundRecord, type PartitionContents, type SentRecord, type Told } from './history.ts'

export interface LoadTopic {
  readonly name: string
  readonly partitions: number
}

/** Where the broker listens: TestBroker and SpawnedBroker both fit. */
export interface LoadTarget {
  readonly url: string
  readonly es01: { readonly host: string; readonly port: number }
}

export interface LoadOptions {
  readonly seed: number
  /** Unique in the test: the values begin with it. */
  readonly label: string
  readonly topics: readonly LoadTopic[]
  readonly es01Producers: number
  /** Requests in progress of each ES01 producer. */
  readonly inFlight: number
  readonly httpProducers: number
  /** One reader per protocol that follows the end of the partitions. */
  readonly hasReaders: boolean
  /** Where the readers begin, by `topic/partition`; elsewhere at 0. */
  readonly readFrom?: ReadonlyMap<string, number>
  /** Share of requests whose records go to several partitions, some by key. */
  readonly scattered: number
  /** Each producer stays with one partition of one topic, taken in turn; otherwise a request goes anywhere. */
  readonly isPinned?: boolean
}

/** One acknowledged request: when, and for which topic and partition its first record was. */
export interface Ack {
  /** Wall clock, as in the broker's log lines. */
  readonly atMs: number
  readonly topic: string
  readonly partition: number
}

/** A failed request, as the client was told. */
export interface Refusal {
  readonly protocol: 'es01' | 'http'
  /** HTTP status; 0 on ES01 and without an answer. */
  readonly status: number
  /** Code on HTTP; the message on ES01; empty without an answer. */
  readonly text: string
  readonly told: Told
  readonly partition: number
}

/** Wait after a refusal: a broken shard answers at once, and asking on without end would drown the machine. */
const REFUSED_PAUSE_MS = 3
/** Far above any answer; a request without one in this time is a hang, and the test fails by it. */
const ANSWER_TIMEOUT_MS = 20_000

interface Planned {
  readonly key: string | null
  readonly record: SentRecord
}

export class CrashLoad {
  /** Everything sent, in the order of sending of each connection. */
  readonly sent: SentRecord[] = []
  readonly read: FoundRecord[] = []
  readonly acks: Ack[] = []
  readonly refusals: Refusal[] = []
  readonly #options: LoadOptions
  readonly #target: LoadTarget
  readonly #clients: Es01Client[] = []
  #running: Promise<unknown> = Promise.resolve()
  #isStopping = false
  #serial = 0

  private constructor(target: LoadTarget, options: LoadOptions) {
    this.#target = target
    this.#options = options
  }

  /** Connects everything, then begins. */
  static async start(target: LoadTarget, options: LoadOptions): Promise<CrashLoad> {
    const load = new CrashLoad(target, options)
    const connect = (): Promise<Es01Client> => connectEs01({ ...target.es01, requestTimeoutMs: ANSWER_TIMEOUT_MS })
    const producers = await Promise.all(Array.from({ length: options.es01Producers }, connect))
    // All are connected before anything is sent: a kill planned for the n-th write must not meet a client on its way.
    const reader = options.hasReaders ? await connect() : null
    load.#clients.push(...producers, ...(reader === null ? [] : [reader]))
    const runs = producers.flatMap((client, i) => load.#startEs01(client, i))
    for (let i = 0; i < options.httpProducers; i++) runs.push(load.#produceHttp(i))
    if (reader !== null) {
      runs.push(load.#follow((topic, partition, from) => readEs01(reader, topic, partition, from)))
      runs.push(load.#follow((topic, partition, from) => readHttp(target.url, topic, partition, from)))
    }
    load.#running = Promise.all(runs)
    // Met in stop(); until then a failure must not count as unhandled.
    load.#running.catch(() => undefined)
    return load
  }

  /** Sends no more; resolves when every request in progress was answered or lost. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#running
    for (const client of this.#clients) client.destroy()
  }

  #startEs01(client: Es01Client, index: number): Promise<void>[] {
    const name = `${this.#options.label}-e${index}`
    const dice = diceOf(this.#options.seed * 31 + index)
    return Array.from({ length: this.#options.inFlight }, () => this.#produceEs01(client, name, dice, index))
  }

  async #produceEs01(client: Es01Client, name: string, dice: Dice, index: number): Promise<void> {
    while (!this.#isStopping) {
      const { topic, planned } = this.#plan(name, dice, index)
      // In the list before the first await: requests of one connection stand there as they were sent.
      const sending = client.produce(
        topic,
        planned.map(({ key, record }) => ({ key, value: record.value, ...wanted(record) }))
      )
      try {
        this.#acknowledge(planned, await sending)
      } catch (error) {
        if (!(error instanceof Es01Error)) throw error
        const told = error.kind === 'refused' ? toldByText(error.message) : toldOf(error.written)
        const isOver = error.kind !== 'refused'
        this.#refuse(planned, { protocol: 'es01', status: 0, text: isOver ? '' : error.message, told })
        if (isOver) return
        await pause(REFUSED_PAUSE_MS)
      }
    }
  }

  async #produceHttp(index: number): Promise<void> {
    const dice = diceOf(this.#options.seed * 37 + index + 1000)
    const name = `${this.#options.label}-h${index}`
    while (!this.#isStopping) {
      const { topic, planned } = this.#plan(name, dice, index + this.#options.es01Producers)
      const records = planned.map(({ key, record }) => ({ key, value: record.value, ...wanted(record) }))
      const answer = await postJson(`${this.#target.url}/topics/${topic}/produce`, JSON.stringify({ records }))
      if (answer.status === 200) {
        this.#acknowledge(planned, (answer.body as { results: { partition: number; offset: number }[] }).results)
        continue
      }
      const { code, written } = answer.body as { code: string; written: Written }
      this.#refuse(planned, { protocol: 'http', status: answer.status, text: code, told: toldOf(written) })
      if (answer.status === 0) return
      await pause(REFUSED_PAUSE_MS)
    }
  }

  #plan(connection: string, dice: Dice, index: number): { topic: string; planned: Planned[] } {
    const { topics, scattered, isPinned } = this.#options
    const topic = isPinned === true ? (topics[index % topics.length] as LoadTopic) : dice.pick(topics)
    const isScattered = dice.chance(scattered)
    const one = isPinned === true ? Math.floor(index / topics.length) % topic.partitions : dice.below(topic.partitions)
    const planned = Array.from({ length: 1 + dice.below(6) }, (): Planned => {
      const isKeyed = isScattered && dice.chance(0.5)
      const partition = isKeyed ? -1 : isScattered ? dice.below(topic.partitions) : one
      const value = makeValue(`${connection}-${this.#serial++}`, 20 + dice.below(300))
      const record: SentRecord = { connection, topic: topic.name, value, partition, offset: -1, told: 'unknown' }
      return { key: isKeyed ? `key-${dice.below(50)}` : null, record }
    })
    this.sent.push(...planned.map(({ record }) => record))
    return { topic: topic.name, planned }
  }

  #acknowledge(planned: readonly Planned[], results: readonly { partition: number; offset: number }[]): void {
    planned.forEach(({ record }, i) => {
      const result = results[i]
      if (result === undefined) throw new Error(`${results.length} results for ${planned.length} records`)
      if (record.partition >= 0 && record.partition !== result.partition) {
        throw new Error(`a record for partition ${record.partition} was acknowledged in ${result.partition}`)
      }
      record.partition = result.partition
      record.offset = result.offset
      record.told = 'acked'
    })
    this.acks.push({ atMs: Date.now(), topic: planned[0]?.record.topic ?? '', partition: results[0]?.partition ?? -1 })
  }

  #refuse(planned: readonly Planned[], refusal: Omit<Refusal, 'partition'>): void {
    for (const { record } of planned) record.told = refusal.told
    this.refusals.push({ ...refusal, partition: planned[0]?.record.partition ?? -1 })
  }

  async #follow(readMore: ReadMore): Promise<void> {
    const next = new Map(this.#options.readFrom)
    const places = this.#options.topics.flatMap(({ name, partitions }) =>
      Array.from({ length: partitions }, (_, partition) => ({ name, partition }))
    )
    for (let i = 0; !this.#isStopping; i = (i + 1) % places.length) {
      const { name, partition } = places[i] as { name: string; partition: number }
      const place = `${name}/${partition}`
      try {
        const records = await readMore(name, partition, next.get(place) ?? 0)
        this.read.push(...records)
        const last = records.at(-1)
        if (last !== undefined) next.set(place, last.offset + 1)
      } catch (error) {
        if (error instanceof ReaderLost) return
        if (!(error instanceof ReaderRefused)) throw error
        await pause(REFUSED_PAUSE_MS)
      }
    }
  }
}

type ReadMore = (topic: string, partition: number, from: number) => Promise<FoundRecord[]>

/** Reads a partition from an offset to its end, over ES01. */
export async function readPartition(
  client: Es01Client,
  topic: string,
  partition: number,
  firstOffset = 0
): Promise<PartitionContents> {
  const records: FoundRecord[] = []
  for (let offset = firstOffset; ;) {
    const answer = await client.consume({ topic, partition, offset, maxRecords: 10_000, maxBytes: 8 * 1024 * 1024 })
    for (const record of answer.records) records.push(found(topic, partition, record.offset, record.value.toString()))
    if (answer.nextOffset >= answer.highWatermark) return { topic, partition, firstOffset, records }
    offset = answer.nextOffset
  }
}

/** Reads all partitions of all topics, each from the offset that `from` has for `topic/partition`. */
export async function readTopics(
  target: LoadTarget,
  topics: readonly LoadTopic[],
  from: ReadonlyMap<string, number> = new Map()
): Promise<PartitionContents[]> {
  const client = await connectEs01({ ...target.es01 })
  try {
    const contents: PartitionContents[] = []
    for (const { name, partitions } of topics) {
      for (let partition = 0; partition < partitions; partition++) {
        contents.push(await readPartition(client, name, partition, from.get(`${name}/${partition}`) ?? 0))
      }
    }
    return contents
  } finally {
    await client.close()
  }
}

export async function createTopics(target: LoadTarget, topics: readonly LoadTopic[]): Promise<void> {
  for (const { name, partitions } of topics) {
    const answer = await postJson(`${target.url}/topics`, JSON.stringify({ name, partitions }))
    if (answer.status !== 201) throw new Error(`topic ${name}: ${answer.status} ${JSON.stringify(answer.body)}`)
  }
}

/** POSTs JSON. Status 0: no answer; `written` then says no only if nothing can have reached the broker. */
export async function postJson(url: string, body: string): Promise<{ status: number; body: unknown }> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS)
    })
    return { status: response.status, body: await response.json() }
  } catch (error) {
    if (error instanceof DOMException && error.name === 'TimeoutError') throw error
    const isRefused = JSON.stringify(causeCodes(error)).includes('ECONNREFUSED')
    return { status: 0, body: { code: '', written: isRefused ? 'no' : 'unknown' } }
  }
}

/** The broker answered a read with an error: try again later. */
class ReaderRefused extends Error {}
/** The connection of a reader is gone. */
class ReaderLost extends Error {}

async function readEs01(client: Es01Client, topic: string, partition: number, from: number): Promise<FoundRecord[]> {
  try {
    const answer = await client.consume({ topic, partition, offset: from, maxRecords: 500, maxBytes: 256 * 1024 })
    return answer.records.map(record => found(topic, partition, record.offset, record.value.toString()))
  } catch (error) {
    if (!(error instanceof Es01Error) || error.kind === 'protocol' || error.kind === 'timeout') throw error
    throw error.kind === 'refused' ? new ReaderRefused(error.message) : new ReaderLost(error.message)
  }
}

async function readHttp(url: string, topic: string, partition: number, from: number): Promise<FoundRecord[]> {
  let response: Response
  let text: string
  try {
    response = await fetch(`${url}/topics/${topic}/consume?partition=${partition}&offset=${from}&max_records=500`, {
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS)
    })
    text = await response.text()
  } catch (error) {
    if (error instanceof DOMException && error.name === 'TimeoutError') throw error
    throw new ReaderLost('no answer', { cause: error })
  }
  if (response.status !== 200) throw new ReaderRefused(text)
  const { records } = JSON.parse(text) as { records: { offset: number; value: string }[] }
  return records.map(record => found(topic, partition, record.offset, record.value))
}

function found(topic: string, partition: number, offset: number, value: string): FoundRecord {
  return { topic, partition, offset, value }
}

function wanted(record: SentRecord): { partition?: number } {
  return record.partition >= 0 ? { partition: record.partition } : {}
}

function toldOf(written: Written): Told {
  return written === 'no' ? 'refused' : 'unknown'
}

/** What an ES01 error frame says of the log: nothing was written, unless its text says otherwise. */
function toldByText(message: string): Told {
  return /\(written: (unknown|yes)\)$/.test(message) ? 'unknown' : 'refused'
}

function causeCodes(error: unknown): string[] {
  const codes: string[] = []
  let current: unknown = error
  for (let depth = 0; depth < 5 && current instanceof Error; depth++) {
    if ('code' in current) codes.push(String(current.code))
    current = current instanceof AggregateError ? current.errors[0] : current.cause
  }
  return codes
}
