/** Whatever a caller passes, a promise rejects with a ClientError that says what is wrong, and nothing is sent. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BinaryClient, ClientError, Consumer, PipelinedClient } from '../../../../src/client/binary/index.ts'
import { startFakeBroker } from './fake-broker.ts'

/** What is no object, or no list, or not what belongs into one. */
const wrong: readonly unknown[] = [undefined, null, 5, 'text', true, Symbol('s'), 5n]
const MIB = 1024 * 1024

/** The call may throw neither at once nor anything else. */
async function refuses(call: () => Promise<unknown>, said: RegExp = /./): Promise<void> {
  const promise = call()
  await assert.rejects(promise, error => {
    assert.ok(error instanceof ClientError, String(error))
    assert.deepEqual([error.kind, error.written, error.retryable], ['invalid', 'no', false])
    assert.match(error.message, said)
    return true
  })
}

describe('a call with wrong arguments', () => {
  test('to produce rejects, whichever it is', async t => {
    const broker = await startFakeBroker(t)
    const client = new BinaryClient(broker.address)
    t.after(() => client.destroy())
    const produce = client.produce.bind(client) as (...parts: readonly unknown[]) => Promise<unknown>
    const record = { value: 'v', partition: 0, sequence: 0n }
    for (const value of wrong) {
      await refuses(() => produce('t', value), /^records is/)
      await refuses(() => produce('t', value, { producerId: 'p' }), /^records is/)
      await refuses(() => produce('t', [value]), /^record is/)
      await refuses(() => produce('t', [record, value], { producerId: 'p' }), /^record is/)
      if (typeof value !== 'string') await refuses(() => produce(value, [record]), /^topic is/)
      if (value === undefined) continue
      const partition = value === 5 ? 0.5 : value
      await refuses(() => produce('t', [{ value: 'v', partition }]), /^partition is/)
      await refuses(() => produce('t', [record], value), /^(options is|producerId is)/)
      if (typeof value !== 'string')
        await refuses(() => produce('t', [record], { producerId: value }), /^producerId is/)
    }
    await refuses(() => produce('t', [record], { producerId: 'p'.repeat(201) }), /1 to 200 bytes/)
    await refuses(() => produce('é'.repeat(101), [record]), /^topic is .*1 to 200 bytes/)
    // A hole in a list is no record.
    await refuses(() => produce('t', Array(1), { producerId: 'p' }), /^record is undefined/)
    assert.equal(broker.produced.length, 0)
  })

  test('to send, consume and commit rejects, whichever it is', async t => {
    const { address } = await startFakeBroker(t)
    const producer = new PipelinedClient(address)
    t.after(() => producer.destroy())
    const client = new BinaryClient(address)
    t.after(() => client.destroy())
    const consumer = new Consumer({ ...address, topic: 't' })
    t.after(() => consumer.close())
    for (const value of wrong) {
      await refuses(() => producer.send('t', value as never), /^record is/)
      await refuses(() => client.consume(value as never), /^request is/)
      const offset = (value === 5 ? 0.5 : value) as never
      await refuses(() => client.consume({ topic: 't', partition: 0, offset }), /^offset is/)
      if (value !== undefined) await refuses(() => consumer.commit(value as never), /^record is/)
    }
    await refuses(() => consumer.commit({ topic: 't', partition: 0, offset: 1 } as never), /as the loop gave it/)
  })

  test('to a constructor throws, whichever it is', async t => {
    const { address } = await startFakeBroker(t)
    for (const value of wrong) {
      for (const Client of [BinaryClient, PipelinedClient, Consumer]) {
        assert.throws(() => new Client(value as never), { kind: 'invalid' })
        if (value === undefined) continue
        for (const name of ['tls', 'reconnect', 'requestTimeoutMs']) {
          const options = { ...address, topic: 't', [name]: name === 'requestTimeoutMs' && value === 5 ? 0.5 : value }
          assert.throws(() => new Client(options), { kind: 'invalid' }, `${name} ${String(value)}`)
        }
      }
    }
    const group = { ...address, http: 'http://127.0.0.1:1', group: 'g', topics: ['t'] }
    for (const rest of [
      { topics: [5] },
      { topics: [''] },
      { group: '' },
      { http: null },
      { from: 5 },
      { token: 'x'.repeat(1025) }
    ]) {
      assert.throws(() => new Consumer({ ...group, ...rest } as never), { kind: 'invalid' }, JSON.stringify(rest))
    }
    for (const rest of [{ topic: 'x'.repeat(201) }, { partitions: 5 }, { partitions: [1, 1] }, { from: -1 }]) {
      assert.throws(() => new Consumer({ ...address, topic: 't', ...rest } as never), { kind: 'invalid' })
    }
    assert.throws(() => new PipelinedClient({ ...address, lingerMs: 100, deliveryTimeoutMs: 100 }), { kind: 'invalid' })
  })
})

describe('what no broker takes in one request', () => {
  test('is refused before anything is sent: too many records, or too many bytes', async t => {
    const broker = await startFakeBroker(t)
    const client = new BinaryClient(broker.address)
    const producer = new PipelinedClient({ ...broker.address, lingerMs: 0 })
    t.after(() => (client.destroy(), producer.destroy()))
    const record = { value: 'v', partition: 0 }
    await refuses(() => client.produce('t', Array(100_001).fill(record)), /^records has 100001: .*100000/)
    const half = { value: Buffer.alloc(8 * MIB), partition: 0 }
    await refuses(() => client.produce('t', [half, half]), /over the limit of 16777216 \(requestBytesMax\)/)
    const large = { value: Buffer.alloc(16 * MIB), partition: 0 }
    await refuses(() => producer.send('t', large), /over the limit of 16777216 \(requestBytesMax\)/)
    await refuses(
      () => producer.send('t', { ...large, value: Buffer.alloc(32 * MIB + 1) }),
      /over the limit of 33554432/
    )
    assert.equal(broker.produced.length, 0)
    assert.equal((await client.produce('t', [record])).length, 1)
  })

  test('is sent where the client is told that its broker takes more', async t => {
    const broker = await startFakeBroker(t)
    const producer = new PipelinedClient({ ...broker.address, lingerMs: 0, requestBytesMax: 33 * MIB })
    t.after(() => producer.destroy())
    assert.equal((await producer.send('t', { value: Buffer.alloc(20 * MIB), partition: 0 })).offset, 0)
  })
})
