/**
 * Clients that have not said whose key they have, and say anything: handshakes and tokens in any order, of any mechanism, true,
 * nearly true and none, bare or not, and requests that are not for them. None of them gets in, none learns anything, each is
 * answered or closed; who has a key gets in meanwhile. 150 connections; 6,000 with MILLRACE_LONG=1, or as many as FUZZ_CONNECTIONS says.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Logger } from '../../src/base/logger.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { requestFrame } from '../../src/wire/kafka/headers.ts'
import { startGuarded, type TestKey } from '../support/access.ts'
import { waitFor, type TestBroker } from '../support/broker.ts'
import { clientBatch } from '../support/client-batches.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { produceBody } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse, type KafkaClient } from '../support/kafka-client.ts'
import { loginPlain } from '../support/kafka-login.ts'
import { diceOf, replayLine, type Dice } from '../support/log-random.ts'
import { heldBytes } from '../support/metrics-held.ts'

const FILE = 'test/fuzz/kafka-sasl.test.ts'
const wanted = Number(process.env['FUZZ_CONNECTIONS'] ?? (isLong ? 6_000 : 150))
delete process.env['FUZZ_CONNECTIONS']
const STEPS_MAX = 6
const mechanisms = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'GSSAPI', 'plain', '', 'PLAIN\0']

/** A token that lets nobody in: the key is real, the secret never is. */
function randomToken(dice: Dice, { id, secret }: TestKey): Buffer {
  const nonce = dice.bytes(dice.below(12)).toString('base64')
  const wrong = dice.pick([secret.slice(1), `${secret} `, secret.toUpperCase(), '', dice.bytes(30).toString('base64')])
  const texts = [
    `\0${id}\0${wrong}`,
    `other\0${id}\0${secret}`,
    `\0${id}`,
    `\0\0${secret}`,
    `${id}\0${secret}`,
    `n,,n=${id},r=${nonce}`,
    `y,,n=${id},r=${nonce}`,
    `p=tls-unique,,n=${id},r=${nonce}`,
    `n,a=admin,n=${id},r=${nonce}`,
    `n,,m=ext,n=${id},r=${nonce}`,
    `n,,n=nobody,r=${nonce}`,
    `c=biws,r=${nonce},p=${dice.bytes(32).toString('base64')}`,
    `c=biws,r=${'x'.repeat(dice.below(5000))},p=!!`,
    ','.repeat(dice.below(200)),
    `n,,n==2C=3D=zz,r=${nonce}`,
    ''
  ]
  return dice.chance(0.2) ? dice.bytes(dice.below(300)) : Buffer.from(dice.pick(texts))
}

/** Sends some steps and reads to the end. @returns the error codes of what was answered to tokens. */
async function playStranger(client: KafkaClient, dice: Dice, admin: TestKey): Promise<number[]> {
  const asked = new Map<number, number>()
  const produce = produceBody('t', 0, clientBatch({ records: [{ value: 'v' }] }))
  const header = { apiVersion: 7, correlationId: 0, clientId: null }
  for (let steps = 1 + dice.below(STEPS_MAX); steps > 0; steps--) {
    const kind = dice.unit()
    const authenticate = (authBytes: Buffer): void => {
      const version = dice.below(3)
      asked.set(client.send(apis.saslAuthenticate, version, { authBytes }), version)
    }
    if (kind < 0.25) client.send(apis.saslHandshake, dice.below(2), { mechanism: dice.pick(mechanisms) })
    else if (kind < 0.45) {
      client.send(apis.saslHandshake, 1, { mechanism: dice.pick(['SCRAM-SHA-256', 'SCRAM-SHA-512']) })
      authenticate(Buffer.from(`n,,n=${admin.id},r=${dice.bytes(9).toString('base64')}`))
    } else if (kind < 0.75) authenticate(randomToken(dice, admin))
    else if (kind < 0.85) {
      const token = randomToken(dice, admin)
      const size = Buffer.alloc(4)
      size.writeInt32BE(dice.chance(0.9) ? token.length : dice.below(70_000))
      client.socket.write(Buffer.concat([size, token]))
    } else if (kind < 0.95) client.socket.write(Buffer.concat(requestFrame(apis.produce, header, produce)))
    else client.send(apis.apiVersions, dice.below(5), {})
    if (dice.chance(0.3)) await new Promise(resolve => setImmediate(resolve))
  }
  // What follows the last step ends it; where that is a part of a token that is not whole, the end of the connection does.
  client.socket.end(Buffer.from([0xff, 0xff, 0xff, 0xff]))
  const codes: number[] = []
  for (let response = await client.next(); response !== null; response = await client.next()) {
    const version = asked.get(response.correlationId)
    if (version !== undefined) codes.push(decodeResponse(apis.saslAuthenticate, version, response).errorCode)
  }
  return codes
}

async function logIn(t: TestContext, { kafka }: TestBroker, { id, secret }: TestKey): Promise<KafkaClient> {
  const client = await connectKafka(t, kafka)
  assert.equal(await loginPlain(client, id, secret), 0)
  return client
}

test(`${wanted} connections of strangers that say anything get nowhere, and keep nobody else out`, async t => {
  t.diagnostic(replayLine(seed, FILE))
  const failures: object[] = []
  const logger: Logger = { debug() {}, info() {}, warn() {}, error: fields => void failures.push(fields) }
  const { broker, admin } = await startGuarded(t, { logger })
  await admin.api.createTopic('t')
  const { kafka } = broker.server
  assert.ok(kafka !== null)
  let refused = 0
  let more = 0
  for (let played = 0, round = seed; played < wanted; round++) {
    const dice = diceOf(round)
    const strangers = await Promise.all(Array.from({ length: 1 + dice.below(8) }, () => connectKafka(t, broker.kafka)))
    const playing = strangers.map((client, i) => playStranger(client, diceOf(round * 31 + i), admin))
    const friend = await logIn(t, broker, admin)
    for (const code of (await Promise.all(playing)).flat()) code === 0 ? more++ : refused++
    friend.socket.destroy()
    played += strangers.length
    assert.deepEqual(failures, [], replayLine(round, FILE))
    assert.deepEqual(await admin.api.ends('t'), [0], `somebody got in: ${replayLine(round, FILE)}`)
  }
  await waitFor('every connection to be gone', () => kafka.connectionCount === 0)
  assert.equal(kafka.probe.refused.bug, 0)
  t.diagnostic(`${refused} tokens refused, ${more} answered with the next step of SCRAM`)
  assert.ok(refused > wanted / 4 && more > wanted / 20)
  assert.deepEqual(await heldBytes(admin.api), { requests: 0, replies: 0 })
})
