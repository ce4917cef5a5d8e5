/**
 * The route `GET /groups/:group/stream`: the records of a member's partitions as server-sent events, whichever those are
 * at the time. Main thread. It begins each partition where the group is when the member gets it, and commits nothing:
 * what it has sent is nowhere but with the client. While the client takes its events the member counts as seen.
 */
import { BrokerError, toBrokerError } from '../../../model/errors.ts'
import type { Assignment, JoinAnswer, TopicPartition } from '../../../model/groups.ts'
import { assignmentEvent, FILLER, type EventShape } from '../../../wire/json/event-text.ts'
import { writeAssignment } from '../../../wire/json/groups-json.ts'
import type { Exchange } from '../exchange.ts'
import { parseQuery } from '../query.ts'
import { Follower } from './follower.ts'
import { checkPartitionCount, readStreamForm, streamNames } from './stream-form.ts'
import { STREAM_HEAD } from './stream-head.ts'
import type { StreamForm } from './stream-hub.ts'
import { Stream, type StreamSource } from './stream.ts'

class GroupSource implements StreamSource {
  readonly stream: Stream
  readonly #exchange: Exchange
  readonly #memberId: string
  /** By topic and partition. */
  readonly #followers = new Map<string, Follower>()
  /** The group was assigned anew while the client took nothing: it is told when it takes again. */
  #isBehind = false
  #detach: () => void = () => undefined

  constructor(exchange: Exchange, form: StreamForm, memberId: string) {
    this.#exchange = exchange
    this.#memberId = memberId
    this.stream = new Stream(exchange, form, this)
  }

  open(answer: MemberAssignment): void {
    const { services, name } = this.#exchange
    this.#detach = services.broker.groups.attach(name, this.#memberId, {
      isTaking: () => this.stream.isTaking,
      onRebalanced: () => this.#look()
    })
    this.stream.open(null)
    this.#take(answer)
  }

  /** What the member has is told by the group. */
  readonly isOutgrown = false

  shapeOf({ topic, partition }: Follower): { readonly key: string; readonly shape: EventShape } {
    // All streams of groups that get the same records get the same text.
    return { key: `group ${topic}`, shape: { id: null, topic, partition } }
  }

  onDrained(): void {
    if (!this.#isBehind) return
    this.#isBehind = false
    this.#look()
  }

  onClosed(): void {
    this.#detach()
  }

  /** What partitions are the member's now? */
  #look(): void {
    if (this.stream.isClosed) return
    if (!this.stream.isTaking) {
      // Nothing is read for it meanwhile.
      this.#isBehind = true
      return
    }
    this.#orEnd(() => this.#take(assignmentOf(this.#exchange, this.#memberId)))
  }

  #take(answer: MemberAssignment): void {
    this.#dropLost(answer.assignment)
    this.stream.send(assignmentEvent(writeAssignment(answer)), 1)
    this.#followNew(answer.assignment)
  }

  #dropLost(assignment: Assignment): void {
    const kept = new Set(placesOf(assignment).map(keyOf))
    for (const [key, follower] of this.#followers) {
      if (kept.has(key)) continue
      this.#followers.delete(key)
      this.stream.unfollow(follower)
    }
  }

  #followNew(assignment: Assignment): void {
    const { services, who, name } = this.#exchange
    const added = placesOf(assignment).filter(place => !this.#followers.has(keyOf(place)))
    services.streams.checkPartitionRoom(added.length)
    for (const place of added) {
      const committed = services.broker.groups.positionOf(who, name, place)
      const topicId = services.broker.topicIdOf(who, place.topic)
      const follower = new Follower(this.stream, { ...place, topicId }, BigInt(committed ?? 0))
      follower.isFromStart = committed === null
      this.#followers.set(keyOf(place), follower)
      this.stream.follow(follower)
    }
  }

  /** What throws ends the stream: the client is told, and comes again or not. */
  #orEnd(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.stream.end(toBrokerError(error))
    }
  }
}

type MemberAssignment = Omit<JoinAnswer, 'memberId'>

function placesOf(assignment: Assignment): TopicPartition[] {
  const places: TopicPartition[] = []
  for (const [topic, partitions] of assignment) for (const partition of partitions) places.push({ topic, partition })
  return places
}

function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`
}

/** @throws what groups.assignment throws; BrokerError FIELD_INVALID: too many partitions for one stream */
function assignmentOf({ services, who, name }: Exchange, memberId: string): MemberAssignment {
  const answer = services.broker.groups.assignment(who, name, memberId)
  let count = 0
  for (const partitions of answer.assignment.values()) count += partitions.length
  checkPartitionCount(count, 'member_id', `has ${count} partitions, more than one stream takes`)
  return answer
}

export function streamGroup(exchange: Exchange): null {
  const { services, who, head, reply } = exchange
  const parameters = parseQuery(head.query, ['member_id', ...streamNames])
  const memberId = parameters.get('member_id')
  if (memberId === undefined) throw new BrokerError('FIELD_INVALID', { field: 'member_id', problem: 'is missing' })
  const form = readStreamForm(parameters, services.settings)
  const answer = assignmentOf(exchange, memberId)
  const places = placesOf(answer.assignment)
  for (const place of places) services.streams.checkReader(who, place)
  services.streams.checkRoom(places.length)
  if (head.method === 'HEAD') reply.open(STREAM_HEAD, FILLER)
  else new GroupSource(exchange, form, memberId).open(answer)
  return null
}
