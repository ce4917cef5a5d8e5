/** What a client of ES01 hears of a failure inside the broker: an id, and nothing else (D15). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger, type Logger } from '../../../../src/base/logger.ts'
import { BrokerError } from '../../../../src/model/errors.ts'
import { submitOutcomes } from '../../../../src/model/requests.ts'
import { encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import { startGateway } from './fixture.ts'

test('a failure inside the broker says an id to the client, and what failed to the log alone', async t => {
  const lines: object[] = []
  const logger: Logger = { ...silentLogger, error: fields => lines.push(fields) }
  const { greet, broker } = await startGateway(t, { logger })
  const cause = new Error('EIO at /data/journal/000/0001.slot')
  broker.submitProduce = (_who, _topic, _records, caller) => {
    setImmediate(() => caller.onProduceFailed(new BrokerError('WRITE_FAILED', { shard: 3 }, { cause })))
    return submitOutcomes.taken
  }
  const client = await greet()
  client.send(encodeProduceFrame(1, 't', [{ value: 'v', partition: 0 }]))
  const text = await client.errorText(1)
  const id = /^internal error \(id ([0-9a-f]{8})\) \(written: unknown\)$/.exec(text)?.[1]
  assert.ok(id !== undefined, text)
  const line = JSON.stringify(lines)
  for (const part of [id, 'WRITE_FAILED', 'shard 3', '0001.slot']) assert.ok(line.includes(part), line)
})
