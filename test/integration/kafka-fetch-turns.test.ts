/** What partitions of a fetch session get of each fetch: all come forward, and every record comes once and in order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../src/base/clock.ts'
import { submitOutcomes } from '../../src/model/requests.ts'
import { waitFor } from '../support/broker.ts'
import { placed, splitBatches } from '../support/client-batches.ts'
import { fetchPartitions } from '../support/kafka-calls.ts'
import { connectKafka } from '../support/kafka-client.ts'
import { ClientSession } from '../support/kafka-session.ts'
import { batchOf, sessionStage, write, type SessionStage } from '../support/kafka-session-stage.ts'
import { chosenSeed, diceOf, replayLine } from '../support/log-random.ts'

test('no partition of a session waits for ever behind the others', async t => {
  const s = await sessionStage(t, 5)
  for (let partition = 0; partition < 5; partition++)
    for (let i = 0; i < 4; i++) await write(s.writer, partition, 'x'.repeat(1000))
  const session = new ClientSession(s.client, 't')
  const sizes = { maxBytes: 1, partitionMaxBytes: 1 }
  const places: Record<number, number> = { 0: 0, 1: 0, 2: 0, 3: 0, 4: 0 }
  let offsets: Record<number, number> = { ...places }
  for (let i = 0; i < 20; i++) {
    const told = (await session.fetch({ offsets, ...sizes })).filter(({ records }) => records?.length)
    assert.equal(told.length, 1)
    const { partitionIndex = -1, records } = told[0] ?? {}
    places[partitionIndex] = (places[partitionIndex] ?? 0) + splitBatches(records ?? Buffer.alloc(0)).length
    offsets = { [partitionIndex]: places[partitionIndex] }
    const values = Object.values(places)
    assert.ok(Math.max(...values) - Math.min(...values) <= 1, JSON.stringify(places))
  }
})

test('whatever is written, forgotten and asked for, a session brings every record once and in order', async t => {
  const seed = chosenSeed()
  t.diagnostic(replayLine(seed, 'test/integration/kafka-fetch-turns.test.ts'))
  const dice = diceOf(seed)
  const s = await sessionStage(t, 6)
  const session = new ClientSession(s.client, 't', dice.pick([9, 12, 13, 16]), s.topicId)
  const ends = Array(6).fill(0) as number[]
  /** Of the partitions that the session has; where the client reads on. */
  const places = new Map<number, number>([[0, 0]])
  const kept = Array(6).fill(0) as number[]
  let changed = new Map(places)
  let forgotten: number[] = []
  for (let round = 0; round < 150; round++) {
    for (let i = dice.below(3); i > 0; i--) {
      const partition = dice.below(6)
      await write(s.writer, partition, 'x'.repeat(dice.below(3000)))
      ends[partition] = (ends[partition] ?? 0) + 1
    }
    const told = await session.fetch({
      offsets: Object.fromEntries(changed),
      forgotten,
      maxWaitMs: dice.pick([0, 0, 5]),
      minBytes: dice.pick([1, 1, 5000]),
      maxBytes: dice.pick([1, 4000, 1_000_000]),
      partitionMaxBytes: dice.pick([1, 2000, 100_000])
    })
    changed = new Map()
    forgotten = []
    for (const { partitionIndex, errorCode, records, highWatermark } of told) {
      const place = places.get(partitionIndex)
      assert.deepEqual([errorCode, highWatermark], [0, ends[partitionIndex]])
      assert.ok(place !== undefined, `${partitionIndex} was forgotten`)
      const batches = splitBatches(records ?? Buffer.alloc(0))
      for (const [i, batch] of batches.entries()) assert.equal(Number(batch.readBigInt64BE(0)), place + i)
      places.set(partitionIndex, place + batches.length)
      kept[partitionIndex] = place + batches.length
      if (batches.length > 0 && dice.chance(0.9)) changed.set(partitionIndex, place + batches.length)
      else if (batches.length > 0) places.set(partitionIndex, place)
    }
    const partition = dice.below(6)
    if (dice.chance(0.3) && !places.has(partition)) {
      places.set(partition, kept[partition] ?? 0)
      changed.set(partition, kept[partition] ?? 0)
    } else if (dice.chance(0.1) && places.size > 1 && places.has(partition)) {
      kept[partition] = places.get(partition) ?? 0
      places.delete(partition)
      changed.delete(partition)
      forgotten.push(partition)
    }
  }
  for (const [partition, place] of places) changed.set(partition, place)
  for (let i = 0; i < 100 && [...places].some(([partition, place]) => place < (ends[partition] ?? 0)); i++) {
    for (const { partitionIndex, records } of await session.fetch({
      offsets: Object.fromEntries(changed),
      forgotten
    })) {
      const place = (places.get(partitionIndex) ?? 0) + splitBatches(records ?? Buffer.alloc(0)).length
      places.set(partitionIndex, place)
      changed.set(partitionIndex, place)
    }
    forgotten = []
  }
  for (const [partition, place] of places) assert.equal(place, ends[partition])
})

test('partitions that have more than a fetch may bring come forward alike', async t => {
  const [count, batches] = [6, 24]
  const s = await sessionStage(t, count)
  const size = batchOf('v'.repeat(1000)).length
  for (let partition = 0; partition < count; partition++)
    for (let i = 0; i < batches; i++) await write(s.writer, partition, 'v'.repeat(1000))
  // Twelve batches and a half in all: each time a rest is left that is a batch of one more.
  const maxBytes = Math.floor(12.5 * size)
  for (const batchesOfPartition of [4.5, 20])
    await readEvenly(s, { count, batches }, { maxBytes, partitionMaxBytes: Math.floor(batchesOfPartition * size) })
})

/** Reads all partitions to their ends in a session of its own, and sees that none falls behind the others. */
async function readEvenly(
  s: SessionStage,
  { count, batches }: { readonly count: number; readonly batches: number },
  sizes: { readonly maxBytes: number; readonly partitionMaxBytes: number }
): Promise<void> {
  const session = new ClientSession(await connectKafka(s.t, s.broker.kafka), 't')
  const offsets: Record<number, number> = Object.fromEntries(Array.from({ length: count }, (_, i) => [i, 0]))
  let news = offsets
  for (let fetches = 1; Object.values(offsets).some(offset => offset < batches); fetches++) {
    assert.ok(fetches <= count * batches, 'each fetch brings something')
    const told = await session.fetch({ ...sizes, offsets: news })
    news = {}
    for (const { partitionIndex, records } of told) {
      const found = records === null ? 0 : splitBatches(records).length
      if (found > 0) news[partitionIndex] = offsets[partitionIndex] = (offsets[partitionIndex] ?? 0) + found
    }
    const places = Object.values(offsets)
    // What one fetch brings: who got least is first next time.
    assert.ok(Math.max(...places) - Math.min(...places) <= 13, `after ${fetches} fetches: ${places.join(', ')}`)
  }
}

test('a read for which there is no room is sent once when there is, and its partition is in the answer', async t => {
  const s = await sessionStage(t)
  const offsets = { 0: 0, 1: 0, 2: 0 }
  for (let partition = 0; partition < 3; partition++) await write(s.writer, partition)
  const { broker } = s.broker.server
  const { submitRead } = broker
  let isFull = false
  let waiting: (() => void)[] = []
  broker.submitRead = (who, read, caller) => {
    return isFull && read.partition === 0 ? submitOutcomes.full : submitRead.call(broker, who, read, caller)
  }
  broker.whenRoom = callback => void waiting.push(callback)
  // Another partition comes first each time.
  for (let i = 0; i < 3; i++) {
    isFull = true
    const fetched = fetchPartitions(s.client, 't', offsets)
    await waitFor('a read to have no room', () => waiting.length > 0)
    // What the fetch has sent is answered before this.
    await fetchPartitions(s.writer, 't', { 1: 0, 2: 0 })
    isFull = false
    const callbacks = waiting
    waiting = []
    for (const callback of callbacks) callback()
    broker.turn()
    const told = (await fetched).map(({ errorCode, highWatermark, records }) => [errorCode, highWatermark, records])
    for (const one of told) assert.deepEqual(one, [0, 1, placed(batchOf('v'), 0)])
  }
})

test('a fetch whose time ends just when it begins to wait is answered, and nothing is said on stderr', async t => {
  const s = await sessionStage(t)
  const warnings: string[] = []
  const onWarning = ({ name }: Error): void => void warnings.push(name)
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  const { monotonicMs } = systemClock
  t.after(() => (systemClock.monotonicMs = monotonicMs))
  let aheadMs = 0
  let stepMs = 0
  // Between any two looks at the clock so much time goes by: for one fetch or another, as much as it has left.
  systemClock.monotonicMs = () => monotonicMs() + (aheadMs += stepMs)
  for (let i = 0; i < 60; i++) {
    stepMs = 0.5 + i / 100
    const [told] = await fetchPartitions(s.client, 't', { 0: 0 }, { maxWaitMs: 1 + (i % 12) })
    assert.equal(told?.errorCode, 0)
  }
  await new Promise(resolve => setImmediate(resolve))
  assert.deepEqual(warnings, [])
})
