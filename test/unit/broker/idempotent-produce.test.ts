/** Producer ids between gateway and engine: when they are stored, who owns them, when they are given up or forgotten. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { StoreChange } from '../../../src/control/store-image.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { limits } from '../../../src/model/limits.ts'
import type { Producer } from '../../../src/model/producer.ts'
import { submitOutcomes } from '../../../src/model/requests.ts'
import { claimed, Stage, turn } from './producer-stage.ts'

const DAY_MS = 24 * 60 * 60 * 1000

const kinds = (changes: readonly StoreChange[]): string[] => changes.map(change => change.kind)

describe('a new producer id', () => {
  test('is stored before its number reaches the engine, and claimed when records were written', async () => {
    const stage = new Stage()
    assert.equal(stage.submit('a', 'p', [0]), submitOutcomes.held)
    assert.equal(stage.dispatched.length, 0)
    assert.deepEqual(await stage.settleCommit(), [
      { kind: 'producer-added', producer: { ...claimed(1, 'p', 'anonymous', stage.clock.wallMs), isClaimed: false } }
    ])
    assert.equal((await stage.answer()).append.producer, 1)
    assert.deepEqual(stage.answers, ['a dispatched', 'a produced'])
    assert.deepEqual(await stage.settleCommit(), [
      { kind: 'producer-used', producer: { number: 1, isClaimed: true, lastUsedMs: stage.clock.wallMs } }
    ])
    assert.equal(stage.held.usedBytes, 0)
    assert.equal(stage.submit('b', 'p', [0]), submitOutcomes.taken)
  })

  test('is given up when its request is refused, and whoever waits for it begins afresh', async () => {
    const stage = new Stage()
    stage.submit('a', 'p', [0])
    await stage.settleCommit()
    await stage.answer(new BrokerError('SEQUENCE_GAP', {}))
    stage.submit('b', 'p', [0], 'another key')
    assert.deepEqual(stage.answers.slice(0, 2), ['a dispatched', 'a SEQUENCE_GAP no'])
    assert.deepEqual(kinds(await stage.settleCommit()), ['producer-forgotten'])
    assert.deepEqual(stage.forgotten, [1])
    await stage.settleCommit()
    assert.equal((await stage.answer()).append.producer, 2, 'numbers are never used again')
    assert.equal(stage.answers.at(-1), 'b produced')
    assert.equal(stage.held.usedBytes, 0)
  })

  test('is kept when it is not known whether records were written', async () => {
    const stage = new Stage()
    stage.submit('a', 'p', [0])
    await stage.settleCommit()
    await stage.answer(new BrokerError('SHARD_DIED', {}))
    assert.deepEqual(kinds(await stage.settleCommit()), ['producer-used'])
    assert.deepEqual(stage.forgotten, [])
  })

  test('that the store has no room for is refused with all who wait for it, and may be tried again', async () => {
    const stage = new Stage()
    stage.submit('a', 'p', [0])
    stage.submit('b', 'p', [0, 1])
    await stage.settleCommit(new BrokerError('DISK_FULL'))
    assert.deepEqual(stage.answers, ['a dispatched', 'a DISK_FULL no', 'b dispatched', 'b DISK_FULL no'])
    assert.deepEqual([stage.table.count, stage.held.usedBytes], [0, 0])
    stage.submit('c', 'p', [0])
    await stage.settleCommit()
    assert.equal((await stage.answer()).append.producer, 2)
  })

  test('is refused beyond 10,000 of a key and 100,000 of all, and with a name that is none', async () => {
    const many = Array.from({ length: limits.producersPerOwnerMax }, (_, i) => claimed(i + 1, `p${i}`))
    const stage = new Stage(many)
    assert.equal(stage.submit('a', 'one-more', [0]), submitOutcomes.held)
    await turn()
    assert.deepEqual(stage.answers, ['a dispatched', 'a PRODUCERS_TOO_MANY no'])
    stage.submit('b', 'one-more', [0], 'another key')
    stage.submit('c', 'not a name', [0], 'another key')
    await turn()
    assert.equal(stage.answers.at(-1), 'c NAME_INVALID no')
    assert.deepEqual(kinds(await stage.settleCommit()), ['producer-added'])
    const all = Array.from({ length: limits.producersTotalMax }, (_, i) => claimed(i + 1, `p${i}`, `key ${i % 20}`))
    const full = new Stage(all)
    full.submit('d', 'one-more', [0], 'another key')
    await turn()
    assert.equal(full.answers.at(-1), 'd PRODUCERS_TOO_MANY no')
  })
})

describe('an id that two keys ask for at once', () => {
  test('belongs to the one whose records were written', async () => {
    const stage = new Stage()
    stage.submit('a', 'p', [0], 'one key')
    stage.submit('b', 'p', [0], 'another key')
    await stage.settleCommit()
    assert.equal(stage.dispatched.length, 1)
    await stage.answer()
    assert.deepEqual(stage.answers.slice(-2).sort(), ['a produced', 'b PRODUCER_OWNED no'])
    await stage.settleCommit()
    assert.equal(stage.table.withId('p')?.owner, 'one key')
  })

  test('is free for the second if the first was refused', async () => {
    const stage = new Stage()
    stage.submit('a', 'p', [0], 'one key')
    stage.submit('b', 'p', [0], 'another key')
    await stage.settleCommit()
    await stage.answer(new BrokerError('SEQUENCE_GAP', {}))
    assert.deepEqual(kinds(await stage.settleCommit()), ['producer-forgotten'])
    assert.deepEqual(kinds(await stage.settleCommit()), ['producer-added'])
    await stage.answer()
    assert.deepEqual([stage.answers.at(-1), stage.table.withId('p')?.owner], ['b produced', 'another key'])
  })
})

describe('a known producer id', () => {
  test('of another key is refused', () => {
    const stage = new Stage([claimed(1, 'p', 'its key')])
    assert.throws(() => stage.submit('a', 'p', [0], 'another key'), { code: 'PRODUCER_OWNED' })
    assert.equal(stage.submit('b', 'p', [0], 'its key'), submitOutcomes.taken)
  })

  test('has one request over several shards at a time, in the order of arrival with all others', async () => {
    const stage = new Stage([claimed(1, 'p')])
    stage.submit('a', 'p', [0])
    stage.submit('b', 'p', [1])
    assert.equal(stage.submit('c', 'p', [0, 1]), submitOutcomes.held)
    assert.equal(stage.submit('d', 'p', [0]), submitOutcomes.held)
    assert.equal(stage.submit('e', 'q', [0]), submitOutcomes.held)
    assert.equal(stage.dispatched.length, 2)
    await stage.answer()
    assert.equal(stage.dispatched.length, 1, 'b is not answered')
    await stage.answer()
    assert.deepEqual(stage.dispatched[0]?.isChecked, true)
    assert.equal(stage.dispatched.length, 1, 'd waits for c')
    await stage.answer()
    await stage.answer()
    assert.deepEqual(stage.answers, [
      'a produced',
      'b produced',
      'c dispatched',
      'd dispatched',
      'c produced',
      'd produced'
    ])
  })

  test('is not taken when its rings or the memory for held requests are full', async () => {
    const stage = new Stage([claimed(1, 'p')])
    stage.isFull = true
    assert.equal(stage.submit('a', 'p', [0]), submitOutcomes.full)
    stage.submit('b', 'p', [0, 1])
    stage.submit('c', 'p', [0])
    await stage.answer()
    assert.equal(stage.dispatched.length, 0, 'c waits for room')
    assert.equal(stage.submit('d', 'p', [0]), submitOutcomes.held, 'and d behind it')
    stage.isFull = false
    for (const waiter of stage.roomWaiters.splice(0)) waiter()
    assert.deepEqual(
      stage.dispatched.map(({ append }) => append.partitions.length),
      [1, 1]
    )
    assert.ok(stage.held.tryReserve(stage.held.limitBytes - stage.held.usedBytes))
    assert.equal(stage.submit('e', 'p', [0, 1]), submitOutcomes.full)
  })
})

describe('time', () => {
  test('makes the broker forget ids that were idle for 7 days, and no others', async () => {
    const stage = new Stage([claimed(1, 'idle'), claimed(2, 'used'), claimed(3, 'busy')])
    stage.clock.wallMs = 7 * DAY_MS
    stage.submit('a', 'used', [0])
    await stage.answer()
    const nothing = stage.commands.sweep()
    await turn()
    assert.deepEqual(kinds(await stage.settleCommit()), ['producer-used'])
    await nothing
    stage.clock.wallMs += 1
    const swept = stage.commands.sweep()
    await turn()
    stage.submit('b', 'busy', [0])
    assert.deepEqual(await stage.settleCommit(), [{ kind: 'producer-forgotten', number: 1 }])
    assert.deepEqual(await stage.settleCommit(), [{ kind: 'producer-forgotten', number: 3 }])
    await swept
    assert.deepEqual(
      [stage.forgotten, stage.table.entries().map(entry => entry.id)],
      [
        [1, 3],
        ['used', 'busy']
      ]
    )
    assert.equal(stage.table.withId('busy')?.number, 4, 'its request came while it was forgotten, and began afresh')
  })

  test('that a failed sweep noted is noted by the next', async () => {
    const stage = new Stage([claimed(1, 'p')])
    stage.clock.wallMs = 1000
    stage.submit('a', 'p', [0])
    await stage.answer()
    const failed = stage.commands.sweep()
    await turn()
    const refused = assert.rejects(failed, { code: 'DISK_FULL' })
    await stage.settleCommit(new BrokerError('DISK_FULL'))
    await refused
    const next = stage.commands.sweep()
    await turn()
    assert.deepEqual(await stage.settleCommit(), [
      { kind: 'producer-used', producer: { number: 1, isClaimed: true, lastUsedMs: 1000 } }
    ])
    await next
  })
})

describe('what the last run left unclaimed', () => {
  const unclaimed = (number: number, id: string): Producer => ({ ...claimed(number, id), isClaimed: false })

  test('is claimed if the journal has records of it, else forgotten', async () => {
    const stage = new Stage([unclaimed(1, 'written'), unclaimed(2, 'refused'), claimed(3, 'p')])
    stage.positions = [{ handle: 1, producer: 1, lastSequence: 0n, lastOffset: 0 }]
    const settled = stage.commands.settleUnclaimed()
    await turn()
    assert.deepEqual(await stage.settleCommit(), [{ kind: 'producer-forgotten', number: 2 }])
    assert.deepEqual(kinds(await stage.settleCommit()), ['producer-used'])
    await settled
    assert.deepEqual(
      stage.table.entries().map(entry => [entry.id, entry.isClaimed]),
      [
        ['written', true],
        ['p', true]
      ]
    )
  })

  test('is kept while a shard cannot be asked', async () => {
    const stage = new Stage([unclaimed(1, 'perhaps')])
    stage.isWhole = false
    await stage.commands.settleUnclaimed()
    assert.equal(stage.table.count, 1)
    await assert.rejects(stage.commands.list(), { code: 'NOT_READY' })
  })
})

describe('a key that is revoked while its request is held', () => {
  test('has nothing written that waits for a new producer id', async () => {
    const stage = new Stage()
    stage.submit('a', 'p', [0], 'a key')
    stage.whoIs('a key').isRevoked = true
    await stage.settleCommit()
    assert.deepEqual([stage.dispatched.length, stage.answers], [0, ['a dispatched', 'a KEY_REVOKED no']])
    assert.deepEqual(kinds(await stage.settleCommit()), ['producer-forgotten'])
    assert.deepEqual([stage.held.usedBytes, stage.table.count], [0, 0])
  })

  test('has nothing written that waits for its turn, or for room; what is on its way is answered as it ends', async () => {
    const stage = new Stage([claimed(1, 'p', 'a key')])
    stage.submit('a', 'p', [0], 'a key')
    stage.submit('b', 'p', [0, 1], 'a key')
    stage.submit('c', 'p', [0], 'a key')
    stage.whoIs('a key').isRevoked = true
    await stage.answer()
    assert.equal(stage.dispatched[0]?.isChecked, true)
    assert.equal(stage.dispatched[0]?.lateRefusal()?.code, 'KEY_REVOKED')
    await stage.answer(new BrokerError('KEY_REVOKED'))
    await turn()
    assert.deepEqual(stage.answers.filter(answer => !answer.endsWith('dispatched')).sort(), [
      'a produced',
      'b KEY_REVOKED no',
      'c KEY_REVOKED no'
    ])
    assert.deepEqual([stage.dispatched.length, stage.held.usedBytes], [0, 0])
  })

  test('holds up nobody else', async () => {
    const stage = new Stage()
    stage.submit('a', 'p', [0], 'a key')
    stage.submit('b', 'p', [0], 'another key')
    stage.whoIs('a key').isRevoked = true
    await stage.settleCommit()
    assert.deepEqual(kinds(await stage.settleCommit()), ['producer-forgotten'])
    assert.deepEqual(kinds(await stage.settleCommit()), ['producer-added'])
    await stage.answer()
    assert.deepEqual([stage.answers.at(-1), stage.table.withId('p')?.owner], ['b produced', 'another key'])
  })
})
