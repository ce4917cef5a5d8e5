/** Section 12: the rows on order and ends, and the sentences under its table. */
import assert from 'node:assert/strict'
import { opcodes } from '../../src/wire/es01/frame.ts'
import { startBroker } from '../support/broker.ts'
import { openRaw, range } from '../support/es01-session.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { resultOf } from './es01-outcomes.ts'
import { closedInSilence, consume, greet, hex, ping, produce, type Es01Stage } from './es01-stage.ts'
import type { Row } from './row.ts'

const good = { value: 'v', partition: 0 }

const order: readonly Row<Es01Stage>[] = [
  {
    line: 'client half-closes',
    fact: 'requests in progress finish and their answers are delivered',
    sent: 'forty produces and the end of the stream in one write',
    expected: 'forty answers, then the end',
    async check({ open }, t) {
      const client = await greet(t, open)
      client.socket.end(Buffer.concat(range(40).map(id => produce(id, [good]))))
      const answers = await client.frames(40)
      assert.ok(answers.every(({ opcode }) => opcode === opcodes.produced))
      await closedInSilence(client)
      assert.ok(client.hasEnded)
    }
  },
  {
    line: 'two pipelined produces to one topic',
    fact: 'executed in arrival order; offsets increase accordingly',
    sent: 'forty produces to both partitions of a topic in one write',
    expected: 'in each partition the offsets of the answers rise with the ids',
    async check({ open }, t) {
      const client = await greet(t, open)
      client.send(Buffer.concat(range(40).map(id => produce(id, [{ value: `${id}`, partition: id % 2 }]))))
      const answers = (await client.frames(40)).sort((a, b) => a.id - b.id)
      for (const partition of [0, 1]) {
        const offsets = answers.map(({ payload }) => resultOf(payload)).filter(result => result.partition === partition)
        assert.deepEqual(
          offsets.map(({ offset }) => offset),
          range(20, offsets[0]?.offset)
        )
      }
    }
  },
  {
    line: 'produce + consume, or different topics',
    fact: 'concurrent; answers may arrive in any order, matched by request_id',
    sent: 'produces to two topics, consumes of a third and pings, sixty in one write',
    expected: 'sixty answers, each under its id with the opcode of its request',
    async check({ open, api }, t) {
      await api.createTopic('third')
      const client = await greet(t, open)
      const frames = range(60).map(
        id =>
          [produce(id, [good]), produce(id, [good], { topic: 'other' }), consume(id, { topic: 'third' }), ping(id)][
            id % 4
          ] as Buffer
      )
      client.send(Buffer.concat(frames))
      const answers = (await client.frames(60)).sort((a, b) => a.id - b.id)
      assert.deepEqual(
        answers.map(({ id, opcode }) => [id, opcode]),
        frames.map((frame, id) => [id, (frame[8] as number) | 0x80])
      )
    }
  },
  {
    line: 'duplicate request_ids',
    fact: 'not checked, echoed',
    sent: 'three produces and a ping under one id',
    expected: 'four answers under that id',
    async check({ open }, t) {
      const client = await greet(t, open)
      client.send(Buffer.concat([produce(7, [good]), produce(7, [good]), ping(7), produce(7, [good])]))
      const answers = await client.frames(4)
      assert.deepEqual(answers.map(({ id, opcode }) => [id, opcode]).sort(), [
        [7, opcodes.produced],
        [7, opcodes.produced],
        [7, opcodes.produced],
        [7, opcodes.pong]
      ])
    }
  },
  {
    line: 'broker shutdown',
    fact: 'connections closed',
    sent: 'a produce, then the broker is stopped',
    expected: 'its answer, then the end; also for a connection that is idle and one before its hello',
    async check(_, t) {
      const broker = await startBroker(t)
      await new HttpApi(broker.url).createTopic('orders', 2)
      const [busy, idle, fresh] = [await greet(t, broker), await greet(t, broker), await openRaw(t, broker.es01)]
      busy.send(produce(1, [good]))
      assert.equal((await busy.frame()).opcode, opcodes.produced)
      const stopped = broker.stop()
      for (const client of [busy, idle, fresh]) await closedInSilence(client)
      await stopped
    }
  }
]

const sentences: readonly Row<Es01Stage>[] = [
  {
    line: 'Every error frame has opcode 0xFF',
    fact: "the request's id and a UTF-8 message",
    sent: 'a consume of the topic ö under the id 2^32 − 1',
    expected: '0xFF under that id, a message that is UTF-8 and names it',
    async check({ open }, t) {
      const client = await greet(t, open)
      client.send(consume(0xffff_ffff, { topic: 'ö' }))
      const { id, opcode, payload } = await client.frame()
      assert.deepEqual([id, opcode], [0xffff_ffff, 0xff])
      assert.match(new TextDecoder('utf-8', { fatal: true }).decode(payload), /ö/)
    }
  },
  {
    line: 'Same dedupe state, quotas and groups as HTTP',
    fact: 'a sequence sent over HTTP is a duplicate over binary',
    sent: 'sequence 0 over HTTP and over ES01, then 1 over ES01 and over HTTP',
    expected: 'the second of each is a duplicate of the first',
    async check({ open, api }, t) {
      const client = await greet(t, open)
      const overHttp = async (sequence: number): Promise<unknown> => {
        const records = [{ value: 'v', partition: 0, sequence }]
        const answer = await api.post('/topics/orders/produce', { producer_id: 'both', records })
        return parse<{ results: unknown[] }>(answer).results[0]
      }
      const overEs01 = async (sequence: bigint): Promise<ReturnType<typeof resultOf>> => {
        client.send(produce(1, [{ ...good, sequence }], { producerId: 'both' }))
        return resultOf((await client.frame()).payload)
      }
      const [offset = 0] = await api.ends('orders')
      assert.deepEqual(await overHttp(0), { partition: 0, offset })
      assert.deepEqual(await overEs01(0n), { partition: 0, offset, duplicate: true })
      assert.deepEqual(await overEs01(1n), { partition: 0, offset: offset + 1, duplicate: false })
      assert.deepEqual(await overHttp(1), { partition: 0, offset: offset + 1, duplicate: true })
    }
  },
  {
    line: 'Text produced over HTTP is byte-identical over binary and vice versa',
    fact: '(base64 on HTTP)',
    sent: 'a text over HTTP, the same text and bytes that are no text over ES01',
    expected: 'the bytes of the text over ES01, the text over HTTP, base64 of the bytes over HTTP',
    async check({ open, api }, t) {
      const text = 'naïve ☃ \u0000 "quoted"'
      const raw = hex('00ff80c0')
      const client = await greet(t, open)
      const [result] = await api.produce('orders', [{ value: text, partition: 0 }])
      client.send(
        produce(1, [
          { value: text, partition: 0 },
          { value: raw, partition: 0 }
        ])
      )
      await client.frame()
      const offset = result?.offset ?? 0
      client.send(consume(2, { offset, maxRecords: 1 }))
      assert.deepEqual((await client.frame()).payload.subarray(20 + 28), Buffer.from(text))
      const { records } = await api.consume('orders', 0, `offset=${offset}&max_records=2`)
      assert.deepEqual(
        records.map(({ value }) => value),
        [text, text]
      )
      const packed64 = await api.consume('orders', 0, `offset=${offset + 2}&max_records=1&encoding=base64`)
      assert.equal(packed64.records[0]?.value, raw.toString('base64'))
    }
  }
]

export const orderRows: readonly Row<Es01Stage>[] = [...order, ...sentences]
