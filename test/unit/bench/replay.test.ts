/** A whole replay against a broker in memory that is cut off half-way; and brokers that lose or double, which it must see. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import type { BrokerProcess } from '../../../native-free-bench/broker-process.ts'
import { Ledger } from '../../../native-free-bench/demo/ledger.ts'
import { readFrom, replay } from '../../../native-free-bench/demo/replay.ts'
import type { DemoBroker, ReplaySummary } from '../../../native-free-bench/demo/replay.ts'
import { openSide, sideNames } from '../../../native-free-bench/demo/sides.ts'
import type { SideName } from '../../../native-free-bench/demo/sides.ts'
import { Mismatch, verifyPartition } from '../../../native-free-bench/demo/verify.ts'
import { startFakeBroker } from './fake-broker.ts'
import type { FakeBroker, FakeRecord } from './fake-broker.ts'

const records = Array.from({ length: 2000 }, (_, i) => ({ key: `key-${i % 23}`, value: `{"number":${i % 50}}` }))
const partitions = 6

/** Logs survive a kill; `onRestart` may do to them what a broker must not. */
class FakeDemoBroker implements DemoBroker {
  readonly #t: TestContext
  readonly #logs = new Map<string, FakeRecord[]>()
  readonly #onRestart: (logs: Map<string, FakeRecord[]>) => void
  #fake: FakeBroker | null = null
  kills = 0

  constructor(t: TestContext, onRestart: (logs: Map<string, FakeRecord[]>) => void = () => {}) {
    this.#t = t
    this.#onRestart = onRestart
  }

  get current(): BrokerProcess {
    const fake = this.#fake
    assert.ok(fake !== null)
    const unused = (): Promise<never> => Promise.reject(new Error('not part of the fake'))
    const addresses = { http: fake.http, es01: fake.es01 }
    return { pid: -1, addresses, kafkaAddress: null, readyMs: 0, filledBytes: () => 0, stop: unused, kill: unused }
  }

  async start(): Promise<void> {
    this.#fake = await startFakeBroker(this.#t, { logs: this.#logs, partitions, readRecordsMax: 100 })
  }

  async kill(): Promise<void> {
    this.kills++
    await this.#fake?.stop()
  }

  async restart(): Promise<void> {
    this.#onRestart(this.#logs)
    await this.start()
  }
}

async function runReplay(broker: FakeDemoBroker, side: SideName): Promise<{ ledger: Ledger; summary: ReplaySummary }> {
  await broker.start()
  const ledger = new Ledger(records, partitions)
  const summary = await replay({
    broker,
    side,
    topic: 't',
    ledger,
    laneCount: 3,
    batchRecords: 20,
    onProgress: () => {}
  })
  return { ledger, summary }
}

describe('a replay', () => {
  for (const side of sideNames) {
    test(`over ${side} survives a kill with requests in flight, and every record is there once and in order`, async t => {
      const broker = new FakeDemoBroker(t)
      const { ledger, summary } = await runReplay(broker, side)
      assert.equal(broker.kills, 1)
      const { kill } = summary
      assert.ok(kill !== null && kill.requestsInFlight > 0 && kill.doubtful > 0 && kill.found <= kill.doubtful)
      assert.ok(kill.settledBefore >= records.length / 2 && kill.settledBefore < records.length)
      for (const reader of sideNames) {
        const connection = await openSide(reader, broker.current.addresses)
        for (let partition = 0; partition < partitions; partition++) {
          const { records: read } = await readFrom(connection, 't', partition, 0)
          verifyPartition(`t/${partition}`, ledger.expected(partition), read)
        }
        await connection.close()
      }
    })
  }

  test('notices a broker that lost an acknowledged record over the kill', async t => {
    const broker = new FakeDemoBroker(t, logs => {
      // More than can be doubtful in one partition, so that acknowledged ones are among them.
      for (const log of logs.values()) log.splice(log.length - 150)
    })
    await assert.rejects(
      runReplay(broker, 'ES01'),
      error => error instanceof Mismatch && /were acknowledged/.test(error.message)
    )
  })

  test('notices a broker that doubled a record over the kill', async t => {
    const broker = new FakeDemoBroker(t, logs => {
      for (const log of logs.values()) log.push(...log.slice(-100))
    })
    await assert.rejects(runReplay(broker, 'HTTP'), Mismatch)
  })
})
