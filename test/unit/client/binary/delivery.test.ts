/** What becomes of a batch after each answer, and after none. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { clientError, type ClientError } from '../../../../src/client/binary/client-error.ts'
import {
  attemptCount,
  stepAfterAnswer,
  stepAfterFailure,
  type Delivery
} from '../../../../src/client/binary/delivery.ts'

function batch(count: number, rest: Partial<Delivery> = {}): Delivery {
  return { first: 1000n, count, mayBeWritten: false, isInDoubt: false, tailCount: 0, ...rest }
}

const doubted = { mayBeWritten: true, isInDoubt: true }
const lost = clientError('connection', 'unknown', 'the connection broke')
const unsent = clientError('connection', 'no', 'no connection')

function refused(message: string, facts: { retryable?: boolean; retryAfterMs?: number } = {}): ClientError {
  return clientError('refused', 'no', message, facts)
}

function fault(kind: 'gap' | 'too low', expected: bigint): ClientError {
  return refused(
    `bad request: sequence ${kind} of producer id 'p' in partition 0: expected ${expected}, got 7; nothing`
  )
}

/** Results of records one behind the other. */
function results(count: number, offset: number, duplicate = true) {
  return Array.from({ length: count }, (_, i) => ({ partition: 0, offset: offset + i, duplicate }))
}

describe('a batch that was sent and not answered', () => {
  test('is sent again: whole up to 128 records, else the last of it, twice as many after each loss', () => {
    for (const [count, sent] of [
      [1, [1, 1]],
      [128, [128, 128]],
      [129, [1, 2, 4, 8, 16, 32, 64, 128, 128]],
      [5000, [1, 2, 4, 8, 16, 32, 64, 128, 128]]
    ] as const) {
      const delivery = batch(count)
      assert.equal(attemptCount(delivery), count)
      for (const expected of sent) {
        assert.deepEqual(stepAfterFailure(delivery, lost), { kind: 'again', waitMs: null })
        assert.equal(attemptCount(delivery), expected)
        assert.equal(delivery.mayBeWritten, true)
      }
    }
  })

  test('is not taken for written because a tail of it is known that may have been written alone', () => {
    const delivery = batch(500, doubted)
    for (let tail = 1; tail <= 128; tail *= 2) {
      assert.deepEqual(stepAfterAnswer(delivery, results(tail, 5000)).kind, 'done', 'longer than any that was lost')
      stepAfterFailure(delivery, lost)
      assert.deepEqual(stepAfterAnswer(delivery, results(tail, 5000)), { kind: 'partly', last: results(tail, 5000) })
    }
  })

  test('is not either after the broker waited for its first record: an earlier tail may come late', () => {
    const delivery = batch(500, doubted)
    stepAfterFailure(delivery, lost)
    stepAfterFailure(delivery, fault('gap', 1000n))
    assert.equal(attemptCount(delivery), 500)
    stepAfterFailure(delivery, lost)
    assert.equal(attemptCount(delivery), 2)
    assert.deepEqual(stepAfterAnswer(delivery, results(1, 5000)).kind, 'partly')
  })

  test('is asked for again if the broker says that records are written, and not where', () => {
    const said = clientError('refused', 'yes', 'unavailable: (written: yes)')
    const delivery = batch(5)
    assert.deepEqual(stepAfterFailure(delivery, said), { kind: 'again', waitMs: null })
    assert.deepEqual(stepAfterFailure(delivery, refused('forbidden: no')), { kind: 'reject', written: 'unknown' })
  })

  test('was written if its last records were: its offsets count back from the last', () => {
    assert.deepEqual(stepAfterAnswer(batch(500, doubted), results(128, 1372)), {
      kind: 'done',
      results: results(500, 1000)
    })
  })

  test('was not if the broker waits for its first record: it is sent whole', () => {
    const delivery = batch(500, doubted)
    assert.deepEqual(stepAfterFailure(delivery, fault('gap', 1000n)), { kind: 'again', waitMs: null })
    assert.equal(attemptCount(delivery), 500)
    assert.equal(delivery.mayBeWritten, true, 'a late copy of it may still come through')
  })

  test('came through late if it is too low then: its last records are asked for once more', () => {
    const delivery = batch(500, { mayBeWritten: true })
    assert.deepEqual(stepAfterFailure(delivery, fault('too low', 1500n)), { kind: 'again', waitMs: null })
    assert.equal(attemptCount(delivery), 1)
  })

  test('goes under a new producer id if the broker has lost what stood before it', () => {
    assert.deepEqual(stepAfterFailure(batch(500, doubted), fault('gap', 900n)), { kind: 'renew' })
    assert.deepEqual(stepAfterFailure(batch(5), fault('gap', 0n)), { kind: 'renew' })
  })

  test('is known in its last records alone if those are new to the broker, or not in one piece', () => {
    const fresh = results(128, 0, false)
    assert.deepEqual(stepAfterAnswer(batch(500, doubted), fresh), { kind: 'partly', last: fresh })
    const torn = [...results(127, 1000), ...results(1, 5000)]
    assert.deepEqual(stepAfterAnswer(batch(500, doubted), torn), { kind: 'partly', last: torn })
  })

  test('is unknown, not guessed, after any other refusal', () => {
    for (const failure of [
      refused('forbidden: this key may not'),
      fault('gap', 1001n),
      fault('too low', 3000n),
      refused("bad request: partition 3 is out of range: topic 't' has 2 partition(s), numbered from 0")
    ]) {
      assert.deepEqual(stepAfterFailure(batch(500, doubted), failure), { kind: 'reject', written: 'unknown' })
    }
  })

  test('waits out what may pass, and stays in doubt', () => {
    const delivery = batch(500, doubted)
    const limited = refused('rate limited: retry in 2.0s', { retryable: true, retryAfterMs: 2000 })
    assert.deepEqual(stepAfterFailure(delivery, limited), { kind: 'again', waitMs: 2000 })
    assert.equal(attemptCount(delivery), 1)
  })
})

describe('a batch that cannot have been written', () => {
  test('is sent again as it is where it never left', () => {
    const delivery = batch(500)
    assert.deepEqual(stepAfterFailure(delivery, unsent), { kind: 'again', waitMs: null })
    assert.deepEqual([attemptCount(delivery), delivery.mayBeWritten], [500, false])
  })

  test('is rejected with nothing written where trying is of no use', () => {
    for (const failure of [refused('forbidden: no'), clientError('closed', 'no', 'the client was closed')]) {
      assert.deepEqual(stepAfterFailure(batch(500), failure), { kind: 'reject', written: 'no' })
    }
  })

  test('is made smaller where a quota refuses it, down to one record', () => {
    const limited = refused('rate limited: retry in 1.0s', { retryable: true, retryAfterMs: 1000 })
    assert.deepEqual(stepAfterFailure(batch(2), limited), { kind: 'smaller', waitMs: 1000 })
    assert.deepEqual(stepAfterFailure(batch(1), limited), { kind: 'again', waitMs: 1000 })
  })

  test('goes where the topic has a partition for it', () => {
    const outOfRange = refused(
      "bad request: partition 3 is out of range: topic 't' has 2 partition(s), numbered from 0"
    )
    assert.deepEqual(stepAfterFailure(batch(5), outOfRange), {
      kind: 'reroute',
      spread: { partitionCount: 2, partitioner: 'fnv1a' }
    })
  })
})
