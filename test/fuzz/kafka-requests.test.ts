/**
 * Random requests of every API that the Kafka listener serves, in every version, whole and damaged, cut anywhere, several
 * connections at once: each connection is answered in order or closed, nothing breaks, and nothing stays held.
 * 2,000 requests; 200,000 with MILLRACE_LONG=1; as many as FUZZ_REQUESTS says.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Logger } from '../../src/base/logger.ts'
import { kafkaHandlers } from '../../src/gateway/kafka/handlers.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { readResponseHeader, requestFrame } from '../../src/wire/kafka/headers.ts'
import type { AnyApi } from '../../src/wire/kafka/message.ts'
import { isIn, type FieldTable, type Type } from '../../src/wire/kafka/schema.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { clientBatch } from '../support/client-batches.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { HttpApi } from '../support/http-api.ts'
import { openKafka, type KafkaClient, type RawResponse } from '../support/kafka-client.ts'
import { randomStruct } from '../support/kafka-messages.ts'
import { diceOf, replayLine, type Dice } from '../support/log-random.ts'
import { heldBytes } from '../support/metrics-held.ts'
import { usedBytes } from '../support/used-bytes.ts'

const FILE = 'test/fuzz/kafka-requests.test.ts'
const wanted = Number(process.env['FUZZ_REQUESTS'] ?? (isLong ? 200_000 : 2_000))
const MIB = 1024 * 1024
const REQUESTS_MAX = 12

const served: readonly AnyApi[] = Object.values<AnyApi>(apis).filter(({ key }) => kafkaHandlers.has(key))
/** Ids that members were given, for others to use: the last of them. */
const memberIds: string[] = ['nobody']
const MEMBER_IDS_MAX = 8

type Json = Record<string, unknown>

/** Random values that are now and then something: real topics, batches, members of groups, short waits, few partitions. */
function livened(fields: FieldTable, version: number, values: Json, dice: Dice): Json {
  const all = Object.entries(fields).map(([name, field]) => {
    const value = values[name]
    // What the version does not have stays what it is without it.
    if (!isIn(field, version)) return [name, value]
    return [name, livenedField(name, livenedWithin(field.type, version, value, dice), dice)]
  })
  return Object.fromEntries(all) as Json
}

function livenedWithin(type: Type, version: number, value: unknown, dice: Dice): unknown {
  if (Array.isArray(value) && type.kind === 'array')
    return value.map(element => livenedWithin(type.element, version, element, dice))
  return type.kind === 'struct' && value !== null ? livened(type.fields, version, value as Json, dice) : value
}

function livenedField(name: string, value: unknown, dice: Dice): unknown {
  if (name === 'maxWaitMs' || name === 'rebalanceTimeoutMs') return dice.below(4)
  if (name === 'sessionTimeoutMs' && dice.chance(0.9)) return 1_000 + dice.below(1_000)
  if (/^(generationId|generationIdOrMemberEpoch)$/.test(name) && dice.chance(0.9)) return dice.below(5) - 1
  if (name === 'memberId' && dice.chance(0.8)) return dice.chance(0.4) ? '' : dice.pick(memberIds)
  if (/^(groupId|key)$/.test(name) && typeof value === 'string' && dice.chance(0.9)) return `g${dice.below(3)}`
  if (/^(groupInstanceId|instanceId)$/.test(name) && dice.chance(0.6)) return dice.pick([null, 'i0', 'i1'])
  if (name === 'protocolType' && dice.chance(0.8)) return 'consumer'
  if (name === 'numPartitions') return dice.below(5) - 1
  if (name === 'assignments') return []
  if (typeof value === 'string' && /^(name|topic|resourceName)$/.test(name) && dice.chance(0.7))
    return `t${dice.below(3)}`
  if (/^(partition|index|partitionIndex)$/.test(name) && dice.chance(0.7)) return dice.below(3)
  if (name === 'fetchOffset' && dice.chance(0.7)) return dice.below(20)
  if (name === 'sessionEpoch' && dice.chance(0.9)) return -1
  if (name === 'acks' && dice.chance(0.9)) return -1
  if (name === 'transactionalId' && dice.chance(0.9)) return null
  if (name === 'records' && dice.chance(0.8)) return clientBatch({ records: [{ key: 'k', value: dice.bytes(50) }] })
  return value
}

interface SentRequest {
  readonly bytes: Buffer
  readonly api: AnyApi
  readonly version: number
}

/** One request; damaged now and then, in what it means or in where it ends. */
function randomRequest(dice: Dice, correlationId: number): SentRequest {
  const api = dice.pick(served)
  const { first, last } = api.versions
  const apiVersion = first + dice.below(last - first + 1)
  const { fields } = api.request
  const body = livened(fields, apiVersion, randomStruct(fields, apiVersion, dice), dice)
  const bytes = Buffer.concat(
    requestFrame(api as never, { apiVersion, correlationId, clientId: 'fuzz' }, body as never)
  )
  const isDamaged = dice.chance(0.15)
  for (let i = isDamaged ? 1 + dice.below(4) : 0; i > 0; i--) bytes[4 + dice.below(bytes.length - 4)] = dice.below(256)
  return { bytes, api, version: apiVersion }
}

/** Members that the broker made are members for later requests. A request that was damaged may be answered as another. */
function noteMember({ api, version }: SentRequest, response: RawResponse): void {
  if (api.key !== apis.joinGroup.key) return
  const header = readResponseHeader(api, version, response.bytes, 0, response.bytes.length)
  if (typeof header === 'string') return
  const body = apis.joinGroup.response.decode(version, response.bytes, header.bodyStart, response.bytes.length)
  if (typeof body === 'string' || body.memberId === '') return
  memberIds.push(body.memberId)
  if (memberIds.length > MEMBER_IDS_MAX) memberIds.shift()
}

/** @returns how many requests were sent, and how many responses came in their order before the end. */
async function playConnection(client: KafkaClient, dice: Dice): Promise<{ sent: number; answered: number }> {
  const count = 1 + dice.below(REQUESTS_MAX)
  const requests: SentRequest[] = []
  for (let id = 1; id <= count; id++) requests.push(randomRequest(dice, id))
  const all = Buffer.concat(requests.map(({ bytes }) => bytes))
  for (let at = 0; at < all.length;) {
    const end = Math.min(all.length, at + 1 + dice.below(dice.chance(0.2) ? 3 : 4096))
    client.socket.write(all.subarray(at, end))
    at = end
    if (dice.chance(0.1)) await new Promise(resolve => setImmediate(resolve))
  }
  // What follows the last request ends it: a size that no request has.
  client.socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff]))
  let answered = 0
  for (let response = await client.next(); response !== null; response = await client.next()) {
    answered++
    const request = requests[response.correlationId - 1]
    if (request !== undefined) noteMember(request, response)
  }
  return { sent: count, answered }
}

/** The broker ends each of its connections. */
async function playRound(broker: TestBroker, roundSeed: number) {
  const dice = diceOf(roundSeed)
  const clients = await Promise.all(Array.from({ length: 1 + dice.below(6) }, () => openKafka(broker.kafka)))
  const ended = await Promise.all(clients.map((client, i) => playConnection(client, diceOf(roundSeed * 31 + i))))
  return ended.reduce((sum, { sent, answered }) => ({ sent: sum.sent + sent, answered: sum.answered + answered }), {
    sent: 0,
    answered: 0
  })
}

test(`${wanted} requests, many of them damaged, are answered or end their connection, and nothing stays held`, async t => {
  t.diagnostic(replayLine(seed, FILE))
  const failures: object[] = []
  const note = (fields: object): void => void failures.push(fields)
  const logger: Logger = { debug() {}, info() {}, warn() {}, error: note }
  const broker = await startBroker(t, { logger })
  const api = new HttpApi(broker.url)
  for (const name of ['t0', 't1', 't2']) await api.createTopic(name, 3)
  let sent = 0
  let answered = 0
  let before = 0
  for (let round = seed; sent < wanted; round++) {
    const counts = await playRound(broker, round)
    sent += counts.sent
    answered += counts.answered
    if (before === 0 && sent > wanted / 4) before = await usedBytes()
    assert.deepEqual(failures, [], replayLine(round, FILE))
  }
  const { kafka } = broker.server
  assert.ok(kafka !== null)
  await waitFor('every connection to be gone', () => kafka.connectionCount === 0)
  assert.equal(kafka.probe.refused.bug, 0)
  assert.deepEqual(await heldBytes(api), { requests: 0, replies: 0 })
  assert.ok(answered > sent / 4, `${answered} of ${sent} were answered`)
  const grown = (await usedBytes()) - before
  t.diagnostic(`${sent} requests, ${answered} answered; ${(grown / MIB).toFixed(1)} MiB more in use at the end`)
  assert.ok(grown < 64 * MIB, `${grown} bytes more are in use at the end`)
})
