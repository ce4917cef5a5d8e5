/** The job that matches records with a schema: which record it names, what it gives back, which schemas a thread keeps. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '../../../../src/base/logger.ts'
import type { ValidationJobs } from '../../../../src/background/jobs.ts'
import { BackgroundPool } from '../../../../src/background/pool.ts'
import type { PackedRecords, ValidateRecordsResult } from '../../../../src/background/record-validation.ts'
import { packRecords, ScannedRecords } from '../../../../src/background/scanned-records.ts'
import { BrokerError } from '../../../../src/model/errors.ts'
import { limits } from '../../../../src/model/limits.ts'
import type { SchemaText } from '../../../../src/model/schemas.ts'
import { encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import { ProduceDecoder } from '../../../../src/wire/es01/produce-request.ts'
import { atEnd } from '../../../support/clean-up.ts'

function packed(...values: readonly string[]): PackedRecords {
  const decoder = new ProduceDecoder()
  const frame = encodeProduceFrame(
    1,
    't',
    values.map((value, i) => ({ key: i % 2 === 0 ? null : `key ${i}`, value, partition: i }))
  )
  assert.ok(decoder.decode(frame, 9, frame.length))
  const records = packRecords(decoder)
  const { memory } = records
  assert.ok(memory !== null)
  return { ...records, memory }
}

/** One thread of its own, as the broker has it. */
function openThread(t: Parameters<typeof atEnd>[0], heapMb: number = limits.validationHeapMb) {
  const pool = new BackgroundPool<ValidationJobs>({ threadsMax: 1, jobsMax: 8, logger: silentLogger, heapMb })
  atEnd(t, () => pool.close())
  return (
    schemaId: number,
    text: SchemaText | null,
    records: PackedRecords,
    timeMs = 60_000
  ): Promise<ValidateRecordsResult> => {
    const failure = (over: string): BrokerError => new BrokerError('VALIDATION_LIMIT', { unit: over })
    return pool.run(
      'validateRecords',
      { schemaId, text, records },
      { moves: [records.memory], bound: { timeMs, failure } }
    )
  }
}

const json = (schema: unknown): SchemaText => ({ type: 'json_schema', schema: JSON.stringify(schema) })

test('records that match come back as they went; of others the first is named', async t => {
  const validate = openThread(t)
  const values = ['1', '', '22', '333']
  const before = packed(...values)
  const bytes = Buffer.from(before.memory).toString('hex')
  const result = await validate(1, json({ type: 'integer' }), before)
  assert.ok(result.kind === 'valid')
  assert.ok(before.memory.detached, 'memory moves, and is not copied')
  assert.equal(Buffer.from(result.memory).toString('hex'), bytes)
  const records = new ScannedRecords({ ...before, memory: result.memory })
  assert.deepEqual(
    values.map((_, i) => Buffer.from(records.valueOf(i)).toString()),
    values
  )
  const mismatch = await validate(1, null, packed('1', '', '"x"', '"y"'))
  assert.deepEqual(mismatch, { kind: 'mismatch', index: 2, problem: "at '/': must be integer" })
})

test('a thread asks for the text of a schema that it does not have, and keeps the schemas used last', async t => {
  const validate = openThread(t)
  const isReady = async (id: number): Promise<boolean> => (await validate(id, null, packed('1'))).kind === 'valid'
  assert.equal(await isReady(1), false)
  const count = limits.readySchemasMax
  for (let id = 1; id <= count; id++) assert.equal((await validate(id, json(true), packed('1'))).kind, 'valid')
  assert.deepEqual([await isReady(1), await isReady(count)], [true, true])
  await validate(count + 1, json(true), packed('1'))
  assert.deepEqual([await isReady(2), await isReady(1), await isReady(count + 1)], [false, true, true])
  const large = json({ description: 'x'.repeat(limits.readySchemaBytesMax) })
  assert.equal((await validate(1000, large, packed('1'))).kind, 'valid')
  assert.deepEqual([await isReady(1000), await isReady(1)], [true, false])
})

test('a request that takes too long or too much memory ends its thread, and the next one has a new one', async t => {
  const validate = openThread(t, 64)
  const hostile = json({ pattern: '^(a+)+$' })
  assert.equal((await validate(1, hostile, packed('"a"'))).kind, 'valid')
  const rejected = (unit: string) => (error: unknown) => error instanceof BrokerError && error.details['unit'] === unit
  await assert.rejects(validate(1, null, packed(`"${'a'.repeat(64)}!"`), 500), rejected('time'))
  assert.equal((await validate(1, null, packed('"a"'))).kind, 'textless', 'it is another thread')
  const huge = `[${'{},'.repeat(1_500_000)}{}]`
  await assert.rejects(validate(2, json(true), packed(huge)), rejected('memory'))
  assert.equal((await validate(1, hostile, packed('"a"'))).kind, 'valid')
})
