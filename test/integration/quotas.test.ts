/** Quotas of real keys: one budget for both protocols, the same after a restart, and refusals that say how long to wait. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { connectEs01, Es01Error, type Es01Client } from '../../src/client/es01/client.ts'
import { firstKey, startGuarded, type TestKey } from '../support/access.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { assertRefused, HttpApi, onBothEngines, parse } from '../support/http-api.ts'

/** A client that has a key with quotas, over both protocols. */
interface QuotaClient {
  readonly secret: string
  readonly http: HttpApi
  readonly es01: Es01Client
}

async function connectWith(t: TestContext, broker: TestBroker, secret: string): Promise<QuotaClient> {
  const es01 = await connectEs01({ ...broker.es01, token: secret })
  atEnd(t, () => es01.destroy())
  return { secret, http: new HttpApi(broker.url, secret), es01 }
}

async function makeKey(
  t: TestContext,
  broker: TestBroker,
  { api }: TestKey,
  quotas: { produce_bytes_per_sec?: number; consume_bytes_per_sec?: number },
  action = 'write'
): Promise<QuotaClient> {
  const request = { name: 'with quotas', acls: [{ action, topic_prefix: '*' }], ...quotas }
  return connectWith(t, broker, parse<{ secret: string }>(await api.post('/admin/keys', request)).secret)
}

/** The message of the error frame that refuses it; '' if it is not refused. */
async function refusalOf(request: Promise<unknown>): Promise<string> {
  try {
    await request
    return ''
  } catch (error) {
    assert.ok(error instanceof Es01Error && error.kind === 'refused' && error.written === 'no', String(error))
    return error.message
  }
}

/**
 * Does what must happen within a moment of the first step, while budgets go on filling: begun again, with a fresh key, if
 * the machine was too slow for it. @returns what it saw.
 */
async function atOnce<Seen>(steps: () => Promise<Seen>): Promise<Seen> {
  for (let tries = 0; tries < 20; tries++) {
    const startMs = performance.now()
    const seen = await steps()
    if (performance.now() - startMs < 400) return seen
  }
  throw new Error('this machine never did five requests within 400 ms')
}

const guarded = { flags: { '--auth': 'required' } }
const read = { topic: 't', partition: 0, offset: 0, maxRecords: 100, maxBytes: 1 << 20 }
const records = (...values: string[]): { records: { value: string }[] } => ({
  records: values.map(value => ({ value }))
})

onBothEngines(
  'a quota',
  async (t, _nobody, broker) => {
    const admin = await firstKey(broker)
    await admin.api.createTopic('t')
    await admin.api.produce('t', [{ value: 'v'.repeat(600) }, { value: 'v'.repeat(600) }])

    await t.test('of produce is one budget for HTTP and ES01; who waits as it is told is let through', async () => {
      const { http, es01, refusal } = await atOnce(async () => {
        const client = await makeKey(t, broker, admin, { produce_bytes_per_sec: 1000 })
        await client.http.produce('t', [{ value: 'v'.repeat(300) }, { value: 'v'.repeat(300) }])
        await client.es01.produce('t', [{ key: 'k'.repeat(200), value: 'v'.repeat(200) }])
        const overEs01 = await refusalOf(client.es01.produce('t', [{ value: 'v'.repeat(1000) }]))
        assert.match(overEs01, /^rate limited: retry in (0\.[6-9]|1\.0)s$/)
        const refusal = await client.http.post('/topics/t/produce', records('v'.repeat(1000)))
        return { ...client, refusal }
      })
      assertRefused(refusal, 429, 'RATE_LIMITED', ['1000 bytes of keys and values', 'nothing was written', 'retry in '])
      assert.equal(refusal.headers.get('retry-after'), '1')
      await waitFor(
        'the budget',
        async () => (await http.post('/topics/t/produce', records('v'.repeat(900)))).status === 200
      )
      await es01.ping()
    })

    await t.test('of produce never lets through more than a second of it, and writes nothing of that', async () => {
      const { http, es01 } = await makeKey(t, broker, admin, { produce_bytes_per_sec: 1000 })
      const before = await http.ends('t')
      for (let i = 0; i < 3; i++) {
        const large = await http.post('/topics/t/produce', records('ä'.repeat(500), 'v'))
        assertRefused(large, 429, 'RATE_LIMITED', ['1001 bytes', 'more than the 1000', 'retry in 1.0s'])
        assert.equal(large.headers.get('retry-after'), '1')
        const overEs01 = es01.produce('t', [{ value: 'v'.repeat(1001) }])
        assert.equal(await refusalOf(overEs01), 'rate limited: retry in 1.0s')
      }
      assert.deepEqual(await http.ends('t'), before)
      await http.produce('t', [{ value: 'ä'.repeat(500) }])
    })

    await t.test('of produce is not charged for what is refused', async () => {
      await atOnce(async () => {
        const { http, es01 } = await makeKey(t, broker, admin, { produce_bytes_per_sec: 1000 })
        const value = 'v'.repeat(900)
        assertRefused(
          await http.post('/topics/t/produce', { records: [{ value, partition: 7 }] }),
          400,
          'PARTITION_RANGE'
        )
        const gap = {
          producer_id: 'gap',
          records: [
            { value, sequence: 1 },
            { value: '', sequence: 3 }
          ]
        }
        assertRefused(await http.post('/topics/t/produce', gap), 400, 'SEQUENCE_GAP')
        await es01.produce('t', [{ value }])
      })
    })

    await t.test('of consume is charged after the read, and its debt refuses both protocols', async () => {
      const client = await makeKey(t, broker, admin, { consume_bytes_per_sec: 100 }, 'read')
      assert.equal((await client.http.consume('t', 0, 'offset=0&max_records=2')).records.length, 2)
      const refusal = await client.http.get('/topics/t/consume?partition=0&offset=0')
      assertRefused(refusal, 429, 'RATE_LIMITED', ['consume quota', '100 bytes a second', 'retry in '])
      // 1,200 bytes leave a debt above ten seconds, of which ten count: some of them may be over by now.
      assert.match(refusal.headers.get('retry-after') ?? '', /^([5-9]|10)$/)
      assert.match(await refusalOf(client.es01.consume(read)), /^rate limited: retry in ([4-9]|10)\.\ds$/)
      await client.http.describe('t')
      await client.es01.ping()
    })

    await t.test('holds for an administrator too, and for nobody else', async () => {
      const limited = await makeKey(t, broker, admin, { consume_bytes_per_sec: 100 }, 'admin')
      await limited.es01.consume(read)
      assert.match(await refusalOf(limited.es01.consume(read)), /^rate limited: /)
      assertRefused(await limited.http.get('/topics/t/consume?partition=0&offset=0'), 429, 'RATE_LIMITED')
      for (let i = 0; i < 5; i++) await admin.api.consume('t', 0, 'offset=0')
      await admin.api.produce('t', [{ value: 'v'.repeat(100_000) }])
    })
  },
  guarded
)

test('quotas of a key are the same after a restart', async t => {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('t')
  const { secret } = await makeKey(t, broker, admin, { produce_bytes_per_sec: 1000 })
  await broker.stop()
  const again = await startBroker(t, { dataDir: broker.dataDir, ...guarded })
  const { http, es01 } = await connectWith(t, again, secret)
  assertRefused(await http.post('/topics/t/produce', records('v'.repeat(1001))), 429, 'RATE_LIMITED')
  await es01.produce('t', [{ value: 'v'.repeat(1000) }])
})
