/**
 * The route `GET /topics/:name/stream`: one partition of a topic, or all, as server-sent events. Main thread.
 * Where it is stands in the id of each event, and in nothing else: whoever sends the last one goes on behind it.
 */
import { BrokerError } from '../../../model/errors.ts'
import type { TopicId } from '../../../model/ids.ts'
import type { EventShape } from '../../../wire/json/event-text.ts'
import { FILLER } from '../../../wire/json/event-text.ts'
import type { RequestHead } from '../engines/engine.ts'
import type { Exchange } from '../exchange.ts'
import { parseQuery, readPartition } from '../query.ts'
import { findStart, readStart, startNames, type Start } from '../reads/start-offset.ts'
import { fitCursor, readCursor, type Cursor } from './cursor.ts'
import { Follower } from './follower.ts'
import { checkPartitionCount, readStreamForm, streamNames, withIdsOf } from './stream-form.ts'
import { STREAM_HEAD } from './stream-head.ts'
import type { StreamForm } from './stream-hub.ts'
import { Stream, type StreamSource } from './stream.ts'

/** A request, checked in form. */
interface Asked {
  readonly form: StreamForm
  /** Of the topic that has the name now. */
  readonly topicId: TopicId
  /** null: all of the topic. */
  readonly partition: number | null
  readonly start: Start
  /** Comes before the start; null: there is none. */
  readonly cursor: Cursor | null
}

class TopicSource implements StreamSource {
  readonly #followers: readonly Follower[]
  readonly #partitionCountNow: () => number
  readonly #shapes = new Map<Follower, EventShape>()

  /** @param partitionCountNow how many it would follow if it began now. */
  constructor(followers: readonly Follower[], partitionCountNow: () => number) {
    this.#followers = followers
    this.#partitionCountNow = partitionCountNow
  }

  get isOutgrown(): boolean {
    return this.#partitionCountNow() > this.#followers.length
  }

  /** The id is that of all partitions; what it says of the others is the same for all events of one read. */
  shapeOf(follower: Follower): { readonly key: string; readonly shape: EventShape } {
    const { partition } = follower
    if (this.#followers.length === 1) {
      const known = this.#shapes.get(follower) ?? { id: ['', ''], topic: null, partition }
      this.#shapes.set(follower, known)
      return { key: '', shape: known }
    }
    let before = ''
    let behind = ''
    let isBehind = false
    for (const other of this.#followers) {
      if (other === follower) isBehind = true
      else if (isBehind) behind += `,${other.position}`
      else before += `${other.position},`
    }
    return { key: `${before}/${behind}`, shape: { id: [before, behind], topic: null, partition } }
  }

  onDrained(): void {}

  onClosed(): void {}
}

export function streamTopic(exchange: Exchange): null {
  const { services, who, name, head } = exchange
  const parameters = parseQuery(head.query, ['partition', 'last_event_id', ...startNames, ...streamNames])
  const partition = readPartition(parameters)
  const start = readStart(parameters) ?? { kind: 'latest' }
  if (partition === null && start.kind === 'offset') {
    const problem = 'must be earliest or latest where no partition is named: partitions have offsets of their own'
    throw new BrokerError('FIELD_INVALID', { field: 'offset', problem })
  }
  const cursor = cursorOf(head, parameters)
  const form = readStreamForm(parameters, services.settings)
  const { broker } = services
  const count = partition === null ? broker.partitionCountOf(who, name) : 1
  checkPartitionCount(count, 'partition', `is missing, and the topic has ${count}, more than one stream takes`)
  services.streams.checkReader(who, { topic: name, partition: partition ?? 0 })
  services.streams.checkRoom(count)
  const asked = { form, topicId: broker.topicIdOf(who, name), partition, start, cursor }
  positionsOf(exchange, asked, count).then(
    positions => exchange.guard(() => open(exchange, asked, positions)),
    (error: unknown) => exchange.refuse(error)
  )
  return null
}

/** The header comes first: EventSource sends it when it comes again, with the parameter that it began with. */
function cursorOf({ lastEventId }: RequestHead, parameters: ReadonlyMap<string, string>): Cursor | null {
  if (lastEventId !== null) return readCursor(lastEventId, 'Last-Event-ID')
  const id = parameters.get('last_event_id')
  return id === undefined ? null : readCursor(id, 'last_event_id')
}

/** Where each partition begins, in order. */
async function positionsOf(exchange: Exchange, asked: Asked, count: number): Promise<readonly bigint[]> {
  const { start, cursor, partition } = asked
  if (cursor !== null) return fitCursor(cursor, count)
  if (start.kind === 'offset') return [start.offset]
  const place = { topic: exchange.name, partition }
  const starts = await findStart(exchange.services.broker, exchange.who, place, start)
  return starts.map(({ offset }) => offset)
}

function open(exchange: Exchange, { form, topicId, partition }: Asked, positions: readonly bigint[]): void {
  const { reply, services, who, name, head } = exchange
  if (reply.isClosed) return
  if (who.isRevoked) throw new BrokerError('KEY_REVOKED')
  if (head.method === 'HEAD') return reply.open(STREAM_HEAD, FILLER)
  services.streams.checkRoom(positions.length)
  const followers: Follower[] = []
  const { broker } = services
  // Of a topic that is gone, or may not be read any more, its followers hear.
  const isAll = (): boolean => partition === null && broker.topicNameOf(who, topicId) === name
  const source = new TopicSource(followers, () => (isAll() ? broker.partitionCountOf(who, name) : 0))
  const stream = new Stream(exchange, withIdsOf(form, positions.length), source)
  positions.forEach((position, i) => {
    followers.push(new Follower(stream, { topic: name, topicId, partition: partition ?? i }, position))
  })
  stream.open(positions.join(','))
  for (const follower of followers) stream.follow(follower)
}
