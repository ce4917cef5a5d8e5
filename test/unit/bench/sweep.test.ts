/** A sweep over all partitions: each is asked once, and what is not as it should be is named. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { protocols } from '../../../native-free-bench/load/connections.ts'
import { sweep } from '../../../native-free-bench/load/sweep.ts'
import type { SweepOptions } from '../../../native-free-bench/load/sweep.ts'
import { startFakeBroker } from './fake-broker.ts'
import type { FakeBroker, FakeOptions } from './fake-broker.ts'

async function brokerAndOptions(
  t: TestContext,
  options: FakeOptions = {}
): Promise<{ broker: FakeBroker; base: Omit<SweepOptions, 'kind' | 'protocol'> }> {
  const broker = await startFakeBroker(t, options)
  const addresses = { http: broker.http, es01: broker.es01 }
  const shape = { partitions: 50, connections: 3, inFlight: 2, valueBytes: 10, recordsPerPartition: 2 }
  return { broker, base: { addresses, topic: 'wide', ...shape } }
}

describe('a sweep', () => {
  test('writes one record to each partition over each protocol, and reads every one of them back', async t => {
    const { broker, base } = await brokerAndOptions(t)
    for (const protocol of protocols) {
      const { latency } = await sweep({ ...base, kind: 'produce', protocol })
      assert.equal(latency.count, 50)
    }
    assert.equal(broker.logs.size, 50)
    assert.ok([...broker.logs.values()].every(log => log.length === 2))
    for (const protocol of protocols) await sweep({ ...base, kind: 'consume', protocol })
  })

  test('with more slots than partitions still asks each partition once', async t => {
    const { broker, base } = await brokerAndOptions(t)
    await sweep({ ...base, kind: 'produce', protocol: 'es01', partitions: 2 })
    assert.deepEqual(
      [...broker.logs.values()].map(log => log.length),
      [1, 1]
    )
  })

  for (const protocol of protocols) {
    test(`names a partition that lacks a record over ${protocol}`, async t => {
      const { broker, base } = await brokerAndOptions(t)
      for (let id = 0; id < 50; id++) {
        broker.logs.set(`wide/${id}`, Array(id === 31 ? 1 : 2).fill({ key: null, value: 'v' }))
      }
      const read = sweep({ ...base, kind: 'consume', protocol })
      await assert.rejects(read, /partition 31: 1 records where 2 should be/)
    })
  }

  test('ends with the words of a refusal, and with the end of a connection', async t => {
    const refusing = await brokerAndOptions(t, { refuseWith: 'not now' })
    const cutting = await brokerAndOptions(t, { cutAfterRequests: 5 })
    const how = { kind: 'produce', protocol: 'es01' } as const
    await assert.rejects(sweep({ ...refusing.base, ...how }), /partition \d+ was refused: .*not now/)
    await assert.rejects(sweep({ ...cutting.base, ...how }), /a connection was lost/)
  })
})
