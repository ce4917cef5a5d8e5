/** Bytes that rotted on disk are never served, the rest is, and the caller is told what was passed over (durability R2). */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { silentLogger } from '../../src/base/logger.ts'
import { startBroker } from '../support/broker.ts'
import { flipIn } from '../support/flip-bytes.ts'
import { openClient } from '../support/es01-session.ts'
import { HttpApi, parse, type ReadAnswer } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

test('a record whose bytes changed on disk', async t => {
  const dataDir = temporaryDirectory(t)
  const variant = { engine: 'uws', shards: 1 } as const
  const first = await startBroker(t, { dataDir, variant })
  const before = new HttpApi(first.url)
  await before.createTopic('rotten', 2)
  for (const value of ['good morning', 'to be damaged', 'good night'])
    await before.produce('rotten', [{ value, partition: 1 }])
  await first.stop()
  flipIn(join(dataDir, 'journal', '000'), 'to be damaged')

  const logged: object[] = []
  const error = (fields: object, message: string): void => void logged.push({ ...fields, message })
  const second = await startBroker(t, { dataDir, variant, logger: { ...silentLogger, error } })
  const api = new HttpApi(second.url)
  const client = await openClient(t, second.es01)
  await t.test('ends the answer before it', async () => {
    const answer = await api.consume('rotten', 1, 'offset=0')
    assert.deepEqual(
      [answer.records.map(record => record.value), answer.next_offset, answer.high_watermark, answer.skipped],
      [['good morning'], 1, 3, undefined]
    )
  })
  await t.test(
    'is passed over by the next one, which says so, its bytes and the path of its file kept back',
    async () => {
      for (const encoding of ['utf8', 'base64']) {
        const answer = await api.get(`/topics/rotten/consume?partition=1&offset=1&encoding=${encoding}`)
        assert.equal(answer.status, 200, answer.text)
        assert.ok(!answer.text.includes(dataDir) && !answer.text.includes('be damaged'), answer.text)
        const { records, skipped, next_offset } = parse<ReadAnswer>(answer)
        assert.deepEqual(skipped, { requested: 1, earliest: 2, latest: 3 })
        assert.deepEqual([records.map(record => record.offset), next_offset], [[2], 3])
      }
    }
  )
  await t.test('is told to the operator by topic, partition and offsets', () => {
    const message = 'a damaged range was read'
    const line = { shard: 0, topic: 'rotten', partition: 1, first: 1, last: 1, message }
    assert.deepEqual(logged, [line, line])
  })
  await t.test('is refused over ES01 with the offset at which to go on', async () => {
    const read = client.consume({ topic: 'rotten', partition: 1, offset: 1, maxRecords: 10, maxBytes: 1000 })
    await assert.rejects(read, /offsets 1 to 1 of partition 1 are damaged on disk .*the next readable offset is 2/)
  })
  await t.test('keeps nothing behind it from being read, nor anything from being written', async () => {
    assert.deepEqual(
      (await api.consumeAll('rotten', 1, 2)).map(record => record.value),
      ['good night']
    )
    assert.deepEqual(await api.produce('rotten', [{ value: 'after', partition: 1 }]), [{ partition: 1, offset: 3 }])
  })
})
