/** The Kafka listener over its socket, byte by byte: what clients rely on without saying so. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { once } from 'node:events'
import { test } from 'node:test'
import type { Logger } from '../../src/base/logger.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { requestFrame } from '../../src/wire/kafka/headers.ts'
import { startBroker, waitFor } from '../support/broker.ts'
import { clientBatch } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { fetchBody, produceBatch, produceBody } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse, placeOf } from '../support/kafka-client.ts'

const oneRecord = clientBatch({ records: [{ key: 'k', value: 'v' }] })

test('every advertised version of every API has a codec, and Produce begins at 0, where old clients look for compression', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  const { apiKeys } = await client.call(apis.apiVersions, 0, {})
  const ranges = new Map(apiKeys.map(({ apiKey, minVersion, maxVersion }) => [apiKey, [minVersion, maxVersion]]))
  // librdkafka before 2.11.1 turns gzip, snappy and lz4 off where Produce 0 is not advertised (kroxylicious#2844, KAFKA-18659).
  assert.deepEqual(ranges.get(apis.produce.key), [0, 11])
  assert.deepEqual(ranges.get(apis.fetch.key), [4, 17])
  assert.deepEqual(ranges.get(apis.saslHandshake.key), [0, 1])
  for (const api of Object.values(apis)) {
    const range = ranges.get(api.key)
    if (range !== undefined) assert.deepEqual(range, [api.versions.first, api.versions.last], api.name)
  }
})

test('ApiVersions of a version of later days is answered in version 0 with what there is, and the connection lives on', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  const [frame] = requestFrame(
    apis.apiVersions,
    { apiVersion: 4, correlationId: 7, clientId: 'new' },
    {
      clientSoftwareName: 'soft',
      clientSoftwareVersion: '1'
    }
  )
  assert.ok(frame !== undefined)
  frame.writeInt16BE(9, 6)
  client.socket.write(frame)
  const response = await client.next()
  assert.ok(response !== null && response.correlationId === 7)
  const told = decodeResponse(apis.apiVersions, 0, response)
  assert.equal(told.errorCode, kafkaErrors.UNSUPPORTED_VERSION.code)
  assert.ok(told.apiKeys.some(({ apiKey, maxVersion }) => apiKey === apis.apiVersions.key && maxVersion === 4))
  assert.equal(
    (await client.call(apis.apiVersions, 3, { clientSoftwareName: 'a', clientSoftwareVersion: '1' })).errorCode,
    0
  )
})

test('a client whose software has a name that KIP-511 does not allow hears INVALID_REQUEST', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  const told = await client.call(apis.apiVersions, 3, { clientSoftwareName: 'no spaces', clientSoftwareVersion: '1' })
  assert.equal(told.errorCode, kafkaErrors.INVALID_REQUEST.code)
})

test('a version that is not advertised, of any other API, closes the connection after the answers before it', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  const first = client.send(apis.metadata, 12, { topics: null })
  const [frame] = requestFrame(apis.metadata, { apiVersion: 12, correlationId: 9, clientId: null }, { topics: null })
  assert.ok(frame !== undefined)
  frame.writeInt16BE(99, 6)
  client.socket.write(frame)
  assert.equal((await client.next())?.correlationId, first)
  await client.closed()
  assert.equal(broker.server.kafka?.probe.refused.unsupportedVersion, 1)
})

test('responses come in the order of the requests, also behind a fetch that waits', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t')
  const client = await connectKafka(t, broker.kafka)
  const waiting = client.send(apis.fetch, 11, fetchBody('t', { 0: 0 }, { maxWaitMs: 60_000 }))
  const behind = client.send(apis.metadata, 4, { topics: null })
  const other = await connectKafka(t, broker.kafka)
  await waitFor('the fetch to wait', () => broker.server.kafka?.probe.apis.get('Metadata')?.requests === 1)
  await produceBatch(other, 't', 0, oneRecord)
  const first = await client.next()
  assert.equal(first?.correlationId, waiting)
  const [fetched] = decodeResponse(apis.fetch, 11, first).responses[0]?.partitions ?? []
  assert.equal(fetched?.records?.length, oneRecord.length)
  assert.equal((await client.next())?.correlationId, behind)
})

test('a fetch that waits is answered also where one behind it has its records already', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t', 2)
  const other = await connectKafka(t, broker.kafka)
  await produceBatch(other, 't', 1, oneRecord)
  const client = await connectKafka(t, broker.kafka)
  const waiting = client.send(apis.fetch, 11, fetchBody('t', { 0: 0 }, { maxWaitMs: 60_000 }))
  const behind = client.send(apis.fetch, 11, fetchBody('t', { 1: 0 }))
  await waitFor('both to be taken', () => broker.server.kafka?.probe.apis.get('Fetch')?.requests === 2)
  await produceBatch(other, 't', 0, oneRecord)
  assert.equal((await client.next())?.correlationId, waiting)
  assert.equal((await client.next())?.correlationId, behind)
})

test('a produce with acks 0 has no response, and one that fails closes the connection', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('t')
  const client = await connectKafka(t, broker.kafka)
  client.send(apis.produce, 7, produceBody('t', 0, oneRecord, 0))
  const asked = client.send(apis.metadata, 4, { topics: null })
  assert.equal((await client.next())?.correlationId, asked)
  assert.deepEqual(await api.ends('t'), [1])
  client.send(apis.produce, 7, produceBody('missing', 0, oneRecord, 0))
  await client.closed()
})

test('another protocol is closed at once, with one log line that names it, however often it comes', async t => {
  const lines: string[] = []
  const note = (_fields: object, message: string): void => void lines.push(message)
  const logger: Logger = { debug() {}, info: note, warn: note, error: note }
  const broker = await startBroker(t, { logger })
  const speak = async (bytes: Buffer): Promise<void> => {
    const socket = connect(placeOf(broker.kafka))
    socket.on('error', () => socket.destroy())
    socket.resume()
    socket.write(bytes)
    await once(socket, 'close')
  }
  for (let i = 0; i < 3; i++) {
    await speak(Buffer.from('GET / HTTP/1.1\r\n\r\n'))
    await speak(Buffer.from('1603010200010001fc0303', 'hex'))
    await speak(Buffer.from('ES01\0\0\0\0\0\0\0\0'))
  }
  const told = lines.filter(line => line.includes('was spoken to the Kafka listener'))
  assert.deepEqual(
    told.map(line => line.split(' ')[0]),
    ['HTTP', 'TLS', 'ES01']
  )
  assert.equal(broker.server.kafka?.probe.refused.foreignProtocol, 9)
})

test('a size that no request has closes the connection, and nothing is kept for it', async t => {
  const broker = await startBroker(t)
  for (const size of [-1, 0, 9, 0x7fff_ffff]) {
    const client = await connectKafka(t, broker.kafka)
    const bytes = Buffer.alloc(4)
    bytes.writeInt32BE(size)
    client.socket.write(bytes)
    await client.closed()
  }
  assert.equal(broker.server.kafka?.probe.refused.frameSize, 4)
})

test('a malformed request closes its connection alone', async t => {
  const broker = await startBroker(t)
  const other = await connectKafka(t, broker.kafka)
  const client = await connectKafka(t, broker.kafka)
  const [frame] = requestFrame(
    apis.metadata,
    { apiVersion: 4, correlationId: 1, clientId: null },
    { topics: [{ name: 'abc' }] }
  )
  assert.ok(frame !== undefined)
  // The count of topics.
  frame.writeInt32BE(1_000_000, 14)
  client.socket.write(frame)
  await client.closed()
  assert.equal(broker.server.kafka?.probe.refused.malformed, 1)
  assert.equal((await other.call(apis.metadata, 4, { topics: null })).topics.length, 0)
})

test('clients are told the address that they reached, or the one that is advertised, each by its listener', async t => {
  const broker = await startBroker(t, {
    flags: { '--bind-kafka': ['127.0.0.1:0', '127.0.0.2:0=broker.example:1234', '127.0.0.3:0=outside.example:0'] }
  })
  const told = []
  for (const address of broker.server.kafkaAddresses) {
    const client = await connectKafka(t, address)
    const { brokers, controllerId } = await client.call(apis.metadata, 1, { topics: [] })
    assert.equal(controllerId, brokers[0]?.nodeId)
    told.push(`${brokers[0]?.host}:${brokers[0]?.port}`)
  }
  const [own, , outside] = broker.server.kafkaAddresses.map(placeOf)
  assert.deepEqual(told, [`127.0.0.1:${own?.port}`, 'broker.example:1234', `outside.example:${outside?.port}`])
})

test('the page of metrics counts connections, requests, errors and bytes of the Kafka listener', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  await client.call(apis.metadata, 4, { topics: [{ name: 'missing' }] })
  const page = (await new HttpApi(broker.url).get('/metrics')).text
  assert.match(page, /^millrace_connections\{protocol="kafka"\} 1$/m)
  assert.match(page, /^millrace_kafka_requests_total\{api="Metadata"\} 1$/m)
  assert.match(page, /^millrace_kafka_errors_total\{code="UNKNOWN_TOPIC_OR_PARTITION"\} 1$/m)
  assert.match(page, /^millrace_request_duration_seconds_count\{protocol="kafka",route="Metadata"\} 1$/m)
  assert.match(page, /^millrace_kafka_sent_bytes_total [1-9]/m)
})

test('a stop answers a fetch that waits, and closes', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t')
  const client = await connectKafka(t, broker.kafka)
  const id = client.send(apis.fetch, 11, fetchBody('t', { 0: 0 }, { maxWaitMs: 60_000 }))
  await waitFor('the fetch to be taken', () => broker.server.kafka?.probe.apis.get('Fetch')?.requests === 1)
  const stopped = broker.stop()
  assert.equal((await client.next())?.correlationId, id)
  await client.closed()
  await stopped
})
