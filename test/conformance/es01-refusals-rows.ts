/** Section 12: the rows on requests that are understood and not carried out. */
import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { encodeFrame, opcodes } from '../../src/wire/es01/frame.ts'
import { makeTestKey, revokeKey } from '../support/access.ts'
import { range } from '../support/es01-session.ts'
import { parse } from '../support/http-api.ts'
import { packedErrorText, refused } from './es01-outcomes.ts'
import { closedInSilence, consume, goesOn, greet, hex, ping, produce, type Es01Stage } from './es01-stage.ts'
import { startFailing } from './failing-broker.ts'
import type { Row } from './row.ts'

const MIB = 1024 * 1024
const NOT_TO_DO = 'unknown topic / bad partition / sequence / size'
const good = { value: 'v', partition: 0 }

export const refusalRows: readonly Row<Es01Stage>[] = [
  {
    line: 'no grant on the topic named first in the payload',
    fact: 'error frame containing `forbidden`',
    sent: 'of a key for orders: a produce and a consume of other, and of other with nothing well formed behind it',
    expected: 'four error frames `forbidden: …`; stays open',
    async check({ guarded: { broker, admin }, writer }, t) {
      const client = await greet(t, broker, writer.secret)
      const torn = hex('0005 6f74686572 ff')
      const frames = [
        produce(0, [good], { topic: 'other' }),
        consume(1, { topic: 'other' }),
        encodeFrame(2, opcodes.produce, torn),
        encodeFrame(3, opcodes.consume, torn)
      ]
      client.send(Buffer.concat(frames))
      for (const id of range(4)) assert.match(await client.errorText(id), /^forbidden: /)
      await goesOn(client)
      assert.deepEqual(await admin.api.ends('other'), [0])
    }
  },
  {
    line: 'no grant on the topic named first in the payload',
    fact: 'before inflating the rest',
    sent: 'with gzip, of a key for orders: the topic other, then 64 MiB of zeros; the topic other, then a torn stream',
    expected: 'error frames `forbidden: …`, not `decode: …`; stays open',
    async check({ guarded: { broker }, writer }, t) {
      const client = await greet(t, broker, writer.secret, 1)
      const head = produce(0, [good], { topic: 'other' }).subarray(9)
      const bomb = gzipSync(Buffer.concat([head, Buffer.alloc(64 * MIB)]))
      for (const [id, stream] of [bomb, bomb.subarray(0, bomb.length >> 1)].entries()) {
        client.send(encodeFrame(id, opcodes.produce, stream))
        assert.match(await packedErrorText(client, id), /^forbidden: /)
      }
    }
  },
  refused(
    { line: NOT_TO_DO, fact: '`not found: …`', sent: 'a produce and a consume of a topic that is not there' },
    /^not found: /,
    () => [produce(0, [good], { topic: 'none' }), consume(0, { topic: 'none' })]
  ),
  refused(
    {
      line: NOT_TO_DO,
      fact: '`bad request: …`',
      sent: 'partition 2 of 2 in the second record, in a consume, and 2^31 − 1'
    },
    /^bad request: partition \d+ /,
    () => [
      produce(0, [good, { value: 'v', partition: 2 }]),
      consume(0, { partition: 2 }),
      produce(0, [{ value: 'v', partition: 0x7fff_ffff }])
    ]
  ),
  refused(
    {
      line: NOT_TO_DO,
      fact: '`bad request: …`',
      sent: 'a producer id whose sequences leave a gap, and one without any'
    },
    /^bad request: .*sequence/,
    () => [
      produce(
        0,
        [
          { ...good, sequence: 0n },
          { ...good, sequence: 2n }
        ],
        { producerId: 'gap' }
      ),
      produce(0, [good], { producerId: 'gap' })
    ]
  ),
  refused(
    { line: NOT_TO_DO, fact: '`bad request: …`', sent: 'a key and a value of 8 MiB and one byte together' },
    /^bad request: record 0 has 8388609 .*limit/,
    () => [produce(0, [{ key: 'k', value: Buffer.alloc(8 * MIB), partition: 0 }])]
  ),
  {
    line: 'quota',
    fact: 'error frame `rate limited: retry in X.Xs`',
    sent: 'of a key with 1,000 bytes a second: 900 bytes, then 900',
    expected: '0x81, then an error frame; stays open',
    async check({ guarded: { broker, admin } }, t) {
      const made = await admin.api.post('/admin/keys', {
        name: 'slow',
        acls: [{ action: 'write', topic_prefix: 'orders' }],
        produce_bytes_per_sec: 1000
      })
      const client = await greet(t, broker, parse<{ secret: string }>(made).secret)
      const frame = (id: number): Buffer => produce(id, [{ value: Buffer.alloc(900), partition: 0 }])
      client.send(Buffer.concat([frame(1), frame(2)]))
      // What is refused need not wait for what is written.
      const [first, second] = (await client.frames(2)).sort((a, b) => a.id - b.id)
      assert.deepEqual([first?.opcode, second?.opcode], [opcodes.produced, opcodes.error])
      assert.match(second?.payload.toString() ?? '', /^rate limited: retry in \d\.\ds$/)
      await goesOn(client)
    }
  },
  {
    line: 'producer id of another key',
    fact: 'error frame `forbidden: …`',
    sent: 'a sequence under an id that another key has used',
    expected: 'an error frame; nothing written; stays open',
    async check({ guarded: { broker, admin }, writer }, t) {
      const owner = await greet(t, broker, admin.secret)
      owner.send(produce(1, [{ ...good, sequence: 0n }], { producerId: 'owned' }))
      assert.equal((await owner.frame()).opcode, opcodes.produced)
      const before = await admin.api.ends('orders')
      const client = await greet(t, broker, writer.secret)
      client.send(produce(1, [{ ...good, sequence: 1n }], { producerId: 'owned' }))
      assert.match(await client.errorText(1), /^forbidden: /)
      assert.deepEqual(await admin.api.ends('orders'), before)
      await goesOn(client)
    }
  },
  {
    line: 'internal failure',
    fact: 'hiding it is better',
    sent: 'a produce whose write fails in the broker (all of it in es01-internal.test.ts)',
    expected: 'an error frame `internal error (id …)`, and nothing else of it',
    async check(_, t) {
      const client = await greet(t, await startFailing(t))
      client.send(produce(1, [good]))
      assert.match(await client.errorText(1), /^internal error \(id [0-9a-f]{8}\) \(written: unknown\)$/)
    }
  },
  {
    line: 'key revoked while connected',
    fact: 'at the next frame: error frame `key revoked`, then closed',
    sent: 'a ping and a produce after the key of the connection was revoked',
    expected: 'one error frame, then closed',
    async check({ guarded: { broker, admin } }, t) {
      const key = await makeTestKey(admin.api, 'write:orders')
      const before = await admin.api.ends('orders')
      const client = await greet(t, broker, key.secret)
      await goesOn(client)
      await revokeKey(admin.api, key.id)
      client.send(Buffer.concat([ping(1), produce(2, [good])]))
      assert.equal(await client.errorText(1), 'key revoked')
      await closedInSilence(client)
      assert.deepEqual(await admin.api.ends('orders'), before)
    }
  }
]
