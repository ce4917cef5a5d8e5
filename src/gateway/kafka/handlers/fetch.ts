/**
 * Fetch: what a request asks for, by itself or as the next one of its session (KIP-227). Main thread. FetchCall does the rest.
 *
 *   | epoch     | session                                                                                    |
 *   | −1        | none; one that is named ends                                                               |
 *   | 0         | one is opened, if there is room; one that is named ends                                    |
 *   | n > 0     | changed as the request says; 70 not there or of another key, 71 not its next epoch or in   |
 *   |           | use, 106 it named topics the other way. Left without partitions it ends                    |
 */
import { fetch } from '../../../wire/kafka/apis/fetch.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { ZERO_UUID } from '../../../wire/kafka/schema.ts'
import { FetchSession, type AskedPartition } from '../fetch-session.ts'
import { handlerOf, type KafkaHandler } from '../handler.ts'
import { epochFault } from '../leader-epoch.ts'
import { nameOfId } from '../topic-names.ts'
import { FetchCall, type Call } from './fetch-call.ts'

/** The first version that names topics by their ids. */
const TOPIC_IDS_SINCE = 13
const OPENING_EPOCH = 0
const NO_EPOCH = -1

/** Its turn comes when all requests before it on its connection are answered: those of one session follow each other. */
export const fetchHandler: KafkaHandler = handlerOf(fetch, call => {
  let isOver = false
  call.onClosing(() => {
    isOver = true
    call.answer({ responses: [] })
  })
  call.whenFirst(() => {
    if (!isOver) begin(call)
  })
})

function begin(call: Call): void {
  const { sessionEpoch } = call.body
  if (sessionEpoch === OPENING_EPOCH || sessionEpoch === NO_EPOCH) beginWhole(call)
  else goOn(call)
}

function beginWhole(call: Call): void {
  const { body, who, client, services } = call
  const { fetchSessions } = services
  const former = fetchSessions.find(body.sessionId, who.keyId)
  if (former !== null) fetchSessions.close(former)
  const session = new FetchSession(isById(call))
  const asked = askedOf(call)
  // Another partition comes first each time, for those who have no session that remembers whose turn it is.
  const first = asked.length === 0 ? 0 : client.requestCount % asked.length
  for (const partition of asked) session.ask(partition)
  session.beginAt(first)
  if (body.sessionEpoch === OPENING_EPOCH) fetchSessions.open(session, who.keyId, client)
  new FetchCall(call, session, true).start()
}

function goOn(call: Call): void {
  const { body, who, client, services } = call
  const { fetchSessions } = services
  const session = fetchSessions.find(body.sessionId, who.keyId)
  if (session === null) return refuse(call, kafkaErrors.FETCH_SESSION_ID_NOT_FOUND.code)
  if (session.nextEpoch !== body.sessionEpoch || session.isBusy)
    return refuse(call, kafkaErrors.INVALID_FETCH_SESSION_EPOCH.code)
  if (session.isById !== isById(call)) return refuse(call, kafkaErrors.FETCH_SESSION_TOPIC_ID_ERROR.code)
  const isKept = fetchSessions.change(session, client, () => {
    for (const { topic, topicId, partitions } of body.forgottenTopicsData)
      for (const partition of partitions) session.forget(session.isById ? topicId : topic, partition)
    for (const partition of askedOf(call)) session.ask(partition)
  })
  if (!isKept) return refuse(call, kafkaErrors.FETCH_SESSION_ID_NOT_FOUND.code)
  session.advance()
  if (session.partitions.size === 0) fetchSessions.close(session)
  new FetchCall(call, session, false).start()
}

function refuse(call: Call, errorCode: number): void {
  call.answer({ errorCode, responses: [] })
}

function isById({ version }: Call): boolean {
  return version >= TOPIC_IDS_SINCE
}

function askedOf(call: Call): AskedPartition[] {
  const { body, who, services } = call
  return body.topics.flatMap(({ topic, topicId: uuid, partitions }) => {
    const name = isById(call) ? nameOfId(services, who, uuid) : topic
    const topicId = (isById(call) && services.topicIds.idOf(uuid)) || undefined
    return partitions.map(({ partition, fetchOffset: offset, partitionMaxBytes: maxBytes, currentLeaderEpoch }) => ({
      place: { topic: name ?? '', uuid: uuid ?? ZERO_UUID, topicId, partition, offset, maxBytes },
      fault: name === null ? kafkaErrors.UNKNOWN_TOPIC_ID.code : faultOf(partition, offset, currentLeaderEpoch)
    }))
  })
}

function faultOf(partition: number, offset: number, epoch: number): number {
  if (partition < 0) return kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code
  return offset < 0 ? kafkaErrors.OFFSET_OUT_OF_RANGE.code : epochFault(epoch)
}
