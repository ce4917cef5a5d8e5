/**
 * Dump and restore of what a real broker leaves: small partitions and large ones, over several settlings, with producers.
 * The restored broker answers every read byte for byte as the first one did, and goes on from there.
 */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { runMillrace, spawnBroker, waitFor, type SpawnedBroker, type Variant } from '../support/broker.ts'
import { range } from '../support/es01-session.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** Whatever is sealed is settled at once, into small segments. */
const flags = { '--settle-idle': '20ms', '--settle-age': '50ms', '--segment-bytes': '1MiB' }
const topics = ['small', 'large', 'secret'] as const

interface Produced {
  readonly results: readonly { readonly partition: number; readonly offset: number; readonly duplicate?: true }[]
}

function produce(api: HttpApi, topic: string, sequence: number, values: readonly string[]): Promise<Produced> {
  const records = values.map((value, i) => ({ value, partition: 0, sequence: sequence + i, key: `k${i}` }))
  return api.post(`/topics/${topic}/produce`, { producer_id: `${topic}-producer`, records }).then(parse<Produced>)
}

/** What every read says, as it came, what a group has committed, and the schemas. */
async function readings(api: HttpApi): Promise<readonly string[]> {
  const paths = ['/groups/g/offsets', '/schemas', '/subjects/small-value/config']
  const texts = await Promise.all(paths.map(async path => (await api.get(path)).text))
  for (const topic of topics) {
    const { partitions } = await api.describe(topic)
    for (const { id, start_offset, end_offset } of partitions) {
      texts.push(`${topic}/${id} ${start_offset} ${end_offset}`)
      const answer = await api.get(
        `/topics/${topic}/consume?partition=${id}&offset=0&max_records=10000&max_bytes=8388608`
      )
      texts.push(answer.text)
      for (const { offset } of parse<{ records: { offset: number }[] }>(answer).records.slice(-1)) {
        texts.push((await api.get(`/topics/${topic}/consume?partition=${id}&offset=${offset}`)).text)
      }
    }
  }
  return texts
}

/** The manifests of all shards, in one text: another after each settling. */
function manifests(dataDir: string): string {
  const paths = readdirSync(join(dataDir, 'journal'), { recursive: true }).map(String)
  return paths
    .filter(path => path.endsWith('manifest'))
    .map(path => readFileSync(join(dataDir, 'journal', path), 'hex'))
    .join()
}

/**
 * Writes in three lives of a broker: what one leaves in its journal, the next one settles. So all kinds of places hold
 * records in the end: packs, segments of their own, and the journal. @returns the last one, running.
 */
async function fill(t: TestContext, variant: Variant): Promise<SpawnedBroker> {
  const dataDir = temporaryDirectory(t)
  for (let round = 0; ; round++) {
    const before = round === 0 ? '' : manifests(dataDir)
    const broker = await spawnBroker(t, { dataDir, variant, flags })
    const api = new HttpApi(broker.url)
    if (round === 0) {
      await api.createTopic('small', 40)
      await api.createTopic('large', 2)
      await api.createTopic('secret', 3)
      for (const topic of topics)
        assert.equal((await api.post('/groups/g/commit', { topic, partition: 1, offset: topic.length })).status, 204)
      for (const subject of ['small-value', 'large-value', 'small-value'])
        parse(await api.post('/schemas', { subject, schema: `{"title":"${subject}"}` }))
      parse(await api.call('PUT', '/subjects/small-value/config', '{"compatibility":"none"}'))
    } else await waitFor('what the last life left is settled', () => manifests(dataDir) !== before)
    await api.produce(
      'small',
      range(120).map(i => ({ value: `small ${round} ${i}`, partition: i % 40 }))
    )
    await produce(
      api,
      'large',
      round * 40,
      range(40).map(i => `large ${round} ${i} `.padEnd(20_000, 'ü'))
    )
    await produce(
      api,
      'secret',
      round * 5,
      range(5).map(i => `TOPSECRET ${round} ${i}`)
    )
    if (round === 2) return broker
    await stopped(broker, 'SIGTERM')
  }
}

async function stopped(broker: SpawnedBroker, signal: NodeJS.Signals): Promise<void> {
  const { code } = await broker.kill(signal)
  if (signal === 'SIGTERM') assert.equal(code, 0)
}

async function succeed(...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runMillrace(words)
  assert.deepEqual([code, stderr], [0, ''], stdout)
  return stdout
}

/** A broker over the restored directory gives the same answers, knows its producers, goes on, and survives a kill. */
async function checkRestored(t: TestContext, dataDir: string, expected: readonly string[]): Promise<void> {
  const broker = await spawnBroker(t, { dataDir, flags })
  const api = new HttpApi(broker.url)
  assert.deepEqual(await readings(api), expected)
  const again = await produce(api, 'large', 119, ['sent again'])
  assert.deepEqual(again.results, [{ partition: 0, offset: 119, duplicate: true }])
  const more = await produce(
    api,
    'large',
    120,
    range(30).map(i => `more ${i} `.padEnd(20_000, 'x'))
  )
  assert.equal(more.results.at(-1)?.offset, 149)
  const after = await readings(api)
  await stopped(broker, 'SIGKILL')
  const next = await spawnBroker(t, { dataDir, flags })
  assert.deepEqual(await readings(new HttpApi(next.url)), after)
  await stopped(next, 'SIGTERM')
}

for (const [engine, shards, signal] of [
  ['node', 1, 'SIGTERM'],
  ['uws', 3, 'SIGKILL']
] as const) {
  test(`a broker with ${shards} shard(s), ended by ${signal}, is dumped and restored`, async t => {
    const broker = await fill(t, { engine, shards })
    const { dataDir } = broker
    const expected = await readings(new HttpApi(broker.url))
    const folder = temporaryDirectory(t)
    const [all, some] = [join(folder, 'all.tar.gz'), join(folder, 'some.tar')]

    await t.test('not while it runs', async () => {
      const { code, stderr } = await runMillrace(['dump', '--data-dir', dataDir, '--output', all])
      assert.equal(code, 3)
      assert.match(stderr, /^millrace: data directory \S+ is in use by another millrace process \(pid \d+\)\n$/)
      assert.deepEqual(readdirSync(folder), [])
    })
    await stopped(broker, signal)

    await t.test('with every record, offset, producer and group', async t => {
      await succeed('dump', '--data-dir', dataDir, '--output', all, '--verify')
      const back = join(folder, 'back')
      await succeed('restore', '--input', all, '--data-dir', back)
      await succeed('verify', '--data-dir', back)
      await checkRestored(t, back, expected)
    })

    await t.test('without a byte of the topics that were left out', async t => {
      await succeed('dump', '--data-dir', dataDir, '--output', some, '--topics', 'small,large')
      const bytes = readFileSync(some)
      assert.ok(bytes.includes('small 2 119'))
      for (const word of ['TOPSECRET', 'secret~']) assert.ok(!bytes.includes(word), word)
      const back = join(folder, 'some')
      await succeed('restore', '--input', some, '--data-dir', back)
      const restored = await spawnBroker(t, { dataDir: back, flags })
      const answer = await new HttpApi(restored.url).get('/topics')
      assert.deepEqual(parse<{ topics: string[] }>(answer).topics.sort(), ['large', 'small'])
      const committed = (await new HttpApi(restored.url).get('/groups/g/offsets')).text
      assert.equal(committed, '{"offsets":{"large":{"1":5},"small":{"1":5}}}')
      await stopped(restored, 'SIGTERM')
    })

    await t.test('and the first directory serves as before', async t => {
      const first = await spawnBroker(t, { dataDir, flags })
      assert.deepEqual(await readings(new HttpApi(first.url)), expected)
      await stopped(first, 'SIGTERM')
      assert.ok(statSync(all).size < statSync(some).size)
    })
  })
}
