/** Batches of Kafka's clients through a whole broker: written as they are, read by everybody, each once per producer. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import { anonymous } from '../../src/model/principal.ts'
import { appendBatch, readBatches } from '../support/batch-calls.ts'
import { startBroker, waitFor } from '../support/broker.ts'
import { clientBatch, gzip, placed, withCrc, zstd } from '../support/client-batches.ts'
import { goldenBatch, goldenCodecs } from '../support/golden-batches.ts'
import { HttpApi, onEveryVariant, parse } from '../support/http-api.ts'

const require = createRequire(import.meta.url)
interface KafkajsBatch {
  readonly compression?: number
  readonly firstTimestamp: number
  readonly maxTimestamp: number
  readonly lastOffsetDelta: number
  readonly records: readonly object[]
}
const encodeBatch: (batch: KafkajsBatch) => Promise<{ buffer: Buffer }> =
  require('kafkajs/src/protocol/recordBatch/v0/index.js').RecordBatch
const encodeRecord: (record: object) => object = require('kafkajs/src/protocol/recordBatch/record/v0/index.js')

const MIB = 1024 * 1024
const TIME_MS = 1_700_000_000_000

/** A batch as kafkajs encodes it. @param compression 0 none, 1 gzip. */
async function kafkajsBatch(values: readonly string[], compression: number): Promise<Buffer> {
  const records = values.map((value, offsetDelta) =>
    encodeRecord({ offsetDelta, timestampDelta: offsetDelta, key: `k${offsetDelta}`, value, headers: { h: 'x' } })
  )
  const times = { firstTimestamp: TIME_MS, maxTimestamp: TIME_MS + values.length - 1 }
  return (await encodeBatch({ compression, ...times, lastOffsetDelta: values.length - 1, records })).buffer
}

describe('batches of clients', () => {
  onEveryVariant('are read back as they were, and record by record over HTTP', async (_t, api, { server }) => {
    const { broker } = server
    await api.createTopic('t', 3)
    for (const partition of [0, 1, 2]) {
      const target = { topic: 't', partition }
      await api.produce('t', [{ partition, key: 'k', value: 'over HTTP' }])
      const sent = [
        await kafkajsBatch(['a', 'b'], 0),
        await kafkajsBatch(['c', 'd', 'e'], 1),
        clientBatch({
          records: [
            { key: null, value: null },
            { key: '', value: '' }
          ],
          ...zstd
        })
      ]
      let offset = 1
      const wanted: Buffer[] = []
      for (const batch of sent) {
        const appended = await appendBatch(broker, target, batch)
        assert.deepEqual(appended, { baseOffset: offset, logStartOffset: 0, appendTimeMs: -1, isDuplicate: false })
        wanted.push(placed(batch, offset))
        offset += batch.readInt32BE(57)
      }
      await api.produce('t', [{ partition, value: 'after' }])
      const { head, batches } = await readBatches(broker, target, 1)
      assert.deepEqual(head, { logStartOffset: 0, highWatermark: 9, nextOffset: 9 })
      assert.deepEqual(batches.slice(0, 3), wanted)
      const records = await api.consumeAll('t', partition)
      assert.deepEqual(
        records.map(({ key, value }) => [key, value]),
        [
          ['k', 'over HTTP'],
          ...['a', 'b'].map((value, i) => [`k${i}`, value]),
          ...['c', 'd', 'e'].map((value, i) => [`k${i}`, value]),
          [null, ''],
          ['', ''],
          [null, 'after']
        ]
      )
      assert.deepEqual(records[2]?.headers, [['h', 'x']])
      assert.equal(records[2]?.timestamp_ms, TIME_MS + 1)
    }
  })

  it('of all codecs of Kafka’s own client are the same records, also after a restart', async t => {
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic('t')
    // They are of producer 7, which is not known here: none.
    const batches = goldenCodecs.map(codec => {
      const bytes = Buffer.from(goldenBatch(codec))
      bytes.writeBigInt64BE(-1n, 43)
      return withCrc(bytes)
    })
    for (const batch of batches) await appendBatch(broker.server.broker, { topic: 't' }, batch)
    const check = async (now: HttpApi): Promise<void> => {
      const records = await now.consumeAll('t', 0)
      const values = records.map(({ key, value, headers }) => [key, value, headers])
      assert.equal(values.length, 300)
      for (let i = 1; i < 5; i++) assert.deepEqual(values.slice(60 * i, 60 * (i + 1)), values.slice(0, 60))
    }
    await check(api)
    await broker.stop()
    const again = await startBroker(t, { dataDir: broker.dataDir })
    await check(new HttpApi(again.url))
    const read = await readBatches(again.server.broker, { topic: 't' }, 0)
    assert.deepEqual(
      read.batches,
      batches.map((batch, i) => placed(batch, 60 * i))
    )
  })

  it('may be larger than a ring takes', async t => {
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic('t')
    const large = clientBatch({ records: [{ value: Buffer.alloc(7 * MIB, 'v') }, { value: 'w' }] })
    const [first, second] = await Promise.all(
      [large, large].map(batch => appendBatch(broker.server.broker, { topic: 't' }, batch))
    )
    assert.deepEqual([first?.baseOffset, second?.baseOffset], [0, 2])
    const { batches } = await readBatches(broker.server.broker, { topic: 't' }, 1, 1000)
    assert.deepEqual(batches, [placed(large, 0)])
    const tooLarge = clientBatch({ records: [{ value: Buffer.alloc(9 * MIB + 1) }] })
    await assert.rejects(appendBatch(broker.server.broker, { topic: 't' }, tooLarge), { code: 'BATCH_TOO_LARGE' })
  })

  it('wake those who wait for records', async t => {
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic('t')
    const waiting = api.consume('t', 0, 'offset=0&max_wait_ms=30000')
    await waitFor('somebody who waits', async () => {
      return (await api.get('/metrics')).text.includes('\nmillrace_watches 1\n')
    })
    await appendBatch(broker.server.broker, { topic: 't' }, clientBatch({ records: [{ value: 'v' }], ...gzip }))
    assert.deepEqual(
      (await waiting).records.map(({ value }) => value),
      ['v']
    )
  })

  it('that are corrupt are refused, and only those', async t => {
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic('t')
    const good = clientBatch({ records: [{ value: 'v' }] })
    const bad = Buffer.from(good)
    bad.writeUInt8(0x55, 30)
    const results = await Promise.allSettled(
      [good, bad, good].map(batch => appendBatch(broker.server.broker, { topic: 't' }, batch))
    )
    assert.deepEqual(
      results.map(result => (result.status === 'fulfilled' ? result.value.baseOffset : result.reason.code)),
      [0, 'BATCH_CORRUPT', 1]
    )
  })
})

describe('a producer of batches', () => {
  it('has each batch once over retries and restarts, and is listed with what it has sent', async t => {
    let broker = await startBroker(t)
    await new HttpApi(broker.url).createTopic('t', 2)
    const producerId = await broker.server.broker.batches.allocateProducer(anonymous)
    const batchOf = (sequence: number, epoch = 0): Buffer =>
      clientBatch({ records: [{ value: `v${sequence}` }, { value: 'w' }], producerId, epoch, sequence, ...gzip })
    const send = async (sequence: number, epoch = 0): Promise<string> => {
      const bytes = batchOf(sequence, epoch)
      try {
        const { baseOffset, isDuplicate } = await appendBatch(broker.server.broker, { topic: 't' }, bytes)
        return `${baseOffset}${isDuplicate ? ' again' : ''}`
      } catch (error) {
        return (error as { code: string }).code
      }
    }
    assert.deepEqual([await send(0), await send(2), await send(0)], ['0', '2', '0 again'])
    await broker.stop()
    broker = await startBroker(t, { dataDir: broker.dataDir })
    assert.deepEqual([await send(2), await send(6), await send(4)], ['2 again', 'BATCH_OUT_OF_ORDER', '4'])
    assert.deepEqual([await send(0, 1), await send(6), await send(0, 1)], ['6', 'EPOCH_STALE', '6 again'])
    const api = new HttpApi(broker.url)
    const listed = parse<unknown>(await api.get('/admin/producers'))
    assert.match(JSON.stringify(listed), new RegExp(`"kafka#${producerId}".*"last_seen_sequence":1,"last_offset":7`))
    assert.equal((await api.call('DELETE', `/admin/producers/kafka%23${producerId}`)).status, 204)
    assert.equal(await send(2, 1), 'PRODUCER_UNKNOWN')
    assert.notEqual(await broker.server.broker.batches.allocateProducer(anonymous), producerId)
  })
})
