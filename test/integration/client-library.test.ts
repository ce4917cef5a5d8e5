/** The client library against a real broker: where keys go, keys and quotas, TLS, gzip, topics that are made anew. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { connectEs01 } from '../../src/client/es01/client.ts'
import { BinaryClient, PipelinedClient, type PipelinedOptions } from '../../src/client/binary/index.ts'
import { makeTestKey, startGuarded } from '../support/access.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { makeCertificate, writeCertificate } from '../support/certificate.ts'
import { atEnd } from '../support/clean-up.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

function pipelined(t: TestContext, { es01 }: TestBroker, options: Partial<PipelinedOptions> = {}): PipelinedClient {
  const client = new PipelinedClient({ ...es01, lingerMs: 0, ...options })
  atEnd(t, () => client.destroy())
  return client
}

function binary(t: TestContext, { es01 }: TestBroker, options: Partial<PipelinedOptions> = {}): BinaryClient {
  const client = new BinaryClient({ ...es01, ...options })
  atEnd(t, () => client.destroy())
  return client
}

function placeOf({ partition }: { readonly partition: number }): number {
  return partition
}

/** Records with many keys, of bytes too, and none. */
const keys = [...Array.from({ length: 60 }, (_, i) => `key-${i}`), '', 'ключ', Buffer.from([0, 255, 128])]

describe('the client library', () => {
  test('sends each key to the partition that HTTP sends it to', async t => {
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic('t', 7)
    const client = pipelined(t, broker)
    const results = await Promise.all(keys.map(key => client.send('t', { key, value: 'v' })))
    const texts = keys.filter(key => typeof key === 'string')
    const expected = await api.produce(
      't',
      texts.map(key => ({ key, value: 'v' }))
    )
    assert.deepEqual(
      results.slice(0, texts.length).map(({ partition }) => partition),
      expected.map(({ partition }) => partition)
    )
    const [byBroker] = await binary(t, broker).produce('t', [{ key: Buffer.from([0, 255, 128]), value: 'v' }])
    assert.equal(results.at(-1)?.partition, byBroker?.partition)
  })

  test('reads back over HTTP and ES01 what it sent, empty values and those without key too', async t => {
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic('t')
    const client = pipelined(t, broker)
    await Promise.all(['a', 'é', ''].map(value => client.send('t', { value })))
    const { records } = await binary(t, broker).consume({ topic: 't', partition: 0, offset: 0 })
    assert.deepEqual(
      records.map(({ key, value }) => [key, value.toString()]),
      [
        [null, 'a'],
        [null, 'é'],
        [null, '']
      ]
    )
    assert.equal((await api.consumeAll('t', 0)).length, 3)
  })

  for (const partitions of [2, 9]) {
    test(`finds the ${partitions} partitions of a topic that is made anew, which had 5`, async t => {
      const broker = await startBroker(t)
      const api = new HttpApi(broker.url)
      await api.createTopic('t', 5)
      const client = pipelined(t, broker)
      for (let i = 0; i < 2; i++) await Promise.all(keys.map(key => client.send('t', { key, value: 'v' })))
      await api.call('DELETE', '/topics/t')
      await api.createTopic('t', partitions)
      // The first records may still go by the old number; what they meet tells the client.
      await Promise.all(keys.map(key => client.send('t', { key, value: 'v' })))
      const results = await Promise.all(keys.map(key => client.send('t', { key, value: 'v' })))
      const byBroker = await binary(t, broker).produce(
        't',
        keys.map(key => ({ key, value: 'v' }))
      )
      assert.deepEqual(
        results.map(({ partition }) => partition),
        byBroker.map(({ partition }) => partition)
      )
    })
  }

  test('puts keys where HTTP puts them, soon after partitions were added', async t => {
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic('t', 2)
    const client = pipelined(t, broker, { metadataMaxAgeMs: 1 })
    const texts = keys.filter(key => typeof key === 'string')
    const records = texts.map(key => ({ key, value: 'v' }))
    const send = async () => (await Promise.all(records.map(record => client.send('t', record)))).map(placeOf)
    assert.deepEqual(await send(), (await api.produce('t', records)).map(placeOf))
    parse(await api.post('/topics/t/partitions', { partitions: 9 }))
    const expected = (await api.produce('t', records)).map(placeOf)
    await waitFor('all keys to be where HTTP puts them', async () => `${await send()}` === `${expected}`)
    assert.ok(expected.some(partition => partition >= 2))
  })

  test('goes by the hash that the topic has at its first record, though it asked before that was changed', async t => {
    const broker = await startBroker(t, { flags: { '--max-record-bytes': '1KiB' } })
    const api = new HttpApi(broker.url)
    await api.createTopic('t', 9)
    const client = pipelined(t, broker)
    const refused = { kind: 'refused', written: 'no' }
    await assert.rejects(client.send('t', { key: 'k', value: 'x'.repeat(2000) }), refused)
    parse(await api.call('PUT', '/topics/t/config', '{"partitioner":"murmur2"}'))
    const texts = keys.filter(key => typeof key === 'string')
    const results = await Promise.all(texts.map(key => client.send('t', { key, value: 'v' })))
    const byHttp = texts.map(key => ({ key, value: 'v' }))
    assert.deepEqual(results.map(placeOf), (await api.produce('t', byHttp)).map(placeOf))
  })

  test('takes a key, and a key that may only write is enough to produce', async t => {
    const { broker, admin } = await startGuarded(t)
    await admin.api.createTopic('orders', 3)
    await admin.api.createTopic('bills', 3)
    const { secret: token } = await makeTestKey(admin.api, 'write:orders')
    const client = pipelined(t, broker, { token })
    assert.equal((await client.send('orders', { key: 'k', value: 'v' })).offset, 0)
    await assert.rejects(client.send('bills', { key: 'k', value: 'v' }), {
      kind: 'refused',
      written: 'no',
      retryable: false
    })
    await assert.rejects(client.send('bills', { value: 'v', partition: 0 }), { kind: 'refused', written: 'no' })
    for (const wrong of ['', 'esk_wrong']) {
      await assert.rejects(binary(t, broker, { token: wrong }).ping(), { kind: 'refused', retryable: false })
      const other = pipelined(t, broker, { token: wrong })
      await assert.rejects(other.send('orders', { value: 'v' }), { kind: 'refused', written: 'no' })
    }
  })

  test('delivers everything under a quota that its batches exceed', async t => {
    const { broker, admin } = await startGuarded(t)
    await admin.api.createTopic('t', 1)
    const request = { name: 'slow', acls: [{ action: 'write', topic_prefix: '*' }], produce_bytes_per_sec: 20_000 }
    const { secret } = parse<{ secret: string }>(await admin.api.post('/admin/keys', request))
    const client = pipelined(t, broker, { token: secret })
    const value = Buffer.alloc(1000, 1)
    const results = await Promise.all(Array.from({ length: 40 }, () => client.send('t', { key: 'k', value })))
    assert.deepEqual(
      results.map(({ offset }) => offset),
      Array.from({ length: 40 }, (_, i) => i)
    )
  })

  test('speaks TLS, and trusts only what it was told to', async t => {
    const made = makeCertificate('broker')
    const files = writeCertificate(temporaryDirectory(t), made)
    const broker = await startBroker(t, { flags: { '--tls-cert': files.cert, '--tls-key': files.key } })
    await binary(t, broker, { tls: { ca: made.cert } }).ping()
    await binary(t, broker, { tls: { insecure: true } }).ping()
    await assert.rejects(binary(t, broker, { tls: {} }).ping(), { kind: 'untrusted', retryable: false })
  })

  test('says so where TLS is asked of a listener without it, and does not try again', async t => {
    const broker = await startBroker(t)
    await assert.rejects(binary(t, broker, { tls: {} }).ping(), {
      kind: 'protocol',
      retryable: false,
      message: `what listens at ${broker.es01.host}:${broker.es01.port} does not speak TLS: leave out tls for it`
    })
  })

  test('speaks gzip where it asks for it', async t => {
    const broker = await startBroker(t)
    await new HttpApi(broker.url).createTopic('t', 3)
    const client = pipelined(t, broker, { gzip: true })
    const value = 'again and again '.repeat(20_000)
    const results = await Promise.all(keys.map(key => client.send('t', { key, value })))
    assert.equal(results.length, keys.length)
    const { records } = await binary(t, broker, { gzip: true }).consume({ topic: 't', partition: 1, offset: 0 })
    assert.ok(records.every(record => record.value.toString() === value))
    const low = await connectEs01({ ...broker.es01, gzip: true })
    assert.equal(low.hasGzip, true)
    await low.close()
  })
})
