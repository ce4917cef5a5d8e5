/**
 * A stream goes on after kill −9 of the broker as if nothing had been: a client that comes again with the id of the last
 * event gets every record once, in the order of its partition; and so does the reader of the README, with curl.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { spawnBroker, waitFor, type SpawnedBroker, type Variant } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { openStream } from '../support/event-stream.ts'
import { HttpApi } from '../support/http-api.ts'
import { diceOf, replayLine } from '../support/log-random.ts'
import { readText } from '../support/repository.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const FILE = 'test/crash/streams.test.ts'
const ROUNDS = isLong ? 40 : 3
const PARTITIONS = 3
const TOPIC = 't'

interface Taken {
  readonly partition: number
  readonly offset: number
  readonly value: string
}

/** Sends records of all sizes until the broker is gone. @returns how many were acknowledged. */
async function produceUntilGone(api: HttpApi, name: string): Promise<number> {
  let acked = 0
  for (let i = 0; ; i++) {
    const records = Array.from({ length: 1 + (i % 5) }, (_, j) => {
      return { value: `${name}.${i}.${j}:${'x'.repeat((i * 7919) % 9000)}`, partition: (i + j) % PARTITIONS }
    })
    const answer = await api.post(`/topics/${TOPIC}/produce`, { records }).catch(() => null)
    if (answer === null || answer.status === 503) return acked
    assert.equal(answer.status, 200, answer.text)
    acked += records.length
  }
}

/** A client of a stream that sees to it that it is connected, and keeps what it was sent. */
class Follower {
  readonly taken: Taken[] = []
  readonly query: string
  #lastId = ''

  constructor(query: string) {
    this.query = query
  }

  /** Follows until the connection ends. It takes what came whole, as the standard says. */
  async follow(t: TestContext, url: string): Promise<void> {
    const headers = this.#lastId === '' ? {} : { 'last-event-id': this.#lastId }
    const path = `${url}/topics/${TOPIC}/stream?${this.query}`
    const stream = await openStream(t, path, {
      headers,
      onEvent: ({ type, data, lastId }) => {
        if (type === 'end') return
        assert.equal(type, 'message', data)
        const { partition, offset, value } = JSON.parse(data) as Taken
        this.taken.push({ partition, offset, value })
        this.#lastId = lastId
      }
    })
    assert.equal(stream.status, 200)
    await waitFor('the end of a stream', () => stream.isClosed, 60_000)
  }
}

/** Partition, offset and value of everything that the topic has. */
async function contentsOf(api: HttpApi, partitions: readonly number[]): Promise<Taken[]> {
  const all = await Promise.all(partitions.map(partition => api.consumeAll(TOPIC, partition)))
  return all.flat().map(({ partition, offset, value }) => ({ partition, offset, value }))
}

/** Of each partition apart: between them a stream has no order. */
function byPartition(taken: readonly Taken[]): Taken[][] {
  return Array.from({ length: PARTITIONS }, (_, wanted) => taken.filter(({ partition }) => partition === wanted))
}

describe('streams over kill −9', () => {
  for (const variant of [
    { engine: 'uws', shards: 3 },
    { engine: 'node', shards: 1 }
  ] satisfies Variant[]) {
    it(`lose nothing and repeat nothing (${variant.engine}, ${variant.shards} shard(s))`, async t => {
      t.diagnostic(replayLine(seed, FILE))
      const dice = diceOf(seed + variant.shards)
      const dataDir = temporaryDirectory(t)
      let broker = await spawnBroker(t, { dataDir, variant })
      await new HttpApi(broker.url).createTopic(TOPIC, PARTITIONS)
      const followers = [new Follower('offset=earliest'), new Follower('offset=earliest&partition=1')]
      let acked = 0
      for (let round = 0; round < ROUNDS; round++) {
        const api = new HttpApi(broker.url)
        const following = followers.map(follower => follower.follow(t, broker.url))
        const before = followers.map(({ taken }) => taken.length)
        const producing = [produceUntilGone(api, `a${round}`), produceUntilGone(api, `b${round}`)]
        const wanted = 50 + dice.below(400)
        await waitFor(
          'records on both streams',
          () => followers.every(({ taken }, i) => taken.length - (before[i] ?? 0) > wanted),
          60_000
        )
        await broker.kill('SIGKILL')
        for (const count of await Promise.all(producing)) acked += count
        await Promise.all(following)
        broker = await spawnBroker(t, { dataDir, variant })
      }
      const api = new HttpApi(broker.url)
      const following = followers.map(follower => follower.follow(t, broker.url))
      const [all, one] = [await contentsOf(api, [0, 1, 2]), await contentsOf(api, [1])]
      await waitFor(
        'the rest',
        () => followers.every(({ taken }, i) => taken.length >= ([all, one][i]?.length ?? 0)),
        60_000
      )
      t.diagnostic(`${ROUNDS} kills, ${acked} records acknowledged, ${all.length} in the log`)
      assert.ok(all.length >= acked)
      assert.deepEqual(byPartition(followers[0]?.taken ?? []), byPartition(all))
      assert.deepEqual(followers[1]?.taken, one)
      await broker.kill('SIGTERM')
      await Promise.all(following)
    })
  }
})

/** Runs a line of a shell in a process group of its own, which is ended with the test. */
function runLine(
  t: TestContext,
  line: string,
  cwd: string
): { readonly output: () => string; readonly end: () => void } {
  const child = spawn('sh', ['-c', line], { cwd, detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const end = (): void => {
    // Without a process id it did not start; with an exit code its group may be gone.
    if (child.pid === undefined || child.exitCode !== null) return
    process.kill(-child.pid, 'SIGTERM')
  }
  atEnd(t, end)
  return { output: () => output, end }
}

/** The lines of the README that begin so, for a broker at that address. */
function readmeLines(begin: string, { url }: SpawnedBroker): string[] {
  const lines = readText('README.md')
    .split('\n')
    .filter(line => line.startsWith(begin) && line.includes('/stream'))
  return lines.map(line => line.replaceAll('localhost:9000', new URL(url).host))
}

const hasCurl = spawnSync('curl', ['--version']).status === 0

describe('the session of the README', { skip: hasCurl ? false : 'curl is not installed' }, () => {
  it('goes on behind what it has seen after kill −9 of the broker', async t => {
    const broker = await spawnBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic('orders', 2)
    await api.produce('orders', [
      { value: 'one', partition: 0 },
      { value: 'two', partition: 1 }
    ])
    const folder = temporaryDirectory(t)
    const [first = ''] = readmeLines('curl -sN', broker)
    runLine(t, first, folder)
    const path = join(folder, 'orders.events')
    const saved = (): string => (existsSync(path) ? readFileSync(path, 'utf8') : '')
    await waitFor('both events', () => /"two"\}\n\n/.test(saved()) && saved().includes('"one"}\n\n'))
    await broker.kill('SIGKILL')

    const next = await spawnBroker(t, { dataDir: broker.dataDir })
    await new HttpApi(next.url).produce('orders', [{ value: 'three', partition: 0 }])
    const [, second = ''] = readmeLines('curl -sN', next)
    const again = runLine(t, second, folder)
    await waitFor('the third event', () => again.output().includes('"three"}\n\n'))
    assert.deepEqual(again.output().match(/"value":"\w+"/g), ['"value":"three"'])
    again.end()
  })
})
