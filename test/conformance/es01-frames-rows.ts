/** Section 12: the rows on frames that are no frames, and on payloads that cannot be read. */
import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { encodeFrame, opcodes } from '../../src/wire/es01/frame.ts'
import { startBroker } from '../support/broker.ts'
import { range } from '../support/es01-session.ts'
import { closes, refused } from './es01-outcomes.ts'
import { closedInSilence, consume, greet, hex, packed, ping, produce, type Es01Stage } from './es01-stage.ts'
import type { Row } from './row.ts'

const MIB = 1024 * 1024
const UNFIT = 'payload too short / bad count / bad gzip / non-UTF-8 topic'
const FRAME_LENGTH = 'frame length < 5 or > max(16 MiB, max_record_bytes + 1 MiB)'
const good = { value: 'v', partition: 0 }
const produceOf = (payload: Buffer): Buffer => encodeFrame(0, opcodes.produce, payload)
const record = '00000000 8000000000000000'

const framing: readonly Row<Es01Stage>[] = [
  ...['00000000', '00000004'].map(length =>
    closes(FRAME_LENGTH, '**closed, no frame**', `length 0x${length}`, hex(length, '00000001 03'))
  ),
  closes(FRAME_LENGTH, '**closed, no frame**', 'length 16 MiB + 1', hex('01000001 00000001 03')),
  closes(FRAME_LENGTH, '**closed, no frame**', 'length 2^32 − 1', hex('ffffffff 00000001 03')),
  {
    line: FRAME_LENGTH,
    fact: '**closed, no frame**',
    sent: 'a ping of exactly 16 MiB',
    expected: 'a pong: the limit itself is within it',
    async check({ open }, t) {
      const client = await greet(t, open)
      client.send(ping(9, Buffer.alloc(16 * MIB - 5)))
      assert.equal((await client.frame()).opcode, opcodes.pong)
    }
  },
  {
    line: FRAME_LENGTH,
    fact: '**closed, no frame**',
    sent: 'to a broker with max_record_bytes 32 MiB: pings of 33 MiB, and one byte more',
    expected: 'a pong, then closed',
    async check(_, t) {
      const broker = await startBroker(t, { flags: { '--max-record-bytes': '32MiB' } })
      const client = await greet(t, broker)
      client.send(ping(9, Buffer.alloc(33 * MIB - 5)))
      assert.equal((await client.frame()).opcode, opcodes.pong)
      client.send(hex('02100001 00000001 03'))
      await closedInSilence(client)
    }
  },
  ...['00', '04', '7f', '80', '84', 'fe'].map(opcode =>
    closes('unknown opcode byte', '**closed, no frame**', `opcode 0x${opcode}`, hex(`00000005 00000001 ${opcode}`))
  ),
  refused(
    {
      line: 'a response opcode (0x81…0x83, 0xFF) sent as request',
      fact: 'error frame, stays open',
      sent: 'opcodes 0x81, 0x82, 0x83, 0xff'
    },
    /^bad request: /,
    () => [0x81, 0x82, 0x83, 0xff].map(opcode => encodeFrame(0, opcode, hex('0000')))
  )
]

const malformed: readonly Row<Es01Stage>[] = [
  refused(
    {
      line: UNFIT,
      fact: 'error frame `decode: …`',
      sent: 'a produce and a consume, cut at every byte of their payloads'
    },
    /^decode: /,
    () =>
      [produce(0, [{ key: 'k', value: 'v', partition: 0 }]), consume(0)].flatMap(frame =>
        range(frame.length - 9).map(length => encodeFrame(0, frame[8] as number, frame.subarray(9, 9 + length)))
      )
  ),
  refused(
    { line: UNFIT, fact: 'non-UTF-8 topic', sent: 'the topic c0 80 in a produce and in a consume' },
    /^decode: .*UTF-8/,
    () => [
      produceOf(hex('0002 c080 ffffffff 00000000')),
      encodeFrame(0, opcodes.consume, hex('0002 c080 00000000 0000000000000000 00000001 00000001'))
    ]
  ),
  refused(
    {
      line: UNFIT,
      fact: 'bad count',
      sent: 'counts of 2 and 2^32 − 1 before one record; key_len and value_len beyond the payload'
    },
    /^decode: /,
    () =>
      [
        `00000002 ffffffff 00000001 76 ${record}`,
        `ffffffff ffffffff 00000001 76 ${record}`,
        `00000001 7fffffff 00000001 76 ${record}`,
        `00000001 ffffffff ffffffff 76 ${record}`
      ].map(rest => produceOf(hex('0006 6f7264657273 ffffffff', rest)))
  ),
  {
    line: UNFIT,
    fact: 'a lying record count must not allocate',
    sent: '1,000 produces of 18 bytes that announce 2^32 − 1 records',
    expected: '1,000 error frames; buffers grew by less than 8 MiB',
    async check({ open }, t) {
      const client = await greet(t, open)
      const lie = produceOf(hex('0006 6f7264657273 ffffffff ffffffff'))
      const before = process.memoryUsage().arrayBuffers
      let most = 0
      for (let round = 0; round < 10; round++) {
        client.send(Buffer.concat(Array.from({ length: 100 }, () => lie)))
        for (const { opcode } of await client.frames(100)) assert.equal(opcode, opcodes.error)
        most = Math.max(most, process.memoryUsage().arrayBuffers - before)
      }
      // A single table for what is announced would take 16 GiB.
      assert.ok(most < 8 * MIB, `${most} bytes`)
    }
  },
  refused(
    {
      line: UNFIT,
      fact: 'bad gzip',
      sent: 'with gzip: no gzip at all, a torn stream, a wrong checksum'
    },
    /^decode: /,
    () => {
      const stream = gzipSync(produce(0, [good]).subarray(9))
      const wrong = Buffer.from(stream)
      wrong.writeUInt32BE((wrong.readUInt32BE(wrong.length - 8) ^ 1) >>> 0, wrong.length - 8)
      return [produce(0, [good]), produceOf(stream.subarray(0, -9)), produceOf(wrong)]
    },
    1
  ),
  refused(
    {
      line: 'inflates to more than the frame limit',
      fact: 'error frame, stays open',
      sent: 'with gzip: 64 MiB of zeros behind the topic, in 64 KiB'
    },
    /^decode: .*\d/,
    () => [packed(produceOf(Buffer.concat([produce(0, [good]).subarray(9), Buffer.alloc(64 * MIB)])))],
    1
  )
]

export const frameRows: readonly Row<Es01Stage>[] = [...framing, ...malformed]
