/** What the scenario kafka reads from Kafka's tools, the loads that it gives, and what it concludes. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { JavaPrograms, requireJava } from '../../../native-free-bench/kafka/java.ts'
import { kafkaLoads, loadOf, ratioNotes, rowOf, sides } from '../../../native-free-bench/kafka/loads.ts'
import type { KafkaLoad, Measurement, Side } from '../../../native-free-bench/kafka/loads.ts'
import { parseConsumer, parseProducer } from '../../../native-free-bench/kafka/perf-tools.ts'

/** As kafka-producer-perf-test 4.4.0 printed it. */
const produced = `Warmup first 200000 records. Steady state results will print after the complete test summary.
375974 records sent, 75179.8 records/sec (18.35 MB/sec), 637.5 ms avg latency, 1091.0 ms max latency.
600000 records sent, 78277.886497 records/sec (19.11 MB/sec), 933.86 ms avg latency, 1864.00 ms max latency, 946 ms 50th, 1411 ms 95th, 1606 ms 99th, 1772 ms 99.9th.
400000 steady state records sent, 83472.454090 records/sec (20.38 MB/sec), 1009.57 ms avg latency, 1864.00 ms max latency, 978 ms 50th, 1421 ms 95th, 1629 ms 99th, 1863 ms 99.9th.
`
/** As kafka-consumer-perf-test 4.4.0 printed it. */
const consumed =
  '2026-11-30 21:29:28:548, 2026-11-30 21:29:34:953, 146.5273, 22.8770, 600176, 93704.2935, 4428, 1977, 74.1160, 303579.1603\n'

const [ours, kafka, syncing] = sides

function measured(load: KafkaLoad, side: Side, round: number, recordsPerSecond: number, p99Ms: number): Measurement {
  const rest = { mibPerSecond: 1, p50Ms: 1, maxMs: 9, cpuMicroseconds: 2.34 }
  return { load, kind: 'produce', side, round, recordsPerSecond, p99Ms, ...rest }
}

describe("what Kafka's tools print", () => {
  test('the figures of a producer are those after its warm-up', () => {
    assert.deepEqual(parseProducer(produced, 600_000), {
      recordsPerSecond: 83472.45409,
      mibPerSecond: 20.38,
      p50Ms: 978,
      p99Ms: 1629,
      maxMs: 1864
    })
  })

  test('a record that was not acknowledged, and a tool that ended early, are errors with its words', () => {
    assert.throws(() => parseProducer(produced, 600_001), /600000 of 600001 records were acknowledged/)
    assert.throws(() => parseProducer('Exception in thread "main"', 1), /printed no result:\nException/)
    assert.throws(() => parseProducer(produced.split('\n').slice(0, 3).join('\n'), 600_000), /printed no result/)
  })

  test('the figures of a consumer leave out the time in which it joined its group', () => {
    assert.deepEqual(parseConsumer(consumed, 600_000), { recordsPerSecond: 303579.1603, mibPerSecond: 74.116 })
  })

  test('records that were not read are an error', () => {
    assert.throws(() => parseConsumer(consumed, 600_177), /600176 of 600177 records were read/)
    assert.throws(() => parseConsumer('WARNING: Exiting before consuming\n', 1), /printed no result/)
  })
})

describe('loads', () => {
  test('each has so many bytes of values beyond its warm-up, and one has a rate', () => {
    const loads = kafkaLoads(500)
    for (const { records, warmUpRecords, recordBytes, rate } of loads.filter(load => load.rate === null)) {
      assert.equal(rate, null)
      assert.ok(Math.abs((records - warmUpRecords) * recordBytes - 500e6) < recordBytes)
    }
    assert.deepEqual(
      loads.map(({ rate }) => rate),
      [null, null, null, null, 10_000]
    )
  })

  test('only Kafka that syncs each batch gets less', () => {
    const [load] = kafkaLoads(256)
    assert.ok(load !== undefined)
    assert.deepEqual([load.records, load.warmUpRecords], [1_200_000, 200_000])
    assert.deepEqual(loadOf(ours, load), load)
    assert.deepEqual(loadOf(kafka, load), load)
    assert.deepEqual(loadOf(syncing, load), { ...load, records: 120_000, warmUpRecords: 20_000 })
  })
})

describe('ratios', () => {
  const loads = kafkaLoads(1)
  const [plain, paced] = [loads[0] as KafkaLoad, loads.at(-1) as KafkaLoad]

  test('pair what was measured in one round, in whatever order that was', () => {
    const all = [
      measured(plain, ours, 1, 100, 10),
      measured(plain, kafka, 1, 50, 20),
      measured(plain, kafka, 2, 200, 40),
      measured(plain, ours, 2, 100, 10)
    ]
    const name = 'produce 256 B, as the client comes, ours ÷ Kafka'
    assert.deepEqual(ratioNotes(loads, all), [
      `${name}: records/s 1.25 [2.00 0.50], at least 1 is wanted: met; p99 0.38 [0.50 0.25]`
    ])
  })

  test('say when less than wanted was reached, and how much was wanted', () => {
    const notes = (rate: number): string[] =>
      ratioNotes(loads, [measured(plain, ours, 1, rate, 1), measured(plain, syncing, 1, 100, 1)])
    assert.match(notes(299).join(), /records\/s 2\.99 \[2\.99\], at least 3 is wanted: missed/)
    assert.match(notes(300).join(), /at least 3 is wanted: met/)
  })

  test('of a load with a rate are those of its latency alone', () => {
    const notes = ratioNotes(loads, [measured(paced, ours, 1, 10_000, 3), measured(paced, kafka, 1, 9999, 6)])
    assert.deepEqual(notes, ['produce 256 B, 10000 records/s, ours ÷ Kafka: p99 0.50 [0.50]'])
  })

  test('rows name load, broker and round, and keep what nobody could tell empty', () => {
    assert.deepEqual(
      rowOf({ ...measured(plain, kafka, 2, 10.4, 7), kind: 'consume', p50Ms: null, cpuMicroseconds: null }),
      ['consume 256 B, as the client comes', 'Kafka', 2, 10, 1, null, 7, 9, null]
    )
  })
})

describe('Java', () => {
  /** Runs with an empty folder as the whole PATH. */
  async function withoutPrograms(t: { after(undo: () => void): void }, act: () => Promise<void> | void): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
    const path = process.env['PATH']
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    process.env['PATH'] = folder
    try {
      await act()
    } finally {
      process.env['PATH'] = path
    }
  }

  test('that is missing is said before anything is measured', async t => {
    await withoutPrograms(t, () => {
      assert.throws(requireJava, /needs a JDK \(17 or later\) and Maven: 'java' could not be run/)
    })
  })

  test('a program that fails is an error that names it', async t => {
    await withoutPrograms(t, async () => {
      await assert.rejects(new JavaPrograms('none').run(['a.Tool'], 60_000), /^Error: a\.Tool ended with code ENOENT/)
    })
  })
})
