/** The words of refusals, held against the table that the broker takes them from. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  isTopicMissing,
  mayPass,
  retryAfterMsOf,
  sequenceFaultOf,
  spreadOf
} from '../../../../src/client/binary/refusals.ts'
import { worded } from '../../../../src/gateway/es01/answers.ts'
import { BrokerError, errorTable, type ErrorCode, type ErrorDetails } from '../../../../src/model/errors.ts'
import { partitioners } from '../../../../src/model/topic.ts'

function messageOf(code: ErrorCode, details: ErrorDetails): string {
  return worded(new BrokerError(code, details))
}

const details = { topic: 'a.b-c_d', partition: 2_147_483_647, count: 12, producer: 'p-1', window: 128, got: '300' }

describe('a refusal of the broker', () => {
  test('says how many partitions the topic has, and the hash of its keys', () => {
    for (const partitioner of partitioners) {
      const message = messageOf('PARTITION_RANGE', { ...details, partitioner })
      assert.deepEqual(spreadOf(message), { partitionCount: 12, partitioner })
    }
    const unknown = messageOf('PARTITION_RANGE', { ...details, partitioner: 'sha3' })
    assert.deepEqual(spreadOf(unknown), { partitionCount: 12, partitioner: null })
    const [before] = unknown.split(', with keys')
    assert.deepEqual(spreadOf(before as string), { partitionCount: 12, partitioner: 'fnv1a' })
    assert.equal(spreadOf(messageOf('TOPIC_NOT_FOUND', details)), null)
  })

  test('says which sequence is expected', () => {
    const expected = '9223372036854775807'
    const gap = { kind: 'gap', expected: 2n ** 63n - 1n }
    assert.deepEqual(sequenceFaultOf(messageOf('SEQUENCE_GAP', { ...details, expected })), gap)
    const low = { kind: 'too low', expected: 2n ** 63n - 1n }
    assert.deepEqual(sequenceFaultOf(messageOf('SEQUENCE_TOO_LOW', { ...details, expected })), low)
    assert.equal(sequenceFaultOf(messageOf('SEQUENCE_INVALID', { index: 1, problem: 'is missing' })), null)
  })

  test('says how long to wait for a quota', () => {
    assert.equal(retryAfterMsOf(messageOf('RATE_LIMITED', { seconds: '2.5' })), 2500)
    assert.equal(retryAfterMsOf(messageOf('DISK_FULL', {})), null)
  })

  test('says that there is no such topic', () => {
    assert.equal(isTopicMissing(messageOf('TOPIC_NOT_FOUND', details)), true)
    assert.equal(isTopicMissing(messageOf('KEY_NOT_FOUND', { key: 'k' })), false)
  })

  test('may pass exactly where the table says to try the same again, of what a produce or a read can be refused with', () => {
    const codes = Object.keys(errorTable) as ErrorCode[]
    const details = { seconds: '1', first: 1, last: 2, partition: 0, next: 3 }
    const passing = codes.filter(code => mayPass(messageOf(code, details)))
    // An internal failure is not told apart from a bug, and a body that comes slowly is HTTP's.
    const others = ['WRITE_FAILED', 'BODY_TIMEOUT']
    const expected = codes.filter(code => errorTable[code].retry === 'same' && !others.includes(code))
    assert.deepEqual(passing, expected)
  })
})
