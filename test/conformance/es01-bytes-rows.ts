/** Section 11, bytes of the binary protocol: the rows. */
import assert from 'node:assert/strict'
import { gunzipSync } from 'node:zlib'
import { encodeFrame, opcodes } from '../../src/wire/es01/frame.ts'
import { encodeHello } from '../../src/wire/es01/handshake.ts'
import { makeTestKey, revokeKey } from '../support/access.ts'
import { openRaw } from '../support/es01-session.ts'
import {
  closedInSilence,
  consume,
  goesOn,
  greet,
  hex,
  offered,
  packed,
  ping,
  produce,
  replyTo,
  sendAndArrive,
  type Es01Stage
} from './es01-stage.ts'
import type { Row } from './row.ts'

/** Topic `orders`, no producer id: how most produce payloads below begin. */
const toOrders = '0006 6f7264657273 ffffffff'
const noSequence = '8000000000000000'
const producePayload = (...parts: readonly string[]): Buffer => encodeFrame(1, opcodes.produce, hex(...parts))

/** A hello that is refused: its status, and the end of the connection, whatever comes behind it. */
function refusedHello(fact: string, sent: string, status: 1 | 2 | 3, hello: () => Buffer): Row<Es01Stage> {
  const expected = `status ${status}, features 0, a message; closed`
  return {
    line: '11.2',
    fact,
    sent,
    expected,
    async check({ guarded }, t) {
      const client = await openRaw(t, guarded.broker.es01)
      client.send(Buffer.concat([hello(), ping(1)]))
      const reply = await replyTo(client)
      assert.deepEqual([reply.status, reply.features], [status, 0])
      assert.notEqual(reply.message, '')
      await closedInSilence(client)
    }
  }
}

/** A produce to `orders` that is answered by one result at that partition. */
function producedAt(
  row: Pick<Row<Es01Stage>, 'line' | 'fact' | 'sent'>,
  frame: Buffer,
  partition: number
): Row<Es01Stage> {
  return {
    ...row,
    expected: `0x81, one record at partition ${partition}`,
    async check({ open, api }, t) {
      const [before = 0] = (await api.ends('orders')).slice(partition)
      const client = await greet(t, open)
      client.send(frame)
      const answer = await client.frame()
      assert.equal(answer.opcode, opcodes.produced, answer.payload.toString())
      assert.equal(answer.payload.readUInt32BE(0), 1)
      assert.equal(answer.payload.readUInt32BE(4), partition)
      assert.equal(answer.payload.readBigUInt64BE(8), BigInt(before))
      assert.equal(answer.payload.length, 4 + 13)
    }
  }
}

export const bytesRows: readonly Row<Es01Stage>[] = [
  {
    line: '11.1',
    fact: 'the reply is sent only after all of it arrived',
    sent: 'a hello but its last byte, then that',
    expected: 'nothing, then magic, status, features, msg_len, msg',
    async check({ open, api }, t) {
      const client = await openRaw(t, open.es01)
      const hello = encodeHello('token', 0)
      await sendAndArrive(api, client, hello.subarray(0, 12))
      await sendAndArrive(api, client, hello.subarray(12, -1))
      assert.equal(client.restBytes, 0)
      client.send(hello.subarray(-1))
      assert.deepEqual(await client.take(13), hex('45533031 00 00000000 00000000'))
    }
  },
  {
    line: '11.2',
    fact: 'status 0: msg empty, features = requested ∩ {0x1}; unknown bits silently dropped',
    sent: 'features 0, 1, 2 and 0xffffffff',
    expected: 'what was asked for of what is there, no message',
    async check({ open, guarded, writer }, t) {
      for (const [broker, token] of [
        [open, ''],
        [guarded.broker, writer.secret]
      ] as const) {
        for (const requested of [0, 1, 2, 0xffff_ffff]) {
          const client = await openRaw(t, broker.es01)
          client.send(encodeHello(token, requested))
          const features = (requested & offered) >>> 0
          assert.deepEqual(await replyTo(client), { status: 0, features, message: '' })
        }
      }
    }
  },
  refusedHello('1: wrong magic', 'the magic ES02', 1, () => hex('45533032 00000000 00000000')),
  refusedHello('Wrong magic wins over token_len', 'the magic ES02 and token_len 1025', 1, () =>
    hex('45533032 00000000 00000401')
  ),
  refusedHello('2: unknown', 'a token that no key has', 2, () => encodeHello('esk_unknown', 0)),
  refusedHello('token_len > 1024 (token not read)', 'token_len 1025', 2, () => hex('45533031 00000000 00000401')),
  refusedHello('token_len > 1024', 'token_len 2^32 − 1', 2, () => hex('45533031 00000000 ffffffff')),
  refusedHello('3: auth on and token empty', 'no token', 3, () => encodeHello('', 0)),
  refusedHello('(or not UTF-8)', 'the token ff fe', 3, () => hex('45533031 00000000 00000002 fffe')),
  {
    line: '11.2',
    fact: 'unknown/revoked token',
    sent: 'the token of a key that was revoked',
    expected: 'status 2; closed',
    async check({ guarded: { broker, admin } }, t) {
      const { id, secret } = await makeTestKey(admin.api, 'read:orders')
      await revokeKey(admin.api, id)
      const client = await openRaw(t, broker.es01)
      client.send(encodeHello(secret, 0))
      assert.equal((await replyTo(client)).status, 2)
      await closedInSilence(client)
    }
  },
  {
    line: '11.2',
    fact: 'token_len > 1024',
    sent: 'a token of 1024 bytes while auth is off',
    expected: 'status 0: the limit itself is within it',
    async check({ open }, t) {
      await goesOn(await greet(t, open, 'x'.repeat(1024)))
    }
  },
  {
    line: '11.3',
    fact: 'any token accepted',
    sent: 'a token of no key, and one that is no UTF-8, while auth is off',
    expected: 'status 0',
    async check({ open }, t) {
      for (const hello of [encodeHello('esk_nobody', 0), hex('45533031 00000000 00000002 fffe')]) {
        const client = await openRaw(t, open.es01)
        client.send(hello)
        assert.equal((await replyTo(client)).status, 0)
        await goesOn(client)
      }
    }
  },
  {
    line: '11.4',
    fact: 'counts request_id + opcode + payload',
    sent: 'a ping whose length is 5, and one of 7 with two bytes of payload',
    expected: 'two pongs whose length is 5',
    async check({ open }, t) {
      const client = await greet(t, open)
      client.send(hex('00000005 00000001 03', '00000007 00000002 03 abcd'))
      assert.deepEqual(await client.take(18), hex('00000005 00000001 83', '00000005 00000002 83'))
    }
  },
  ...['ffffffff', 'fffffffe', '80000000'].map(length =>
    producedAt(
      { line: '11.5', fact: 'any negative value = none', sent: `key_len and producer_id_len 0x${length}` },
      producePayload(`0006 6f7264657273 ${length} 00000001`, `${length} 00000001 76 00000001 ${noSequence}`),
      1
    )
  ),
  ...['ffffffff', 'ffffff9c', '80000000'].map(partition =>
    producedAt(
      {
        line: '11.5',
        fact: 'Negative lengths / partition: any negative value = none',
        sent: `partition 0x${partition}, key user-2`
      },
      producePayload(`${toOrders} 00000001`, `00000006 757365722d32 00000001 76 ${partition} ${noSequence}`),
      1
    )
  ),
  ...['8000000000000000', 'ffffffffffffffff', '0000000000000007'].map(sequence =>
    producedAt(
      { line: '11.5', fact: '`sequence` i64::MIN = none', sent: `sequence 0x${sequence} without a producer id` },
      producePayload(`${toOrders} 00000001`, `ffffffff 00000001 76 00000000 ${sequence}`),
      0
    )
  ),
  {
    line: '11.5',
    fact: 'other negatives with a producer id → error frame',
    sent: 'sequence −1 and i64::MIN + 1 with a producer id',
    expected: 'an error frame each; nothing written',
    async check({ open, api }, t) {
      const before = await api.ends('orders')
      const client = await greet(t, open)
      for (const [id, sequence] of [-1n, -(2n ** 63n) + 1n].entries()) {
        client.send(produce(id, [{ value: 'v', partition: 0, sequence }], { producerId: 'negative' }))
        assert.match(await client.errorText(id), /^bad request: .*sequence/)
      }
      assert.deepEqual(await api.ends('orders'), before)
      await goesOn(client)
    }
  },
  {
    line: '11.6',
    fact: 'Topic and producer id must be UTF-8',
    sent: 'the topic ff, then the producer id ff',
    expected: 'an error frame each that says UTF-8',
    async check({ open }, t) {
      const client = await greet(t, open)
      const record = `ffffffff 00000001 76 00000000 ${noSequence}`
      for (const payload of [
        `0001 ff ffffffff 00000001 ${record}`,
        `0006 6f7264657273 00000001 ff 00000001 ${record}`
      ]) {
        client.send(producePayload(payload))
        assert.match(await client.errorText(1), /^decode: .*UTF-8/)
      }
      await goesOn(client)
    }
  },
  {
    line: '11.6',
    fact: 'keys/values raw',
    sent: 'a key and a value of all 256 bytes',
    expected: 'the same bytes by a consume',
    async check({ open, api }, t) {
      const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
      const [offset = 0] = await api.ends('orders')
      const client = await greet(t, open)
      client.send(produce(1, [{ key: all, value: all, partition: 0 }]))
      assert.equal((await client.frame()).opcode, opcodes.produced)
      client.send(consume(2, { offset }))
      const { payload } = await client.frame()
      const fields = payload.subarray(20 + 20)
      assert.deepEqual([fields.readInt32BE(0), fields.readUInt32BE(4 + 256), fields.length], [256, 256, 8 + 512])
      assert.deepEqual([fields.subarray(4, 260), fields.subarray(264)], [all, all])
    }
  },
  producedAt(
    { line: '11.7', fact: 'are ignored', sent: 'a produce with three bytes behind its last record' },
    producePayload(`${toOrders} 00000001`, `ffffffff 00000001 76 00000000 ${noSequence} beef00`),
    0
  ),
  {
    line: '11.7',
    fact: 'Trailing bytes after a well-formed payload',
    sent: 'a consume with three bytes behind it',
    expected: '0x82',
    async check({ open }, t) {
      const client = await greet(t, open)
      client.send(encodeFrame(4, opcodes.consume, Buffer.concat([consume(4).subarray(9), hex('ffffff')])))
      assert.equal((await client.frame()).opcode, opcodes.consumed)
    }
  },
  {
    line: '11.8',
    fact: '(0 → 1)',
    sent: 'max_records 0, then max_bytes 0, where two records are',
    expected: 'one record each',
    async check({ open, api }, t) {
      const { length } = await api.produce('other', [{ value: 'a' }, { value: 'b' }])
      assert.equal(length, 2)
      const client = await greet(t, open)
      for (const wanted of [{ maxRecords: 0 }, { maxBytes: 0 }]) {
        client.send(consume(1, { topic: 'other', ...wanted }))
        assert.equal((await client.frame()).payload.readUInt32BE(16), 1, JSON.stringify(wanted))
      }
    }
  },
  {
    line: '11.8',
    fact: 'clamp like HTTP',
    sent: 'max_records and max_bytes of 2^32 − 1',
    expected: 'all records, as for HTTP',
    async check({ open, api }, t) {
      const client = await greet(t, open)
      client.send(consume(1, { topic: 'other', maxRecords: 0xffff_ffff, maxBytes: 0xffff_ffff }))
      const { records } = await api.consume('other', 0, 'offset=0&max_records=4294967295&max_bytes=4294967295')
      assert.equal((await client.frame()).payload.readUInt32BE(16), records.length)
    }
  },
  {
    line: '11.9',
    fact: 'Ping payload ignored; ping answer payload empty',
    sent: 'pings with 0 bytes and with 1 MiB of payload',
    expected: 'pongs without payload',
    async check({ open }, t) {
      const client = await greet(t, open)
      for (const bytes of [0, 1 << 20]) {
        client.send(ping(6, Buffer.alloc(bytes, 0xff)))
        assert.deepEqual(await client.frame(), { id: 6, opcode: opcodes.pong, payload: Buffer.alloc(0) })
      }
    }
  },
  {
    line: '11.9',
    fact: 'with gzip: a gzip stream of nothing',
    sent: 'pings with gzip: a gzip stream of nothing, no payload, bytes that are no gzip',
    expected: 'pongs whose payload is a gzip stream of nothing',
    async check({ open }, t) {
      const client = await greet(t, open, '', 1)
      for (const frame of [packed(ping(1)), ping(1), ping(1, hex('beef'))]) {
        client.send(frame)
        const { id, opcode, payload } = await client.frame()
        assert.deepEqual([id, opcode, gunzipSync(payload).length], [1, opcodes.pong, 0])
      }
    }
  },
  {
    line: '11.10',
    fact: 'gzip applies to payloads in both directions **including error frames**; even tiny payloads are valid gzip',
    sent: 'a produce of one byte, a consume, a refused consume, all packed',
    expected: '0x81, 0x82 and 0xFF, their payloads gzip',
    async check({ open, api }, t) {
      const [offset = 0] = await api.ends('orders')
      const client = await greet(t, open, '', 1)
      client.send(packed(produce(1, [{ value: 'v', partition: 0 }])))
      const produced = await client.frame()
      assert.equal(gunzipSync(produced.payload).readBigUInt64BE(8), BigInt(offset))
      client.send(packed(consume(2, { offset })))
      assert.equal(
        gunzipSync((await client.frame()).payload)
          .subarray(-1)
          .toString(),
        'v'
      )
      client.send(packed(consume(3, { topic: 'none' })))
      const refused = await client.frame()
      assert.deepEqual([refused.id, refused.opcode], [3, opcodes.error])
      assert.equal(gunzipSync(refused.payload).toString(), "not found: no topic named 'none'")
    }
  },
  {
    line: '11.11',
    fact: '`partition` is repeated per record',
    sent: 'a consume of partition 1, which has three records',
    expected: 'next_offset, hwm, count 3; per record partition 1 and its offset',
    async check({ open, api }, t) {
      const [, offset = 0] = await api.ends('orders')
      await api.produce(
        'orders',
        ['a', 'b', 'c'].map(value => ({ value, partition: 1 }))
      )
      const client = await greet(t, open)
      client.send(consume(1, { partition: 1, offset }))
      const { payload } = await client.frame()
      assert.deepEqual(
        [payload.readBigUInt64BE(0), payload.readBigUInt64BE(8)],
        [BigInt(offset + 3), BigInt(offset + 3)]
      )
      assert.deepEqual([payload.readUInt32BE(16), payload.length], [3, 20 + 3 * 29])
      for (let i = 0; i < 3; i++) {
        assert.equal(payload.readUInt32BE(20 + 29 * i), 1)
        assert.equal(payload.readBigUInt64BE(20 + 29 * i + 4), BigInt(offset + i))
      }
    }
  },
  {
    line: '11.11',
    fact: 'empty read = next_offset, hwm, count 0',
    sent: 'a consume at the end',
    expected: 'both the end, count 0, no more bytes',
    async check({ open, api }, t) {
      const [offset = 0] = await api.ends('orders')
      const client = await greet(t, open)
      client.send(consume(1, { offset }))
      const { payload } = await client.frame()
      assert.equal(payload.length, 20)
      assert.deepEqual(
        [payload.readBigUInt64BE(0), payload.readBigUInt64BE(8), payload.readUInt32BE(16)],
        [BigInt(offset), BigInt(offset), 0]
      )
    }
  }
]
