/**
 * Many connections of one client, each with a frame of some MiB half sent, and far less request memory than all of them take:
 * every frame is taken, nobody is closed, and small requests pass meanwhile. On both binary protocols, the same way.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect as connectSecure } from 'node:tls'
import { encodeHello } from '../../src/wire/es01/handshake.ts'
import { encodeProduceFrame } from '../../src/wire/es01/produce-frame.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { requestFrame } from '../../src/wire/kafka/headers.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { makeCertificate, writeCertificate } from '../support/certificate.ts'
import { atEnd } from '../support/clean-up.ts'
import { clientBatch } from '../support/client-batches.ts'
import { range } from '../support/es01-session.ts'
import { anonymous } from '../../src/model/principal.ts'
import { placeOf } from '../support/kafka-client.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const KIB = 1024
const MIB = 1024 * KIB
const SENDERS = 6
const flags = { '--request-memory-bytes': '24MiB' } as const

interface Protocol {
  readonly hello: Buffer
  readonly welcomeBytes: number
  readonly portOf: (broker: TestBroker) => number
  readonly probeOf: (
    broker: TestBroker
  ) => { readonly pauses: number; readonly refused: Readonly<Record<string, number>> } | undefined
  readonly large: Buffer
  /** Of so many bytes, about. */
  readonly small: (bytes: number) => Buffer
}

type ProducedPart = { readonly index: number; readonly records: Buffer }

function kafkaProduce(...partitionData: readonly ProducedPart[]): Buffer {
  const body = { acks: -1, timeoutMs: 30_000, topicData: [{ name: 't', partitionData }] }
  return Buffer.concat(requestFrame(apis.produce, { apiVersion: 7, correlationId: 1, clientId: 'test' }, body))
}

const batchOf = (bytes: number): Buffer => clientBatch({ records: [{ value: Buffer.alloc(bytes, 1) }] })
const recordOf = (bytes: number, partition: number) => ({ value: Buffer.alloc(bytes, 1), partition })
const topics = range((7 * MIB) / 202).map(() => ({ name: 'n'.repeat(200) }))
const metadata = requestFrame(apis.metadata, { apiVersion: 1, correlationId: 1, clientId: 'test' }, { topics })

const kafka: Protocol = {
  hello: Buffer.alloc(0),
  welcomeBytes: 0,
  portOf: broker => placeOf(broker.kafka).port,
  probeOf: ({ server }) => server.kafka?.probe,
  large: kafkaProduce({ index: 0, records: batchOf(3.5 * MIB) }, { index: 1, records: batchOf(3.5 * MIB) }),
  small: bytes => kafkaProduce({ index: 2, records: batchOf(bytes) })
}

const protocols: Readonly<Record<string, Protocol>> = {
  'a Kafka produce': kafka,
  'a Kafka request of very many names': { ...kafka, large: Buffer.concat(metadata) },
  'an ES01 produce': {
    hello: encodeHello('', 0),
    welcomeBytes: 13,
    portOf: broker => broker.es01.port,
    probeOf: ({ server }) => server.es01?.probe,
    large: encodeProduceFrame(1, 't', [recordOf(3.5 * MIB, 0), recordOf(3.5 * MIB, 1)]),
    small: bytes => encodeProduceFrame(1, 't', [recordOf(bytes, 2)])
  }
}

class Sender {
  readonly socket: Socket
  answeredBytes: number
  isClosed = false

  constructor(socket: Socket, { hello, welcomeBytes }: Protocol) {
    this.socket = socket
    this.answeredBytes = -welcomeBytes
    socket.on('data', chunk => (this.answeredBytes += chunk.length))
    socket.on('close', () => (this.isClosed = true))
    socket.on('error', () => socket.destroy())
    socket.write(hello)
  }

  async answered(): Promise<void> {
    await waitFor('an answer', () => this.answeredBytes > 0 || this.isClosed)
    assert.ok(this.answeredBytes > 0, 'it was closed before it was answered')
  }
}

async function open(t: TestContext, port: number, isSecure: boolean, protocol: Protocol): Promise<Sender> {
  const at = { port, host: '127.0.0.1' }
  const socket = isSecure ? connectSecure({ ...at, rejectUnauthorized: false }) : connect(at)
  atEnd(t, () => socket.destroy())
  await once(socket, isSecure ? 'secureConnect' : 'connect')
  return new Sender(socket, protocol)
}

for (const [what, protocol] of Object.entries(protocols)) {
  for (const isSecure of [false, true]) {
    test(`${what} of 7 MiB on each of ${SENDERS} connections goes through${isSecure ? ' over TLS' : ''}, and small ones beside it`, async t => {
      const files = writeCertificate(temporaryDirectory(t), makeCertificate('together'))
      const secured = isSecure ? { '--tls-cert': files.cert, '--tls-key': files.key } : {}
      const broker = await startBroker(t, { flags: { ...flags, ...secured } })
      await broker.server.broker.createTopic(anonymous, { name: 't', partitions: 3, config: {} })
      const port = protocol.portOf(broker)
      const senders = await Promise.all(range(SENDERS).map(() => open(t, port, isSecure, protocol)))
      const { large } = protocol
      for (const { socket } of senders) socket.write(large.subarray(0, 5 * MIB))
      await waitFor('most of them to wait', () => (protocol.probeOf(broker)?.pauses ?? 0) >= SENDERS / 2)
      const small = async (bytes: number): Promise<void> => {
        const sender = await open(t, port, isSecure, protocol)
        sender.socket.write(protocol.small(bytes))
        await sender.answered()
      }
      await Promise.all([1, 30 * KIB, 300 * KIB].map(small))
      for (const { socket } of senders) socket.write(large.subarray(5 * MIB))
      for (const sender of senders) await sender.answered()
      const refused = Object.entries(protocol.probeOf(broker)?.refused ?? {}).filter(([, count]) => count > 0)
      assert.deepEqual(refused, [])
    })
  }
}
