/** The load generator's ES01 and HTTP drivers against a broker in memory. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import type { DriverConnection, DriverListener } from '../../../native-free-bench/drivers/driver.ts'
import { parseAddress } from '../../../native-free-bench/drivers/driver.ts'
import { connectEs01Driver } from '../../../native-free-bench/drivers/es01.ts'
import { connectHttpDriver } from '../../../native-free-bench/drivers/http.ts'
import { encodeEs01Produce, encodeHttpProduce } from '../../../native-free-bench/drivers/records.ts'
import { startFakeBroker } from './fake-broker.ts'
import type { FakeBroker, FakeOptions } from './fake-broker.ts'

const shape = { topic: 'load', records: 3, valueBytes: 40, keyed: false }

/** What a connection said, and a way to wait until it said so much. */
class Heard implements DriverListener {
  readonly events: string[] = []
  #wake: (() => void) | null = null

  onAnswer(connection: DriverConnection, slot: number): void {
    const { records, nextOffset, highWatermark } = connection.answer
    this.#add(`slot ${slot}: ${records} next ${nextOffset} of ${highWatermark}`)
  }

  onRefused(_connection: DriverConnection, slot: number, message: string): void {
    this.#add(`slot ${slot} refused: ${message}`)
  }

  onLost(_connection: DriverConnection, error: Error): void {
    this.#add(`lost: ${error.message}`)
  }

  async until(count: number): Promise<void> {
    while (this.events.length < count) await new Promise<void>(resolve => (this.#wake = resolve))
  }

  #add(event: string): void {
    this.events.push(event)
    this.#wake?.()
  }
}

async function openEs01(
  t: TestContext,
  options: FakeOptions,
  slotCount: number
): Promise<{ broker: FakeBroker; heard: Heard; connection: DriverConnection }> {
  const broker = await startFakeBroker(t, options)
  const heard = new Heard()
  const connection = await connectEs01Driver({ address: broker.es01, index: 0, slotCount, listener: heard })
  t.after(() => connection.close())
  for (let slot = 0; slot < slotCount; slot++) connection.prepareProduce(slot, encodeEs01Produce(shape, slot + 1))
  return { broker, heard, connection }
}

describe('ES01 driver', () => {
  test('every record of a request reaches the partition that the request was sent to', async t => {
    const { broker, heard, connection } = await openEs01(t, {}, 1)
    connection.produce(0, 7)
    await heard.until(1)
    connection.produce(0, 300)
    await heard.until(2)
    assert.deepEqual(
      [...broker.logs].map(([name, log]) => [name, log.length]),
      [
        ['load/7', 3],
        ['load/300', 3]
      ]
    )
    assert.equal(broker.logs.get('load/7')?.[0]?.value.length, 40)
    assert.equal(broker.logs.get('load/7')?.[0]?.key, null)
  })

  test('answers in any order and in pieces of one byte go to the slots that asked', async t => {
    const { broker, heard, connection } = await openEs01(t, { reversedInPiecesOf: 1 }, 4)
    for (let slot = 0; slot < 4; slot++) connection.produce(slot, slot)
    await heard.until(4)
    assert.deepEqual(heard.events.map(event => event.slice(0, 9)).toSorted(), [
      'slot 0: 3',
      'slot 1: 3',
      'slot 2: 3',
      'slot 3: 3'
    ])
    assert.equal(new Set(broker.requestIds).size, 4)
  })

  test('a slot never uses the id of its last request again', async t => {
    const { broker, heard, connection } = await openEs01(t, {}, 1)
    for (let i = 1; i <= 5; i++) {
      connection.produce(0, 0)
      await heard.until(i)
    }
    assert.equal(new Set(broker.requestIds).size, 5)
  })

  test('a consume tells where to read next and where the end is', async t => {
    const { heard, connection } = await openEs01(t, { readRecordsMax: 2 }, 1)
    connection.prepareConsume(0, { topic: 'load', maxRecords: 100, maxBytes: 1000 })
    connection.produce(0, 1)
    await heard.until(1)
    connection.consume(0, 1, 0)
    await heard.until(2)
    connection.consume(0, 1, 3)
    await heard.until(3)
    assert.deepEqual(heard.events.slice(1), ['slot 0: 2 next 2 of 3', 'slot 0: 0 next 3 of 3'])
  })

  test('a refusal carries the whole message, short or long, also in pieces', async t => {
    for (const refuseWith of ['no', 'not found: '.padEnd(300, 'x')]) {
      for (const reversedInPiecesOf of [0, 7]) {
        const { heard, connection } = await openEs01(t, { refuseWith, reversedInPiecesOf }, 1)
        connection.produce(0, 0)
        await heard.until(1)
        assert.deepEqual(heard.events, [`slot 0 refused: ${refuseWith}`])
      }
    }
  })

  test('a connection that is cut with requests in flight is reported once', async t => {
    const { heard, connection } = await openEs01(t, { cutAfterRequests: 1 }, 2)
    connection.produce(0, 0)
    await heard.until(1)
    connection.produce(0, 0)
    connection.produce(1, 0)
    await heard.until(2)
    assert.match(heard.events[1] ?? '', /^lost: /)
    assert.equal(heard.events.length, 2)
  })

  test('an answer to a request that is not in flight ends the connection', async t => {
    const { heard, connection } = await openEs01(t, { wrongIdBy: 64 }, 1)
    connection.produce(0, 0)
    await heard.until(1)
    assert.match(heard.events[0] ?? '', /^lost: .*not in flight/)
  })

  test('a refused hello is an error at connecting, with its status', async t => {
    const broker = await startFakeBroker(t, { helloStatus: 3 })
    const listener = new Heard()
    await assert.rejects(connectEs01Driver({ address: broker.es01, index: 0, slotCount: 1, listener }), /status 3/)
    assert.deepEqual(listener.events, [])
  })
})

describe('HTTP driver', () => {
  async function openHttp(
    t: TestContext,
    options: FakeOptions
  ): Promise<{ broker: FakeBroker; heard: Heard; connection: DriverConnection }> {
    const broker = await startFakeBroker(t, options)
    const heard = new Heard()
    const connection = await connectHttpDriver({ address: broker.http, index: 0, slotCount: 1, listener: heard })
    t.after(() => connection.close())
    connection.prepareProduce(0, encodeHttpProduce(shape, 1, 'fake'))
    connection.prepareConsume(0, { topic: 'load', maxRecords: 10_000, maxBytes: 1024 * 1024 })
    return { broker, heard, connection }
  }

  test('partitions of one to five digits are patched into valid JSON', async t => {
    const { broker, heard, connection } = await openHttp(t, {})
    const partitions = [0, 12, 9999, 345, 10_000]
    for (const [i, partition] of partitions.entries()) {
      connection.produce(0, partition)
      await heard.until(i + 1)
    }
    assert.deepEqual(
      [...broker.logs.keys()],
      partitions.map(partition => `load/${partition}`)
    )
    assert.deepEqual(
      [...broker.logs.values()].map(log => log.length),
      [3, 3, 3, 3, 3]
    )
  })

  test('a consume tells where to read next, also when the answer is large', async t => {
    const { broker, heard, connection } = await openHttp(t, {})
    broker.logs.set(
      'load/0',
      Array.from({ length: 9000 }, (_, i) => ({ key: `k${i}`, value: 'v'.repeat(100) }))
    )
    connection.consume(0, 0, 0)
    await heard.until(1)
    connection.consume(0, 0, 8999)
    await heard.until(2)
    assert.deepEqual(heard.events, ['slot 0: 9000 next 9000 of 9000', 'slot 0: 1 next 9000 of 9000'])
  })

  test('a refusal carries status and message', async t => {
    const { heard, connection } = await openHttp(t, { refuseWith: 'too busy' })
    connection.produce(0, 0)
    await heard.until(1)
    assert.deepEqual(heard.events, ['slot 0 refused: 400 {"error":"too busy"}'])
  })

  test('keyed requests leave the partition to the broker', () => {
    const template = encodeHttpProduce({ ...shape, keyed: true }, 1, 'fake')
    const body = template.bytes.toString().split('\r\n\r\n')[1] ?? ''
    const { records } = JSON.parse(body) as { records: { key: string; partition?: number }[] }
    assert.equal(template.partitionPositions.length, 0)
    assert.ok(records.every(record => /^key-\d{6}$/.test(record.key) && record.partition === undefined))
    assert.equal(template.payloadBytes, 3 * 50)
  })
})

test('addresses are read with and without scheme and brackets, and wrong ones are refused', () => {
  assert.deepEqual(parseAddress('127.0.0.1:9000'), { host: '127.0.0.1', port: 9000 })
  assert.deepEqual(parseAddress('http://[::1]:9001/'), { host: '::1', port: 9001 })
  for (const wrong of ['localhost', 'localhost:0', 'localhost:70000', ':9000', '']) {
    assert.throws(() => parseAddress(wrong), /is not an address/)
  }
})
