/** The EventSource of Node on a broker that is killed and starts again: it is told, comes again, and misses nothing. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { spawnBroker, waitFor } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import type { StreamedRecord } from '../support/event-stream.ts'
import { HttpApi } from '../support/http-api.ts'
import { parsePage, valueOf } from '../support/prometheus.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const program = fileURLToPath(new URL('../support/event-source-client.ts', import.meta.url))

interface Happening {
  readonly what: string
  readonly data: string | null
  readonly id: string | null
}

/**
 * A port that was free just now. A broker that picks its own cannot get it back at once: uWebSockets.js lets an address be
 * taken while old connections linger only where it was named.
 */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  server.close()
  await once(server, 'close')
  return address.port
}

/** What happens to an EventSource, as it comes. Its process is ended with the test. */
function watchEventSource(t: TestContext, url: string): readonly Happening[] {
  const args = ['--experimental-eventsource', '--no-warnings', program, url]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  atEnd(t, () => child.kill('SIGKILL'))
  const happenings: Happening[] = []
  createInterface({ input: child.stdout }).on('line', line => happenings.push(JSON.parse(line) as Happening))
  return happenings
}

/** Partition and offset of each record that came, in order. */
function placesIn(happenings: readonly Happening[]): string[] {
  return happenings
    .filter(({ what }) => what === 'message')
    .map(({ data }) => JSON.parse(data ?? '') as StreamedRecord)
    .map(({ partition, offset }) => `${partition}/${offset}`)
}

function endsIn(happenings: readonly Happening[], code: string): number {
  return happenings.filter(({ what, data }) => what === 'end' && data?.includes(`"code":"${code}"`) === true).length
}

for (const engine of ['uws', 'node'] as const) {
  test(`an EventSource goes on behind its last event once the broker has started again, on ${engine}`, async t => {
    const folder = temporaryDirectory(t)
    const hold = join(folder, 'hold')
    const bind = `127.0.0.1:${await freePort()}`
    const flags = { '--shards': '2', '--journal-first-slot-bytes': '16MiB', '--http-engine': engine, '--bind': bind }
    const dataDir = join(folder, 'data')
    const first = await spawnBroker(t, { dataDir, flags })
    const api = new HttpApi(first.url)
    const produce = async (partition: number, value: string): Promise<void> => {
      await api.produce('t', [{ value, partition }])
    }
    await api.createTopic('t', 2)
    const happenings = watchEventSource(t, `${first.url}/topics/t/stream?offset=latest`)
    await waitFor('the stream to open', () => happenings.some(({ what }) => what === 'open'))
    await produce(0, 'a')
    await produce(1, 'b')
    await waitFor('what is new', () => placesIn(happenings).length === 2)
    assert.ok(
      happenings.some(({ id }) => id === '1,1'),
      JSON.stringify(happenings)
    )
    await first.kill('SIGKILL')

    // Shard 0 is held in the middle of its journal: the broker answers, and is not ready.
    writeFileSync(hold, '')
    const env = { MILLRACE_FAULTS: `0/slot.read:4=hold@${hold}` }
    await spawnBroker(t, { dataDir, flags, env, untilListening: true })
    await waitFor('it to be told twice that the broker starts', () => endsIn(happenings, 'NOT_READY') >= 2)
    assert.equal((await api.get('/topics/t/stream')).status, 503, 'as any other client is told')
    rmSync(hold)
    await waitFor('the broker to be ready', async () => (await api.get('/readyz')).status === 200)
    await produce(1, 'c')
    await produce(0, 'd')
    await waitFor('the records since', () => placesIn(happenings).length >= 4)
    assert.deepEqual(placesIn(happenings).slice(0, 2), ['0/0', '1/0'])
    assert.deepEqual(placesIn(happenings).toSorted(), ['0/0', '0/1', '1/0', '1/1'])
    assert.ok(happenings.every(({ what }) => what !== 'gave up'))
    const page = parsePage((await api.get('/metrics')).text)
    const refused = valueOf(page, 'millrace_http_refusals_total', { code: 'NOT_READY' }) ?? 0
    assert.ok(refused >= 3, `${refused} refusals are counted`)
  })

  test(`an EventSource gives up on what does not pass by itself, on ${engine}`, async t => {
    const { url } = await spawnBroker(t, { flags: { '--http-engine': engine } })
    const happenings = watchEventSource(t, `${url}/topics/nope/stream`)
    await waitFor('it to give up', () => happenings.some(({ what }) => what === 'gave up'))
    assert.ok(happenings.every(({ what }) => what !== 'open'))
  })
}
