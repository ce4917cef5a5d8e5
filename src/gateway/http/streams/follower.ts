/** One partition as a stream follows it. Main thread; owned by its stream, and lent to the place where it waits. */
import type { Principal } from '../../../model/principal.ts'
import type { EventShape } from '../../../wire/json/event-text.ts'
import type { TopicId } from '../../../model/ids.ts'
import type { BrokerError } from '../../../model/errors.ts'
import type { ReplyHolding } from '../reads/reply-memory.ts'

/** What a place asks of the stream that a follower is of. */
export interface FollowingStream {
  readonly who: Principal
  /** Whose share of the reply memory its reads take. */
  readonly party: string
  readonly isClosed: boolean
  /**
   * There is something to read, and a read is about to begin. @returns false: not for this one now; the stream lets it
   * wait anew when it may.
   */
  claim(follower: Follower): boolean
  /** The read of a claimed follower has ended, or did not begin, and it is where it was, or at its new position. */
  release(follower: Follower, outcome: ReadOutcome): void
  /** What its events look like; followers with the same key have the same text. */
  shapeOf(follower: Follower): { readonly key: string; readonly shape: EventShape }
  /**
   * Sends the text of so many events. @param lender is asked for the bytes of the text if the socket keeps some of it.
   */
  send(text: Buffer, events: number, lender: Lender): void
  /** Tells the client why, and ends it. */
  end(error: BrokerError): void
}

/** Who has reply memory for what a socket keeps of a text. */
export interface Lender {
  /** @returns what holds so many bytes, to be closed by whoever got it; null: there is no room. */
  lend(party: string, bytes: number): ReplyHolding | null
}

/** Where it waits, or whose read it takes part in. */
export interface WaitingPlace {
  remove(follower: Follower): void
}

/** more: there is more to read. waits: nothing to read is known of. failed: it is to be tried again, later. */
export type ReadOutcome = 'more' | 'waits' | 'failed'

/** A partition of the topic that has the name when it begins: of another that gets the name later nothing is read. */
export interface FollowedPartition {
  readonly topic: string
  readonly topicId: TopicId
  readonly partition: number
}

export class Follower {
  readonly stream: FollowingStream
  readonly topic: string
  readonly topicId: TopicId
  readonly partition: number
  /** The next offset. */
  position: bigint
  /** The first record is wanted, whichever that is: that earlier ones are gone is not told. */
  isFromStart = false
  /** null: it waits nowhere. */
  place: WaitingPlace | null = null
  /** The stream does not follow this partition any more: what comes of it is dropped. */
  isGone = false

  constructor(stream: FollowingStream, { topic, topicId, partition }: FollowedPartition, position: bigint) {
    this.stream = stream
    this.topic = topic
    this.topicId = topicId
    this.partition = partition
    this.position = position
  }
}
