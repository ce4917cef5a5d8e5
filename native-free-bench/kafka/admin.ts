/**
 * The one request that a load needs beside those of Kafka's tools: a topic, made on a connection of its own, alike on every
 * broker. Main thread.
 */
import { connect } from 'node:net'
import { FRAME_SIZE_BYTES, readResponseHeader, requestFrame } from '../../src/wire/kafka/headers.ts'
import { createTopics } from '../../src/wire/kafka/apis/create-topics.ts'
import type { Api } from '../../src/wire/kafka/message.ts'
import type { FieldTable, ReadOf, WriteOf } from '../../src/wire/kafka/schema.ts'
import type { Address } from '../drivers/driver.ts'

/** In the range of every broker of today. */
const CREATE_TOPICS_VERSION = 5
const TIMEOUT_MS = 30_000

/** What a topic is to be. */
export interface TopicShape {
  readonly name: string
  readonly partitions: number
  /** Under Kafka's names. */
  readonly configs: Readonly<Record<string, string>>
}

/** @throws Error with the broker's words. */
export async function createTopic(address: Address, { name, partitions, configs }: TopicShape): Promise<void> {
  const asked = {
    name,
    numPartitions: partitions,
    replicationFactor: 1,
    assignments: [],
    configs: Object.entries(configs).map(([key, value]) => ({ name: key, value }))
  }
  const { topics } = await ask(address, createTopics, CREATE_TOPICS_VERSION, {
    topics: [asked],
    timeoutMs: TIMEOUT_MS
  })
  const [told] = topics
  if (told?.errorCode === 0) return
  throw new Error(`the topic ${name} was refused: error ${told?.errorCode} ${told?.errorMessage ?? ''}`)
}

async function ask<Request extends FieldTable, Response extends FieldTable>(
  address: Address,
  api: Api<Request, Response>,
  apiVersion: number,
  body: WriteOf<Request>
): Promise<ReadOf<Response>> {
  const frame = requestFrame(api, { apiVersion, correlationId: 1, clientId: 'bench' }, body)
  const answer = await exchange(address, Buffer.concat(frame))
  const header = readResponseHeader(api, apiVersion, answer, FRAME_SIZE_BYTES, answer.length)
  if (typeof header === 'string') throw new Error(header)
  const read = api.response.decode(apiVersion, answer, header.bodyStart)
  if (typeof read === 'string') throw new Error(`${api.name}: ${read}`)
  return read
}

/** @returns the first whole frame that comes back, its size included. */
function exchange({ host, port }: Address, request: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0)
    const socket = connect(port, host, () => socket.write(request))
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`no answer in ${TIMEOUT_MS / 1000} s`)))
    socket.on('data', chunk => {
      received = Buffer.concat([received, chunk])
      if (received.length < FRAME_SIZE_BYTES) return
      const frameBytes = FRAME_SIZE_BYTES + received.readInt32BE()
      if (received.length < frameBytes) return
      resolve(received.subarray(0, frameBytes))
      socket.destroy()
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('the broker closed the connection without an answer')))
  })
}
