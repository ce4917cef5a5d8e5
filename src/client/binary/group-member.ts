/**
 * One member of a consumer group, over HTTP: what it is assigned, and what it has committed. Any thread with an event
 * loop; one owner. It keeps no time: the owner says when to beat.
 */
import {
  commitOffset,
  groupAssignment,
  groupOffsets,
  heartbeatGroup,
  joinGroup,
  leaveGroup,
  type AssignmentAnswer
} from '../http/group-calls.ts'
import { HttpClient, HttpClientError, type Whole } from '../http/http-client.ts'
import type { ClientTls } from '../tls.ts'
import { clientError, type ClientErrorKind } from './client-error.ts'

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

export interface MemberOptions {
  readonly group: string
  readonly topics: readonly string[]
  /** Of the broker's HTTP listener. */
  readonly http: string
  readonly token: string
  readonly tls: ClientTls | null
  readonly timeoutMs: number
}

/** What is a member's, and where the group goes on with it. */
export interface Assigned {
  /** Of the group when it was assigned so. */
  readonly generation: Whole
  readonly places: readonly TopicPartition[]
  /** @returns the next offset to read; null: the group has committed nothing of it. */
  readonly committed: (place: TopicPartition) => number | null
}

/** What a heartbeat brought: nothing, other partitions, or that the broker had given the member up. */
export type Beat =
  { readonly kind: 'same' } | { readonly kind: 'moved'; readonly assigned: Assigned } | { readonly kind: 'lost' }

/** Every promise rejects with ClientError. */
export class GroupMember {
  readonly #http: HttpClient
  readonly #group: string
  readonly #topics: readonly string[]
  #memberId: string | null = null
  #generation: Whole = 0

  constructor({ group, topics, http, token, tls, timeoutMs }: MemberOptions) {
    const secret = token === '' ? {} : { secret: token }
    this.#http = new HttpClient({ broker: http, timeoutMs, ...secret, ...(tls === null ? {} : { tls }) })
    this.#group = group
    this.#topics = topics
  }

  /** Also again, under the same id. */
  join(): Promise<Assigned> {
    return translated(async () => {
      const { body } = await joinGroup(this.#http, this.#group, this.#topics, this.#memberId)
      this.#memberId = body.member_id
      return this.#assigned(body)
    })
  }

  beat(): Promise<Beat> {
    const memberId = this.#memberId
    if (memberId === null) return Promise.resolve({ kind: 'lost' })
    return translated(async () => {
      const { body } = await heartbeatGroup(this.#http, this.#group, memberId, this.#generation)
      if (body.status === 'ok') return { kind: 'same' }
      if (body.status === 'unknown_member') return { kind: 'lost' }
      try {
        const answer = await groupAssignment(this.#http, this.#group, memberId)
        return { kind: 'moved', assigned: await this.#assigned(answer.body) }
      } catch (error) {
        if (error instanceof HttpClientError && error.code === 'MEMBER_NOT_FOUND') return { kind: 'lost' }
        throw error
      }
    })
  }

  /**
   * @param generation of the assignment that the place is of.
   * @returns false: nothing is committed, as the group was assigned anew since, or this is no member any more: beat() says.
   */
  commit({ topic, partition }: TopicPartition, offset: number, generation: Whole): Promise<boolean> {
    const memberId = this.#memberId
    if (memberId === null) return Promise.resolve(false)
    return translated(async () => {
      try {
        await commitOffset(this.#http, this.#group, { topic, partition, offset, member_id: memberId, generation })
        return true
      } catch (error) {
        if (error instanceof HttpClientError && isOutdated(error)) return false
        throw error
      }
    })
  }

  /** Gives its partitions to the others. */
  async leave(): Promise<void> {
    const memberId = this.#memberId
    if (memberId !== null) await translated(() => leaveGroup(this.#http, this.#group, memberId))
  }

  /** The generation counts as heard of only with all that belongs to it, so that what fails here is asked again. */
  async #assigned({ generation, assignment }: AssignmentAnswer): Promise<Assigned> {
    const { offsets } = (await groupOffsets(this.#http, this.#group)).body
    this.#generation = generation
    return {
      generation,
      places: assignment,
      committed: ({ topic, partition }) => {
        const offset = offsets[topic]?.[String(partition)]
        return offset === undefined ? null : Number(offset)
      }
    }
  }
}

function isOutdated({ code }: HttpClientError): boolean {
  return code === 'GENERATION_STALE' || code === 'MEMBER_NOT_FOUND'
}

const kinds: Readonly<Record<HttpClientError['kind'], ClientErrorKind>> = {
  unreachable: 'connection',
  untrusted: 'untrusted',
  unanswered: 'timeout',
  refused: 'refused',
  foreign: 'protocol'
}

/** The failure of an HTTP call as an error of this library. It is never about records: nothing of them is written. */
async function translated<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call()
  } catch (error) {
    if (!(error instanceof HttpClientError)) throw error
    const { kind, status, message } = error
    const retryable = kind === 'unreachable' || kind === 'unanswered' || status >= 500 || status === 429
    throw clientError(kinds[kind], 'no', message, { retryable, cause: error })
  }
}
