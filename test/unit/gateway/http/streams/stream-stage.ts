/** Streams on a hub over a broker in memory, with sockets that take what the test lets them take. */
import type { TestContext } from 'node:test'
import { ByteBudget } from '../../../../../src/base/byte-budget.ts'
import { systemClock } from '../../../../../src/base/clock.ts'
import {
  NO_HEADERS,
  type AnswerHolding,
  type Reply,
  type ReplyWatcher
} from '../../../../../src/gateway/http/engines/engine.ts'
import { HttpProbe } from '../../../../../src/gateway/http/probe.ts'
import { ReadLine } from '../../../../../src/gateway/http/reads/read-line.ts'
import { ReplyMemory } from '../../../../../src/gateway/http/reads/reply-memory.ts'
import { Follower } from '../../../../../src/gateway/http/streams/follower.ts'
import { StreamHub, type StreamForm, type StreamTimes } from '../../../../../src/gateway/http/streams/stream-hub.ts'
import { Stream } from '../../../../../src/gateway/http/streams/stream.ts'

import { toTopicId } from '../../../../../src/model/ids.ts'
import { anonymous, type Principal } from '../../../../../src/model/principal.ts'
import { readFormats } from '../../../../../src/model/requests.ts'
import { FakeBroker } from '../fake-broker.ts'
import type { LogLine } from '../http-harness.ts'

/** An open answer that keeps what it was given. */
export class FakeReply implements Reply {
  isClosed = false
  isAnswered = false
  watcher: ReplyWatcher | null = null
  standingHeaders = NO_HEADERS
  meter = null
  holding: AnswerHolding | null = null
  readonly clientAddress = '127.0.0.1'
  isAborted = false
  /** While true the socket takes nothing more. */
  isFull = false
  /** Called within each push. */
  onPushed: () => void = () => undefined
  readonly pushed: string[] = []

  get text(): string {
    return this.pushed.join('')
  }

  /** Offsets of the records that were sent, by partition. */
  get offsets(): [number, number][] {
    return [...this.text.matchAll(/"partition":(\d+),"offset":(\d+)/g)].map(([, p, o]) => [Number(p), Number(o)])
  }

  send(): void {
    throw new Error('a stream is not sent whole')
  }

  begin(): void {
    throw new Error('a stream has no length')
  }

  chunk(): void {
    throw new Error('a stream has no length')
  }

  open(): void {
    this.isAnswered = true
  }

  push(bytes: Buffer): boolean {
    if (this.isClosed) return false
    this.pushed.push(bytes.toString())
    this.onPushed()
    return !this.isFull
  }

  finish(): void {
    this.close(false)
  }

  abort(): void {
    this.isAborted = true
    this.close(true)
  }

  /** The socket has taken everything. */
  drain(): void {
    this.isFull = false
    this.watcher?.onReplyDrained?.()
  }

  close(aborted: boolean): void {
    if (this.isClosed) return
    this.isClosed = true
    this.watcher?.onReplyClosed(aborted)
  }
}

export interface Opened {
  readonly stream: Stream
  readonly reply: FakeReply
  readonly followers: readonly Follower[]
  closedCount: number
}

export interface StageOptions extends Partial<StreamTimes> {
  readonly budgetBytes?: number
  readonly partitions?: number
}

export class StreamStage {
  readonly broker = new FakeBroker()
  readonly probe = new HttpProbe(systemClock)
  readonly log: LogLine[] = []
  readonly replyBudget: ByteBudget
  readonly hub: StreamHub
  readonly form: StreamForm = { format: readFormats.framesUtf8, maxRecords: 10, maxBytes: 1000 }
  readonly #logger

  constructor(t: TestContext, { budgetBytes = 1 << 30, ...times }: StageOptions = {}) {
    const { broker, probe } = this
    const keep = (level: string) => (fields: object, message: string) => void this.log.push({ level, fields, message })
    this.#logger = { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') }
    this.replyBudget = new ByteBudget(budgetBytes)
    const { replyBudget } = this
    const readLine = new ReadLine({
      whenRoom: callback => broker.whenRoom(callback),
      whenReleased: callback => replyBudget.whenReleased(callback),
      onTaken: () => undefined
    })
    this.hub = new StreamHub(
      { broker, replyMemory: new ReplyMemory(replyBudget), readLine, probe, scheduleTurn: () => broker.turn() },
      times
    )
    t.after(() => this.hub.stop())
  }

  /** Topic t. */
  async create(partitions = 1): Promise<void> {
    await this.broker.createTopic(anonymous, { name: 't', partitions, config: {} })
  }

  /** Puts records in, and tells whoever waits. */
  append(partition: number, ...values: string[]): void {
    const records = this.broker.recordsOf('t', partition)
    for (const value of values) records.push({ key: null, value: Buffer.from(value), sequence: 0n })
    this.broker.watches.answer()
  }

  /** A stream of the first partitions of t, from their beginning. */
  open(partitionCount = 1, who: Principal = anonymous, form: StreamForm = this.form): Opened {
    const reply = new FakeReply()
    const services = { streams: this.hub, probe: this.probe, logger: this.#logger }
    const head = { method: 'GET', path: '/topics/t/stream' }
    const followers: Follower[] = []
    const stream = new Stream({ who, party: who.keyId, head, reply, services }, form, {
      shapeOf: ({ partition }) => ({ key: '', shape: { id: ['', ''], topic: null, partition } }),
      isOutgrown: false,
      onDrained: () => undefined,
      onClosed: () => void opened.closedCount++
    })
    const opened: Opened = { stream, reply, followers, closedCount: 0 }
    for (let i = 0; i < partitionCount; i++)
      followers.push(new Follower(stream, { topic: 't', topicId: toTopicId(1), partition: i }, 0n))
    stream.open(null)
    for (const follower of followers) stream.follow(follower)
    return opened
  }
}
