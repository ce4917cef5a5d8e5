/** Payloads in gzip, from the client's side: against a peer that inflates and deflates each as the protocol says. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { connectEs01, Es01Error, type Es01Client } from '../../../../src/client/es01/client.ts'
import { inflatePayload } from '../../../../src/client/es01/gzip.ts'
import { opcodes, type Frame } from '../../../../src/wire/es01/frame.ts'
import { features } from '../../../../src/wire/es01/handshake.ts'
import { ProduceDecoder } from '../../../../src/wire/es01/produce-request.ts'
import type { Es01Address } from '../../../support/broker.ts'
import { producedPayload, startPeer, type PeerConnection } from '../../../support/es01-peer.ts'
import { diceOf } from '../../../support/log-random.ts'

async function connected(t: TestContext, address: Es01Address, gzip = true): Promise<Es01Client> {
  const client = await connectEs01({ ...address, gzip, requestTimeoutMs: 20_000 })
  t.after(() => client.destroy())
  return client
}

/** Answers each produce with the number of the request as offset, deflated where that was agreed. */
function counting(accepts: number, seen: { values: number[]; asked: number }) {
  const decoder = new ProduceDecoder()
  let count = 0
  return (frame: Frame, connection: PeerConnection): void => {
    seen.asked = connection.asked
    const isAgreed = (accepts & connection.asked) !== 0
    const payload = isAgreed ? gunzipSync(frame.payload) : frame.payload
    const framed = Buffer.concat([Buffer.alloc(9), payload])
    assert.ok(decoder.decode(framed, 9, framed.length), decoder.problem)
    seen.values.push(decoder.payloadBytesOf(0))
    const answer = producedPayload([{ partition: 0, offset: count++ }])
    connection.answer(frame.requestId, opcodes.produced, isAgreed ? gzipSync(answer) : answer)
  }
}

describe('what an answer inflates to', () => {
  const largest = 256 * 1024 * 1024

  test('is looked at before it is inflated at once: a small one may hold much', async () => {
    const zeros = Buffer.alloc(60_000_000)
    for (const bytes of [60_000_000, 10_000_000, 70_000]) {
      const inflated = inflatePayload(gzipSync(zeros.subarray(0, bytes)), largest)
      assert.ok(inflated instanceof Promise, `${bytes} bytes are inflated elsewhere`)
      assert.equal((await inflated).length, bytes)
    }
    const small = inflatePayload(gzipSync(zeros.subarray(0, 60_000)), largest)
    assert.ok(Buffer.isBuffer(small))
    assert.equal(small.length, 60_000)
  })

  test('is bounded also where the stream says less of itself than it holds', async () => {
    // The last of several members says what that one holds.
    const stream = Buffer.concat([gzipSync(Buffer.alloc(10_000_000)), gzipSync('x')])
    assert.ok(stream.length < 16 * 1024)
    const inflated = inflatePayload(stream, largest)
    assert.ok(inflated instanceof Promise)
    assert.equal((await inflated).length, 10_000_001)
    await assert.rejects(Promise.resolve(inflatePayload(stream, 1_000_000)))
  })
})

describe('a client that asks for gzip', () => {
  test('speaks it where the broker accepts, and its requests leave in their order whatever their size', async t => {
    const seen = { values: [] as number[], asked: 0 }
    const client = await connected(t, await startPeer(t, { accepts: features.gzip, onFrame: counting(1, seen) }))
    assert.equal(client.hasGzip, true)
    const sizes = [10, 2_000_000, 20, 70_000, 30, 500_000, 40, 50]
    const results = await Promise.all(sizes.map(size => client.produce('t', [{ value: Buffer.alloc(size, size) }])))
    assert.deepEqual(seen, { values: sizes, asked: features.gzip })
    assert.deepEqual(
      results.map(([result]) => result?.offset),
      sizes.map((_, i) => i)
    )
  })

  test('speaks plainly where the broker does not', async t => {
    const seen = { values: [] as number[], asked: 0 }
    const client = await connected(t, await startPeer(t, { onFrame: counting(0, seen) }))
    assert.equal(client.hasGzip, false)
    await client.produce('t', [{ value: 'abc' }])
    assert.deepEqual(seen, { values: [3], asked: features.gzip })
  })

  test('does not where it does not ask', async t => {
    const seen = { values: [] as number[], asked: 0 }
    const client = await connected(t, await startPeer(t, { accepts: 1, onFrame: counting(1, seen) }), false)
    await client.produce('t', [{ value: 'abc' }])
    assert.deepEqual([client.hasGzip, seen.asked], [false, 0])
  })

  test('reads answers of any size, and refusals', async t => {
    const body = diceOf(1).bytes(300_000)
    const header = Buffer.alloc(20)
    header.writeUInt32BE(1, 16)
    const record = Buffer.alloc(28)
    record.writeInt32BE(-1, 20)
    record.writeUInt32BE(body.length, 24)
    const answer = gzipSync(Buffer.concat([header, record, body]))
    assert.ok(answer.length > 64 * 1024, 'the answer is inflated off the thread')
    const onFrame = (frame: Frame, connection: PeerConnection): void => {
      if (frame.opcode === opcodes.consume) connection.answer(frame.requestId, opcodes.consumed, answer)
      else connection.answer(frame.requestId, opcodes.error, gzipSync(Buffer.from('forbidden: no')))
    }
    const client = await connected(t, await startPeer(t, { accepts: features.gzip, onFrame }))
    const consumed = await client.consume({ topic: 't', partition: 0, offset: 0, maxRecords: 1, maxBytes: 1 })
    assert.ok(consumed.records[0]?.value.equals(body))
    await assert.rejects(client.ping(), { kind: 'refused', written: 'no', message: 'forbidden: no' })
  })

  test('is told when an answer is no gzip, and the connection ends', async t => {
    const onFrame = (frame: Frame, connection: PeerConnection): void => {
      connection.answer(frame.requestId, opcodes.pong, Buffer.from('not gzip'))
    }
    const client = await connected(t, await startPeer(t, { accepts: features.gzip, onFrame }))
    await assert.rejects(client.ping(), error => {
      assert.ok(error instanceof Es01Error)
      assert.equal(error.kind, 'protocol')
      return true
    })
    assert.equal(client.isOpen, false)
  })

  test('closes after all that was still being deflated is answered', async t => {
    const seen = { values: [] as number[], asked: 0 }
    const client = await connected(t, await startPeer(t, { accepts: features.gzip, onFrame: counting(1, seen) }))
    const answers = [1_000_000, 5, 800_000].map(size => client.produce('t', [{ value: Buffer.alloc(size) }]))
    const closed = client.close()
    assert.equal((await Promise.all(answers)).length, 3)
    await closed
    assert.deepEqual(seen.values, [1_000_000, 5, 800_000])
  })

  test('knows that nothing was written of what was still being deflated when the connection was lost', async t => {
    const onFrame = (_: Frame, connection: PeerConnection): void => connection.drop()
    const client = await connected(t, await startPeer(t, { accepts: features.gzip, onFrame }))
    const waiting = client.produce('t', [{ value: Buffer.alloc(30_000_000) }])
    const behind = client.produce('t', [{ value: 'x' }])
    client.destroy()
    await assert.rejects(waiting, { kind: 'connection', written: 'no' })
    await assert.rejects(behind, { kind: 'connection', written: 'no' })
  })
})
