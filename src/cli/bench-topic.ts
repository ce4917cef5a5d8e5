/**
 * The topic that `millrace bench` writes to: made before, removed after. Main thread.
 * Must never: delete a topic that it did not make, or keep the figures from being printed because it cannot.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { HttpClientError, type HttpClient } from '../client/http/http-client.ts'

export interface BenchTopic {
  readonly name: string
  readonly partitions: number
  /** Made here under a name of its own, and to be gone afterwards. */
  readonly isOurs: boolean
}

/** A broker that does not delete it in this time does not. */
const REMOVE_MS = 5_000

/** @param named null: a name of our own. @throws HttpClientError */
export async function openBenchTopic(
  client: HttpClient,
  { topic: named, keepsTopic, partitions }: { topic: string | null; keepsTopic: boolean; partitions: number }
): Promise<BenchTopic> {
  const name = named ?? `millrace-bench-${randomBytes(4).toString('hex')}`
  const isOurs = named === null && !keepsTopic
  try {
    await client.createTopic(name, partitions, {})
    return { name, partitions, isOurs }
  } catch (error) {
    // One of the name that the user gave is as good.
    if (named === null || !(error instanceof HttpClientError) || error.code !== 'TOPIC_EXISTS') throw error
    const { body } = await client.describeTopic(name)
    return { name, partitions: body.partitions.length, isOurs }
  }
}

/** Deletes it, if it is ours. @returns why it is still there; null: it is not, or should be. */
export async function removeBenchTopic(client: HttpClient, topic: BenchTopic): Promise<HttpClientError | null> {
  if (!topic.isOurs) return null
  const clock = new AbortController()
  try {
    await Promise.race([
      client.deleteTopic(topic.name),
      pause(REMOVE_MS, undefined, { signal: clock.signal }).then(() => giveUp(client, topic))
    ])
    return null
  } catch (error) {
    if (!(error instanceof HttpClientError)) throw error
    // An attempt before may have done it, its answer lost.
    if (error.status === 404) return null
    return error.withReason(`the topic '${topic.name}' could not be deleted: ${error.reason}`)
  } finally {
    clock.abort()
  }
}

function giveUp({ broker }: HttpClient, { name }: BenchTopic): never {
  const request = { method: 'DELETE', url: `${broker}/topics/${name}` }
  throw new HttpClientError(request, 'unanswered', 0, `no answer within ${REMOVE_MS} ms`)
}
