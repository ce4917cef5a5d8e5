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
import { requestFrame } from '../../src/wire/kafka/headers.ts'
import type { AnyApi } from '../../src/wire/kafka/message.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { clientBatch } from '../support/client-batches.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { HttpApi } from '../support/http-api.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'
import { randomStruct } from '../support/kafka-messages.ts'
import { diceOf, replayLine, type Dice } from '../support/log-random.ts'
import { usedBytes } from '../support/used-bytes.ts'

const FILE = 'test/fuzz/kafka-requests.test.ts'
const wanted = Number(process.env['FUZZ_REQUESTS'] ?? (isLong ? 200_000 : 2_000))
const MIB = 1024 * 1024
const REQUESTS_MAX = 12

/** Those that are answered without others having to do something: groups wait for their members. */
const served: readonly AnyApi[] = Object.values<AnyApi>(apis).filter(
  ({ key, name }) => kafkaHandlers.has(key) && !/Group|Offset(Commit|Fetch|Delete)|Heartbeat|Coordinator/.test(name)
)

type Json = Record<string, unknown>

/** Random values that are now and then something: real topics, batches, short waits, few partitions. */
function livened(value: unknown, dice: Dice): unknown {
  if (Array.isArray(value)) return value.map(element => livened(element, dice))
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return value
  const fields: Json = {}
  for (const [name, field] of Object.entries(value as Json))
    fields[name] = livenedField(name, livened(field, dice), dice)
  return fields
}

function livenedField(name: string, value: unknown, dice: Dice): unknown {
  if (name === 'maxWaitMs') return dice.below(4)
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

/** One request; damaged now and then, in what it means or in where it ends. */
function randomRequest(dice: Dice, correlationId: number): { readonly bytes: Buffer; readonly isWhole: boolean } {
  const api = dice.pick(served)
  const { first, last } = api.versions
  const apiVersion = first + dice.below(last - first + 1)
  const body = livened(randomStruct(api.request.fields, apiVersion, dice), dice)
  const bytes = Buffer.concat(
    requestFrame(api as never, { apiVersion, correlationId, clientId: 'fuzz' }, body as never)
  )
  if (dice.chance(0.85)) return { bytes, isWhole: true }
  for (let i = 1 + dice.below(4); i > 0; i--) bytes[4 + dice.below(bytes.length - 4)] = dice.below(256)
  return { bytes, isWhole: false }
}

/** @returns how many requests were sent, and how many responses came in their order before the end. */
async function playConnection(client: KafkaClient, dice: Dice): Promise<{ sent: number; answered: number }> {
  const count = 1 + dice.below(REQUESTS_MAX)
  const parts: Buffer[] = []
  for (let id = 1; id <= count; id++) parts.push(randomRequest(dice, id).bytes)
  const all = Buffer.concat(parts)
  for (let at = 0; at < all.length;) {
    const end = Math.min(all.length, at + 1 + dice.below(dice.chance(0.2) ? 3 : 4096))
    client.socket.write(all.subarray(at, end))
    at = end
    if (dice.chance(0.1)) await new Promise(resolve => setImmediate(resolve))
  }
  // What follows the last request ends it: a size that no request has.
  client.socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff]))
  let answered = 0
  for (let response = await client.next(); response !== null; response = await client.next()) answered++
  return { sent: count, answered }
}

async function playRound(t: Parameters<typeof connectKafka>[0], broker: TestBroker, roundSeed: number) {
  const dice = diceOf(roundSeed)
  const clients = await Promise.all(Array.from({ length: 1 + dice.below(6) }, () => connectKafka(t, broker.kafka)))
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
    const counts = await playRound(t, broker, round)
    sent += counts.sent
    answered += counts.answered
    if (before === 0 && sent > wanted / 4) before = await usedBytes()
    assert.deepEqual(failures, [], replayLine(round, FILE))
  }
  const { kafka } = broker.server
  assert.ok(kafka !== null)
  await waitFor('every connection to be gone', () => kafka.connectionCount === 0)
  assert.equal(kafka.probe.refused.bug, 0)
  const page = (await api.get('/metrics')).text
  for (const budget of ['requests', 'replies']) {
    const held = new RegExp(`^millrace_memory_budget_used_bytes\\{budget="${budget}"\\} (\\d+)$`, 'm').exec(page)?.[1]
    assert.equal(held, '0', `${budget} stay held`)
  }
  assert.ok(answered > sent / 4, `${answered} of ${sent} were answered`)
  const grown = (await usedBytes()) - before
  t.diagnostic(`${sent} requests, ${answered} answered; ${(grown / MIB).toFixed(1)} MiB more in use at the end`)
  assert.ok(grown < 64 * MIB, `${grown} bytes more are in use at the end`)
})
