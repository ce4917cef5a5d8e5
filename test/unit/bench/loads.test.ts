/** Pacing, meters and loads: what is counted, from when, and what ends a load. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { LatencyRecorder } from '../../../native-free-bench/latency.ts'
import { Faults } from '../../../native-free-bench/load/connections.ts'
import type { Protocol } from '../../../native-free-bench/load/connections.ts'
import { openConsumeLoad } from '../../../native-free-bench/load/consume-load.ts'
import { MixedLoad } from '../../../native-free-bench/load/mixed-load.ts'
import { openProduceLoad } from '../../../native-free-bench/load/produce-load.ts'
import { runSustained } from '../../../native-free-bench/load/sustained.ts'
import { runWindow } from '../../../native-free-bench/load/window.ts'
import { Meter } from '../../../native-free-bench/meter.ts'
import { untilNextTick } from '../../../native-free-bench/pacing-worker.ts'
import { Pacer } from '../../../native-free-bench/pacing.ts'
import { startFakeBroker } from './fake-broker.ts'
import type { FakeBroker, FakeOptions } from './fake-broker.ts'

const brief = { warmUpMs: 20, windowMs: 120, bytesMax: Infinity, brokerPid: null }

function produceOptions(broker: FakeBroker, protocol: Protocol, rate: number | null) {
  const shape = { topic: 'load', records: 5, valueBytes: 20, keyed: false }
  const addresses = { http: broker.http, es01: broker.es01 }
  return { protocol, addresses, shape, partitions: 3, connections: 2, inFlight: 2, rate }
}

async function openProducers(t: TestContext, options: FakeOptions, protocol: Protocol, rate: number | null) {
  const broker = await startFakeBroker(t, options)
  const load = await openProduceLoad(produceOptions(broker, protocol, rate))
  t.after(() => load.close())
  return { broker, load }
}

describe('open-loop pacing', () => {
  test('requests are due on a grid from the start, none before its time', () => {
    const pacer = new Pacer(100)
    pacer.start(1000)
    assert.deepEqual([pacer.takeDue(999.9), pacer.takeDue(1000), pacer.takeDue(1009.9)], [-1, 1000, -1])
    assert.deepEqual([pacer.takeDue(1010), pacer.nextDueMs()], [1010, 1020])
  })

  test('after a stall every missed request keeps its intended time', () => {
    const pacer = new Pacer(100)
    pacer.start(0)
    const due: number[] = []
    for (let at = pacer.takeDue(35); at >= 0; at = pacer.takeDue(35)) due.push(at)
    assert.deepEqual(due, [0, 10, 20, 30])
  })

  test('the clock sleeps until the next tick of the grid, also after it overslept', () => {
    const task = { startMs: 1000, intervalMs: 10 }
    assert.deepEqual(
      [900, 1000, 1004, 1009.5, 1010, 1047].map(now => untilNextTick(task, now)),
      [100, 10, 6, 0.5, 10, 3]
    )
  })

  test('a million requests later the grid has not drifted', () => {
    const pacer = new Pacer(30_000)
    pacer.start(0)
    for (let i = 0; i < 1_000_000; i++) assert.ok(pacer.takeDue(1e9) >= 0)
    assert.ok(Math.abs(pacer.nextDueMs() - 1e9 / 30_000) < 1e-6)
  })
})

describe('what a window counts', () => {
  test('only answers inside it, with their latencies and slices', () => {
    const meter = new Meter()
    meter.count(50, 40, 1, 10)
    meter.open(100)
    meter.count(150, 100, 2, 20)
    meter.count(320, 300, 3, 30)
    meter.close(400)
    meter.count(500, 400, 4, 40)
    const sums = meter.sums()
    assert.deepEqual([sums.seconds, sums.requests, sums.records, sums.bytes], [0.3, 2, 5, 50])
    assert.deepEqual(sums.slices, [20, 0, 30])
    assert.equal(meter.totalBytes, 100)
    assert.ok(Math.abs(sums.latency.maxMs - 50) < 0.1)
  })

  test('a stall counts wherever in the window it lies, also before the first and after the last answer', () => {
    const longest = (open: number, answers: number[], close: number): number => {
      const meter = new Meter()
      meter.open(open)
      for (const at of answers) meter.count(at, at, 1, 1)
      meter.close(close)
      return meter.sums().longestGapMs
    }
    assert.deepEqual([longest(0, [70, 80], 90), longest(0, [10, 60, 90], 100), longest(0, [10, 20], 100)], [70, 50, 80])
    assert.equal(longest(0, [], 30), 30)
  })

  test('percentiles are within a thousandth of the exact ones', () => {
    const recorder = new LatencyRecorder()
    for (let i = 1; i <= 10_000; i++) recorder.record(i / 100)
    const { count, p50Ms, p90Ms, p99Ms, p999Ms, maxMs } = recorder.summarise()
    assert.equal(count, 10_000)
    for (const [seen, exact] of [
      [p50Ms, 50],
      [p90Ms, 90],
      [p99Ms, 99],
      [p999Ms, 99.9],
      [maxMs, 100]
    ] as const) {
      assert.ok(Math.abs(seen - exact) / exact < 0.001, `${seen} for ${exact}`)
    }
  })

  test('a latency above the range counts as the largest and does not throw', () => {
    const recorder = new LatencyRecorder()
    recorder.record(3_600_000)
    recorder.record(0)
    assert.equal(recorder.summarise().count, 2)
    assert.ok(recorder.summarise().maxMs >= 600_000)
  })
})

describe('produce load', () => {
  for (const protocol of ['es01', 'http'] as const) {
    test(`a closed loop over ${protocol} cycles over the partitions, and what it counted is in the log`, async t => {
      const { broker, load } = await openProducers(t, {}, protocol, null)
      const { sums, endedBy, refusals } = await runWindow(load, brief)
      const written = [...broker.logs.values()].reduce((sum, log) => sum + log.length, 0)
      assert.deepEqual([endedBy, refusals, broker.logs.size, load.inFlight], ['time', 0, 3, 0])
      assert.equal(load.meter.totalBytes, written * 20)
      assert.ok(sums.records > 0 && sums.records <= written)
      assert.equal(sums.records, sums.requests * 5)
    })
  }

  test('an open loop sends at its rate', async t => {
    const { load } = await openProducers(t, {}, 'es01', 500)
    const { sums, extras } = await runWindow(load, { ...brief, warmUpMs: 150, windowMs: 400 })
    const expected = 500 * sums.seconds
    assert.ok(sums.requests > expected * 0.7 && sums.requests < expected * 1.3, `${sums.requests} for ${expected}`)
    assert.ok((extras['generatorLateP50Ms'] ?? -1) >= 0)
  })

  test('the window ends when the bytes that were promised are written', async t => {
    const { load } = await openProducers(t, {}, 'es01', null)
    const { endedBy, sums } = await runWindow(load, { ...brief, windowMs: 60_000, bytesMax: 200_000 })
    assert.equal(endedBy, 'bytes')
    assert.ok(sums.seconds < 30)
  })

  test('an open loop sends in turn over all slots, so that the bytes of all of them are written', async t => {
    const { broker, load } = await openProducers(t, {}, 'es01', 500)
    await runWindow(load, { ...brief, warmUpMs: 150, windowMs: 300 })
    const values = new Set([...broker.logs.values()].flat().map(one => one.value))
    assert.equal(values.size, 4 * 5)
  })

  test('refusals are counted with the first message, and too many end the run', async t => {
    const { load } = await openProducers(t, { refuseWith: 'bad request: no' }, 'es01', null)
    await assert.rejects(
      runWindow(load, { ...brief, windowMs: 60_000 }),
      /refused 1000 requests; the first: bad request: no/
    )
  })

  test('a lost connection ends the run with its reason', async t => {
    const { load } = await openProducers(t, { cutAfterRequests: 20 }, 'es01', null)
    await assert.rejects(runWindow(load, { ...brief, windowMs: 60_000 }), /a connection was lost/)
  })
})

describe('a sustained load', () => {
  const long = { warmUpMs: 10, brokerPid: null, deviceBytes: () => null, timeoutMs: 30_000 }

  test('is measured before settling begins and from then on, without a pause between', async t => {
    const { broker, load } = await openProducers(t, {}, 'es01', null)
    const hasSettled = (): boolean => load.meter.totalBytes >= 600_000
    const bytes = { burstBytesMax: 300_000, sustainedFromBytes: 1e12, bytesMax: 1_400_000 }
    let device = 0
    const deviceBytes = (): number => (device += 1000)
    const measured = await runSustained(load, { ...long, ...bytes, hasSettled, deviceBytes })
    const { burst, sustained, deviceBytes: onDevice } = measured
    const total = load.meter.totalBytes
    assert.ok(burst.sums.bytes > 0 && burst.sums.bytes < 600_000, String(burst.sums.bytes))
    assert.ok(sustained.sums.bytes > 0 && sustained.sums.bytes <= total - 600_000, String(sustained.sums.bytes))
    assert.ok(sustained.sums.longestGapMs > 0)
    assert.equal(onDevice, 1000)
    assert.equal(load.inFlight, 0)
    const written = [...broker.logs.values()].reduce((sum, log) => sum + log.length, 0)
    assert.equal(load.meter.totalBytes, written * 20)
  })

  test('ends its burst when settling begins early', async t => {
    const { load } = await openProducers(t, {}, 'es01', null)
    let looks = 0
    const bytes = { burstBytesMax: 1e12, sustainedFromBytes: 1e12, bytesMax: 1_000_000 }
    const { burst, sustained } = await runSustained(load, { ...long, ...bytes, hasSettled: () => ++looks > 4 })
    assert.ok(burst.sums.bytes > 0 && sustained.sums.bytes > 0)
    assert.ok(burst.sums.bytes + sustained.sums.bytes <= load.meter.totalBytes)
  })

  test('begins its second window at a size where nobody sees settling begin', async t => {
    const { load } = await openProducers(t, {}, 'es01', null)
    const bytes = { burstBytesMax: 300_000, sustainedFromBytes: 700_000, bytesMax: 1_400_000 }
    const { sustained } = await runSustained(load, { ...long, ...bytes, hasSettled: () => false })
    assert.ok(sustained.sums.bytes > 0 && sustained.sums.bytes <= load.meter.totalBytes - 700_000)
  })

  test('that does not get its bytes written in time is an error', async t => {
    const { load } = await openProducers(t, {}, 'es01', null)
    const never = { burstBytesMax: 1e15, sustainedFromBytes: 1e15, bytesMax: 1e15, hasSettled: () => false }
    await assert.rejects(runSustained(load, { ...long, ...never, timeoutMs: 50 }), /bytes were written in 0.05 s/)
  })
})

describe('consume load', () => {
  function consumeOptions(broker: FakeBroker, protocol: Protocol, mode: 'drain' | 'tail') {
    const addresses = { http: broker.http, es01: broker.es01 }
    const base = { protocol, addresses, topic: 'load', partitions: 3, connections: 2, inFlight: 1 }
    return { ...base, recordBytes: 10, fetchBytes: 1024, mode }
  }

  for (const protocol of ['es01', 'http'] as const) {
    test(`over ${protocol} every partition is read from start to end, again and again`, async t => {
      const broker = await startFakeBroker(t, { readRecordsMax: 7 })
      for (let i = 0; i < 3; i++) broker.logs.set(`load/${i}`, Array(10).fill({ key: null, value: 'v'.repeat(10) }))
      const load = await openConsumeLoad(consumeOptions(broker, protocol, 'drain'))
      t.after(() => load.close())
      const { sums, extras } = await runWindow(load, brief)
      assert.ok((extras['passes'] ?? 0) >= 2)
      assert.equal(sums.bytes, sums.records * 10)
      // A partition of 10 records in reads of 7: only 7 and 3 occur, equally often up to the cut at the window's ends.
      assert.ok(Math.abs(sums.records - sums.requests * 5) <= 7 * 3)
    })
  }

  test('tail readers keep up with producers, and both sides are reported', async t => {
    const broker = await startFakeBroker(t)
    const faults = new Faults()
    const readers = await openConsumeLoad(consumeOptions(broker, 'es01', 'tail'), faults)
    const load = new MixedLoad(await openProduceLoad(produceOptions(broker, 'es01', 300), faults), readers)
    t.after(() => load.close())
    const { sums, extras } = await runWindow(load, { ...brief, warmUpMs: 150, windowMs: 300 })
    assert.ok(sums.records > 0)
    assert.ok((extras['readRecordsPerSecond'] ?? 0) > 0)
    assert.ok((extras['lagRecords'] ?? -1) >= 0)
  })
})
