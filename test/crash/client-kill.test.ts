/**
 * The pipelined client while its broker is killed again and again: between requests, in the middle of a write, and after
 * a write that nobody was told of. It is told nothing and goes on by itself over the same address. In the end every record
 * is in the log once, in the order of its key, at the offset that `send` resolved with. A client that sends again without
 * sequences is put through the same, to see that it is found out.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { PipelinedClient, type ProduceRecord, type ProduceResult } from '../../src/client/binary/index.ts'
import { spawnBroker, waitFor, type SpawnedBroker } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { createTopics, readTopics } from '../support/crash-load.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { diceOf, replayLine, type Dice } from '../support/log-random.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const FILE = 'test/crash/client-kill.test.ts'
const ROUNDS = isLong ? 40 : 6
const TOPIC = { name: 'orders', partitions: 5 }
const KEYS = 23

/** What `send` is here. */
type Send = (record: ProduceRecord) => Promise<ProduceResult>

interface Sent {
  readonly value: string
  readonly key: string
  result: ProduceResult | null
}

/** Sends without a pause, now a few records at once and now more than the broker remembers of a producer. */
class Load {
  readonly sent: Sent[] = []
  settledCount = 0
  duplicateCount = 0

  readonly #dice: Dice
  readonly #send: Send
  readonly #nextOfKey = new Map<string, number>()
  #isStopping = false

  constructor(send: Send, dice: Dice) {
    this.#send = send
    this.#dice = dice
  }

  stop(): void {
    this.#isStopping = true
  }

  /** @throws what a send rejected with */
  async run(): Promise<void> {
    while (!this.#isStopping) {
      const count = this.#dice.chance(0.5) ? 1 + this.#dice.below(40) : 1_000 + this.#dice.below(3_000)
      await Promise.all(Array.from({ length: count }, () => this.#sendOne()))
    }
  }

  async #sendOne(): Promise<void> {
    const key = `key-${this.#dice.below(KEYS)}`
    const number = this.#nextOfKey.get(key) ?? 0
    this.#nextOfKey.set(key, number + 1)
    const sent: Sent = { key, value: `${key}/${number}`, result: null }
    this.sent.push(sent)
    sent.result = await this.#send({ key, value: sent.value })
    this.settledCount++
    if (sent.result.duplicate) this.duplicateCount++
  }
}

/** Ends of a broker: by a signal at any time, or by itself at a chosen group. */
const ends = ['signal', 'group.sync:N=kill-after', 'group.sync:N=kill', 'group.write:N=short-kill'] as const

/** Runs the load through all rounds. @returns what is wrong with the log afterwards. */
async function runThroughKills(load: Load, dice: Dice, target: Target): Promise<string[]> {
  const running = load.run()
  running.catch(() => undefined)
  for (let round = 0; round < ROUNDS; round++) {
    const end = round === 1 ? 'group.sync:N=kill-after' : dice.pick(ends)
    const env = end === 'signal' ? {} : { MILLRACE_FAULTS: `0/${end.replace('N', String(3 + dice.below(12)))}` }
    const broker = await target.restart(env)
    const { child } = broker
    const exited = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : Promise.resolve()
    if (end === 'signal') {
      const enough = load.settledCount + 500 + dice.below(5_000)
      await Promise.race([running, waitFor('records', () => load.settledCount >= enough, 30_000)])
      await broker.kill('SIGKILL')
    } else await Promise.race([exited, running])
  }
  const last = await target.restart({})
  load.stop()
  await running
  return problemsOf(load.sent, await readTopics(last, [TOPIC]))
}

interface Target {
  readonly host: string
  readonly port: number
  restart(env: Readonly<Record<string, string>>): Promise<SpawnedBroker>
}

/** A broker that listens at the same port with the same data each time. */
async function fixedBroker(t: TestContext): Promise<Target> {
  const dataDir = temporaryDirectory(t)
  let broker = await spawnBroker(t, { dataDir, flags: { '--shards': '1' } })
  await createTopics(broker, [TOPIC])
  const { host, port } = broker.es01
  return {
    host,
    port,
    async restart(env) {
      await broker.kill('SIGKILL')
      const flags = { '--bind-binary': `${host}:${port}`, '--shards': '1' }
      broker = await spawnBroker(t, { dataDir, env, flags })
      return broker
    }
  }
}

type Contents = Awaited<ReturnType<typeof readTopics>>

function problemsOf(sent: readonly Sent[], contents: Contents): string[] {
  const problems: string[] = []
  const places = new Map<string, { partition: number; offset: number }>()
  const lastOfKey = new Map<string, number>()
  for (const { partition, records } of contents) {
    for (const { value, offset } of records) {
      if (places.has(value)) problems.push(`${value} is there twice`)
      places.set(value, { partition, offset })
      const [key = '', number = ''] = value.split('/')
      if (Number(number) !== (lastOfKey.get(key) ?? -1) + 1) problems.push(`${value} is out of order`)
      lastOfKey.set(key, Number(number))
    }
  }
  for (const { value, result } of sent) {
    const place = places.get(value)
    if (place === undefined) problems.push(`${value} is lost`)
    else if (result?.partition !== place.partition || result.offset !== place.offset) {
      problems.push(`${value} is at ${place.partition}/${place.offset}, not ${result?.partition}/${result?.offset}`)
    }
  }
  if (places.size > sent.length) problems.push(`${places.size} records of ${sent.length}`)
  return problems
}

describe('a pipelined client whose broker is killed', () => {
  it(`has every record in the log once, in order, where it was told, through ${ROUNDS} ends`, async t => {
    t.diagnostic(replayLine(seed, FILE))
    const dice = diceOf(seed)
    const target = await fixedBroker(t)
    const client = new PipelinedClient({
      ...target,
      lingerMs: 1,
      gzip: dice.chance(0.5),
      reconnect: { initialMs: 10, maxMs: 200 }
    })
    atEnd(t, () => client.destroy())
    const load = new Load(record => client.send(TOPIC.name, record), diceOf(seed + 1))
    assert.deepEqual((await runThroughKills(load, dice, target)).slice(0, 10), [])
    t.diagnostic(`${load.sent.length} records, each once; ${load.duplicateCount} were told to be there already`)
    assert.ok(load.duplicateCount > 0, 'some were written by a request that was never answered')
    await client.close()
  })

  it('would be found out if it sent again without sequences', async t => {
    t.diagnostic(replayLine(seed, FILE))
    const target = await fixedBroker(t)
    const client = new PipelinedClient({ ...target, idempotent: false, reconnect: { initialMs: 10, maxMs: 200 } })
    atEnd(t, () => client.destroy())
    const send: Send = record => client.send(TOPIC.name, record).catch(() => send(record))
    const problems = await runThroughKills(new Load(send, diceOf(seed + 1)), diceOf(seed), target)
    assert.ok(
      problems.some(problem => problem.endsWith('is there twice')),
      problems.slice(0, 10).join('\n')
    )
  })
})
