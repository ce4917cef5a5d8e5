/**
 * Fetch: what a request asks for, by itself or as the next one of its session (KIP-227). Main thread. FetchCall does the rest.
 *
 *   | epoch     | session                                                                                    |
 *   | −1        | none; one that is named ends                                                               |
 *   | 0         | one is opened, if there is room; one that is named ends                                    |
 *   | n > 0     | changed as the request says; 70 not there or of another key, 71 not its next epoch or in   |
 *   |           | use, 106 it named topics the other way. Left without partitions it ends                    |
 *
 * What a client believes of leaders is looked at when it asks: where one has changed, all sessions end (70), and ask anew.
 */
import { BrokerError } from '../../../model/errors.ts'
import { noEpochs, type EpochsOf } from '../../../model/leader-epochs.ts'
import { limits } from '../../../model/limits.ts'
import { fetch } from '../../../wire/kafka/apis/fetch.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { ZERO_UUID } from '../../../wire/kafka/schema.ts'
import { FetchSession, type AskedPartition } from '../fetch-session.ts'
import { handlerOf, type KafkaHandler } from '../handler.ts'
import { epochFault } from '../leader-epoch.ts'
import { nameOfId } from '../topic-names.ts'
import { FetchCall, type Call } from './fetch-call.ts'
import { PARTITIONS_A_TURN } from './fetch-sizes.ts'

/** The first version that names topics by their ids. */
const TOPIC_IDS_SINCE = 13
const OPENING_EPOCH = 0
const NO_EPOCH = -1

/** Its turn comes when all requests before it on its connection are answered: those of one session follow each other. */
export const fetchHandler: KafkaHandler = handlerOf(
  fetch,
  call =>
    new Promise(resolve => {
      call.onClosing(() => call.answer({ responses: [] }))
      call.whenFirst(() => {
        if (!call.isAnswered) begin(call, resolve)
      })
    }),
  { roomOf: ({ fetchRequests }) => fetchRequests }
)

/** What takes a fetch that goes in turns: what it is given rejects on a bug in that. */
type OnLong = (fetching: Promise<void>) => void

function begin(call: Call, onLong: OnLong): void {
  const { sessionEpoch, topics } = call.body
  const count = topics.reduce((sum, { partitions }) => sum + partitions.length, 0)
  if (sessionEpoch !== OPENING_EPOCH && sessionEpoch !== NO_EPOCH) return goOn(call, count, onLong)
  const session = beginWhole(call)
  if (count > PARTITIONS_A_TURN) return onLong(askInTurns(call, session))
  for (const partition of askedOf(call)) session.ask(partition)
  startWhole(call, session, onLong)
}

function beginWhole(call: Call): FetchSession {
  const { body, who, services } = call
  const { fetchSessions } = services
  const former = fetchSessions.find(body.sessionId, who.keyId)
  if (former !== null) fetchSessions.close(former)
  return new FetchSession(isById(call), services.broker.leaderEpochChanges)
}

async function askInTurns(call: Call, session: FetchSession): Promise<void> {
  let count = 0
  for (const partition of askedOf(call)) {
    if (count++ % PARTITIONS_A_TURN === 0) await call.services.requestTurns.next()
    session.ask(partition)
  }
  if (!call.isAnswered) await new Promise<void>(resolve => startWhole(call, session, resolve))
}

function startWhole(call: Call, session: FetchSession, onLong: OnLong): void {
  const { body, who, client, services } = call
  const { size } = session.partitions
  // Another partition comes first each time, for those who have no session that remembers whose turn it is.
  session.beginAt(size === 0 ? 0 : client.requestCount % size)
  if (body.sessionEpoch === OPENING_EPOCH) services.fetchSessions.open(session, who.keyId, client)
  new FetchCall(call, session, true, onLong).start()
}

function goOn(call: Call, count: number, onLong: OnLong): void {
  const { body, who, client, services } = call
  const { fetchSessions } = services
  const session = fetchSessions.find(body.sessionId, who.keyId)
  if (session === null) return refuse(call, kafkaErrors.FETCH_SESSION_ID_NOT_FOUND.code)
  if (session.leaderEpochChanges !== services.broker.leaderEpochChanges && !session.isBusy) {
    fetchSessions.close(session)
    return refuse(call, kafkaErrors.FETCH_SESSION_ID_NOT_FOUND.code)
  }
  if (session.nextEpoch !== body.sessionEpoch || session.isBusy)
    return refuse(call, kafkaErrors.INVALID_FETCH_SESSION_EPOCH.code)
  if (session.isById !== isById(call)) return refuse(call, kafkaErrors.FETCH_SESSION_TOPIC_ID_ERROR.code)
  if (count > limits.fetchSessionPartitionsMax) {
    fetchSessions.close(session)
    return refuse(call, kafkaErrors.FETCH_SESSION_ID_NOT_FOUND.code)
  }
  const isKept = fetchSessions.change(session, client, () => {
    for (const { topic, topicId, partitions } of body.forgottenTopicsData)
      for (const partition of partitions) session.forget(session.isById ? topicId : topic, partition)
    for (const partition of askedOf(call)) session.ask(partition)
  })
  if (!isKept) return refuse(call, kafkaErrors.FETCH_SESSION_ID_NOT_FOUND.code)
  session.advance()
  if (session.partitions.size === 0) fetchSessions.close(session)
  new FetchCall(call, session, false, onLong).start()
}

function refuse(call: Call, errorCode: number): void {
  call.answer({ errorCode, responses: [] })
}

function isById({ version }: Call): boolean {
  return version >= TOPIC_IDS_SINCE
}

function* askedOf(call: Call): Generator<AskedPartition> {
  const { body, who, services } = call
  for (const { topic, topicId: uuid, partitions } of body.topics) {
    const name = isById(call) ? nameOfId(services, who, uuid) : topic
    const epochsOf = epochsIn(call, name)
    const topicId = (isById(call) && services.topicIds.idOf(uuid)) || undefined
    for (const { partition, fetchOffset: offset, partitionMaxBytes: maxBytes, currentLeaderEpoch } of partitions) {
      const place = { topic: name ?? '', uuid: uuid ?? ZERO_UUID, topicId, partition, offset, maxBytes }
      const fault = faultOf(partition, offset) ?? epochFault(epochsOf(partition), currentLeaderEpoch)
      yield { place, fault: name === null ? kafkaErrors.UNKNOWN_TOPIC_ID.code : fault }
    }
  }
}

function faultOf(partition: number, offset: number): number | null {
  if (partition < 0) return kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code
  return offset < 0 ? kafkaErrors.OFFSET_OUT_OF_RANGE.code : null
}

/** Of a topic that the client may not read, or that is not there, none: the read tells. */
function epochsIn({ services: { broker }, who }: Call, name: string | null): EpochsOf {
  if (name === null || broker.leaderEpochChanges === 0) return noEpochs
  try {
    return broker.leaderEpochs(who, name)
  } catch (error) {
    if (error instanceof BrokerError) return noEpochs
    throw error
  }
}
