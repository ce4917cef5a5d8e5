/**
 * One open stream: the followers of its partitions, its socket, and its end. Main thread.
 *
 *   idle ──claim──▶ reading ──text──▶ idle, or blocked while the socket has not taken it ──drained──▶ idle
 *
 * Invariants: one of its partitions at a time takes part in a read, and none while it is blocked, so at most one read's
 * text is kept for it, and that is charged to the reply memory. Those that have something to read meanwhile take turns.
 * A client that takes nothing is cut as any other (ReaderWatch); one whose text finds no room in short memory, at once.
 */
import { BrokerError } from '../../../model/errors.ts'
import type { Principal } from '../../../model/principal.ts'
import { endEvent, FILLER, HEARTBEAT, openingText, type EventShape } from '../../../wire/json/event-text.ts'
import { isInternal, logFailure, toldOf } from '../../shared/internal-failures.ts'
import type { Reply, ReplyWatcher, RequestHead } from '../engines/engine.ts'
import type { Services } from '../exchange.ts'
import type { ReplyHolding } from '../reads/reply-memory.ts'
import type { Follower, FollowingStream, Lender, ReadOutcome } from './follower.ts'
import { STREAM_HEAD } from './stream-head.ts'
import type { HubStream, StreamForm, StreamHub } from './stream-hub.ts'

/** What a stream needs of the request that opened it. */
export interface StreamRequest {
  readonly who: Principal
  readonly party: string
  readonly head: Pick<RequestHead, 'method' | 'path'>
  readonly reply: Reply
  readonly services: Pick<Services, 'streams' | 'probe' | 'logger'>
}

/** What differs between the kinds of streams. */
export interface StreamSource {
  shapeOf(follower: Follower): { readonly key: string; readonly shape: EventShape }
  /** The topic has more partitions than it follows: the stream ends, and who comes again follows all. */
  readonly isOutgrown: boolean
  /** The client has taken all that it was sent: something may wait to be sent first. */
  onDrained(): void
  /** The stream has ended. */
  onClosed(): void
}

export class Stream implements FollowingStream, HubStream, ReplyWatcher {
  readonly who: Principal
  readonly party: string
  isClosed = false
  readonly #request: StreamRequest
  readonly #hub: StreamHub
  readonly #form: StreamForm
  readonly #source: StreamSource
  readonly #followers = new Set<Follower>()
  /** Followers that wait for their turn, the first comes first. */
  readonly #ready = new Set<Follower>()
  /** Followers that go on waiting for records once it is not blocked. */
  readonly #idle = new Set<Follower>()
  #claimed: Follower | null = null
  #isBlocked = false
  /** What is reserved for text that the socket has not taken. */
  readonly #holdings: ReplyHolding[] = []
  #sentAtMs = performance.now()

  constructor(request: StreamRequest, form: StreamForm, source: StreamSource) {
    this.who = request.who
    this.party = request.party
    this.#request = request
    this.#hub = request.services.streams
    this.#form = form
    this.#source = source
  }

  get partitionCount(): number {
    return this.#followers.size
  }

  /** The client has taken all that it was sent. */
  get isTaking(): boolean {
    return !this.isClosed && !this.#isBlocked
  }

  /** Sends the head and the first text. @param id of the place where it begins; null: its events have none. */
  open(id: string | null): void {
    const { reply } = this.#request
    reply.watcher = this
    this.#hub.add(this)
    reply.open(STREAM_HEAD, FILLER)
    this.send(openingText(this.#hub.retryMs, id), 0)
  }

  /** Follows one more partition. */
  follow(follower: Follower): void {
    if (this.isClosed) return
    this.#followers.add(follower)
    this.#hub.recount(1)
    if (this.#isBlocked) this.#idle.add(follower)
    else this.#hub.follow(follower, this.#form, false)
  }

  /** Follows it no more. */
  unfollow(follower: Follower): void {
    if (!this.#followers.delete(follower)) return
    this.#hub.recount(-1)
    follower.isGone = true
    this.#ready.delete(follower)
    this.#idle.delete(follower)
    this.#hub.leave(follower)
    if (this.#claimed === follower) this.#claimed = null
    this.#advance()
  }

  claim(follower: Follower): boolean {
    if (this.isClosed || follower.isGone) return false
    if (this.#isBlocked || (this.#claimed !== null && this.#claimed !== follower)) {
      // It had its turn when something else was sent, and the socket did not take that.
      if (this.#claimed === follower) this.#claimed = null
      follower.place = null
      this.#ready.add(follower)
      return false
    }
    this.#claimed = follower
    return true
  }

  release(follower: Follower, outcome: ReadOutcome): void {
    if (this.#claimed === follower) this.#claimed = null
    if (this.isClosed || follower.isGone) return this.#advance()
    if (outcome !== 'failed') follower.place = null
    if (outcome === 'more') this.#ready.add(follower)
    if (outcome === 'waits' && this.#isBlocked) this.#idle.add(follower)
    if (outcome === 'waits' && !this.#isBlocked) this.#hub.follow(follower, this.#form, false)
    this.#advance()
  }

  /** The next one that has something to read gets its turn. */
  #advance(): void {
    if (this.isClosed || this.#isBlocked || this.#claimed !== null) return
    const [follower] = this.#ready
    if (follower === undefined) return
    this.#ready.delete(follower)
    this.#claimed = follower
    this.#hub.follow(follower, this.#form, true)
  }

  shapeOf(follower: Follower): { readonly key: string; readonly shape: EventShape } {
    return this.#source.shapeOf(follower)
  }

  send(text: Buffer, events: number, lender: Lender = this.#hub): void {
    if (this.isClosed) return
    const { reply, services } = this.#request
    services.probe.streamEvents += events
    this.#sentAtMs = performance.now()
    if (reply.push(text) || this.isClosed) return
    this.#isBlocked = true
    const holding = lender.lend(this.party, text.length)
    if (holding === null) {
      services.probe.streamsCut++
      reply.abort()
      return
    }
    this.#holdings.push(holding)
    // Whether that party lacks memory decides how much time its client has.
    reply.holding = holding
  }

  onReplyDrained(): void {
    if (this.isClosed) return
    this.#isBlocked = false
    this.#giveBack()
    this.#source.onDrained()
    for (const follower of this.#idle) {
      this.#idle.delete(follower)
      this.#hub.follow(follower, this.#form, false)
    }
    this.#advance()
  }

  look(nowMs: number): void {
    if (this.#isBlocked) return
    // One that waits nowhere, for a quota or because its member has no partition, hears of it here alone.
    if (this.who.isRevoked) this.end(new BrokerError('KEY_REVOKED'))
    else if (this.#source.isOutgrown) this.#finish()
    else if (nowMs - this.#sentAtMs >= this.#hub.heartbeatMs) this.send(HEARTBEAT, 0)
  }

  end(error: BrokerError): void {
    if (this.isClosed) return
    const { reply, services, head } = this.#request
    const { requestId, text } = toldOf(error)
    if (isInternal(error)) logFailure(services.logger, requestId, error, { method: head.method, path: head.path })
    reply.push(endEvent(error, text))
    this.#finish()
  }

  #finish(): void {
    this.#request.reply.finish()
    this.#close()
  }

  onReplyClosed(): void {
    this.#close()
  }

  /** All that is known of it goes. */
  #close(): void {
    if (this.isClosed) return
    this.#hub.forget(this)
    this.isClosed = true
    for (const follower of this.#followers) {
      follower.isGone = true
      this.#hub.leave(follower)
    }
    this.#followers.clear()
    this.#ready.clear()
    this.#idle.clear()
    this.#claimed = null
    this.#giveBack()
    this.#source.onClosed()
  }

  #giveBack(): void {
    this.#request.reply.holding = null
    for (const holding of this.#holdings.splice(0)) holding.close()
  }
}
