/**
 * Kill −9 under load over both protocols at once: what was acknowledged is there after the restart, once, at its
 * offset; what was refused is not; what was read stays. 50 rounds in the normal run, 1000 with MILLRACE_LONG=1.
 *
 * The seed decides the load, and when the kill comes: after so many answers, or at the n-th call of a named point of
 * the disk, also while the broker recovers from the kill before. What the machine does in between it does not decide.
 */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { CrashLoad, createTopics, readTopics, type LoadTopic } from '../support/crash-load.ts'
import { spawnBroker, waitFor, type SpawnedBroker, type Variant } from '../support/broker.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { judge, type FoundRecord, type PartitionContents, type SentRecord } from '../support/history.ts'
import { diceOf, replayLine, type Dice } from '../support/log-random.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const FILE = 'test/crash/kill-rounds.test.ts'
/** Kills under load; starts that are killed before they serve come on top. */
const ROUNDS = isLong ? 1000 : 50
const topics: readonly LoadTopic[] = [
  { name: 'alpha', partitions: 3 },
  { name: 'beta', partitions: 2 }
]

/** Kills while records are written: at a call of the running broker. */
const runningKills = ['group.write', 'group.sync'] as const
const writeKills = ['kill', 'short-kill', 'kill-after'] as const
/** Kills while a start recovers: it opens, confirms, copies, seals. */
const recoveryPoints = [
  'slot.create',
  'slot.header-write',
  'slot.header-sync',
  'slot.footer-write',
  'slot.footer-sync',
  'slot.truncate',
  'group.write',
  'group.sync',
  'journal.directory-sync'
] as const

type Plan =
  | { readonly kind: 'after answers'; readonly count: number }
  | { readonly kind: 'while running' | 'while recovering'; readonly faults: string }

interface Totals {
  kills: Record<Plan['kind'], number>
  startsKilled: number
  acked: number
  refused: number
  unknown: number
  unknownFound: number
  read: number
}

/** One data directory and all that was done to it. */
class Directory {
  readonly path: string
  readonly shards: number
  /** Sent since the last judgement, then everything before it. */
  fresh: SentRecord[] = []
  readonly judged: SentRecord[] = []
  freshRead: FoundRecord[] = []
  /** Contents up to the ends below, as read after the restarts. */
  readonly seen: FoundRecord[] = []
  readonly ends = new Map<string, number>()
  hasTopics = false

  constructor(path: string, shards: number) {
    this.path = path
    this.shards = shards
  }

  /** Judges what came since the last time, reading the tails alone. */
  async judgeFresh(broker: SpawnedBroker, totals: Totals): Promise<void> {
    const contents = await readTopics(broker, topics, this.ends)
    const verdict = judge(this.fresh, contents, this.freshRead)
    assert.deepEqual(verdict.anomalies, [])
    this.#adopt(contents)
    this.judged.push(...this.fresh)
    totals.acked += verdict.acked
    totals.refused += verdict.refused
    totals.unknown += verdict.unknown
    totals.unknownFound += verdict.unknownFound
    totals.read += this.freshRead.length
    this.fresh = []
    this.freshRead = []
  }

  /** Judges everything, from offset 0. */
  async judgeAll(broker: SpawnedBroker): Promise<void> {
    assert.deepEqual(judge(this.judged, await readTopics(broker, topics), this.seen).anomalies, [])
  }

  #adopt(contents: readonly PartitionContents[]): void {
    for (const part of contents) {
      this.seen.push(...part.records)
      const last = part.records.at(-1)
      if (last !== undefined) this.ends.set(`${part.topic}/${part.partition}`, last.offset + 1)
    }
  }
}

function planRound(dice: Dice, shards: number): Plan {
  const choice = dice.unit()
  if (choice < 0.5) return { kind: 'after answers', count: 1 + dice.below(200) }
  const shard = dice.below(shards)
  if (choice < 0.75) {
    const point = dice.pick(runningKills)
    const kill = dice.pick(point === 'group.sync' ? (['kill', 'kill-after'] as const) : writeKills)
    return { kind: 'while running', faults: `${shard}/${point}:${5 + dice.below(60)}=${kill}` }
  }
  const point = dice.pick(recoveryPoints)
  const kill = dice.pick(point.endsWith('write') ? writeKills : (['kill', 'kill-after'] as const))
  return { kind: 'while recovering', faults: `${shard}/${point}:${1 + dice.below(2)}=${kill}` }
}

/** @returns null if the planted kill came before the broker was ready. */
async function spawnOrDie(
  t: TestContext,
  directory: Directory,
  plan: Plan,
  engine: Variant['engine']
): Promise<SpawnedBroker | null> {
  const variant = { engine, shards: directory.shards } as Variant
  const env = plan.kind === 'after answers' ? {} : { MILLRACE_FAULTS: plan.faults }
  try {
    return await spawnBroker(t, { dataDir: directory.path, variant, env })
  } catch (error) {
    // Killed, it says nothing; a broker that refuses to start says so, and that is never right here.
    const isKilled = error instanceof Error && /ended before/.test(error.message) && !/cannot start/.test(error.message)
    if (plan.kind === 'while recovering' && isKilled) return null
    throw error
  }
}

async function playRound(
  t: TestContext,
  directory: Directory,
  round: number,
  dice: Dice,
  totals: Totals
): Promise<void> {
  const plan = planRound(dice, directory.shards)
  const loadSeed = dice.below(0x7fff_ffff)
  const broker = await spawnOrDie(t, directory, plan, dice.pick(['uws', 'node'] as const))
  if (broker === null) {
    totals.startsKilled++
    return
  }
  if (!directory.hasTopics) {
    await createTopics(broker, topics)
    directory.hasTopics = true
  }
  await directory.judgeFresh(broker, totals)
  const load = await CrashLoad.start(broker, {
    seed: loadSeed,
    label: `r${round}`,
    topics,
    es01Producers: 2,
    inFlight: 4,
    httpProducers: 3,
    hasReaders: true,
    readFrom: directory.ends,
    scattered: 0.3
  })
  const answers = plan.kind === 'after answers' ? plan.count : 100
  const isEnough = (): boolean => load.acks.length >= answers || broker.child.signalCode !== null
  await waitFor('enough answers', isEnough, 20_000)
  // A plan that strikes while records are written must strike; one for recovery may name a call that never came.
  if (plan.kind === 'while running') await waitFor('the planted kill', () => broker.child.signalCode !== null, 20_000)
  await broker.kill('SIGKILL')
  await load.stop()
  assert.equal(broker.child.signalCode, 'SIGKILL')
  directory.fresh = load.sent
  directory.freshRead = load.read
  totals.kills[plan.kind]++
}

describe('kill −9 under load over HTTP and ES01 at once', () => {
  it(`loses and doubles nothing that was acknowledged, in ${ROUNDS} rounds on 1 and on 3 shards`, async t => {
    t.diagnostic(replayLine(seed, FILE))
    const dice = diceOf(seed)
    const directories = [1, 3].map(shards => new Directory(temporaryDirectory(t), shards))
    const kills = { 'after answers': 0, 'while running': 0, 'while recovering': 0 }
    const totals: Totals = { kills, startsKilled: 0, acked: 0, refused: 0, unknown: 0, unknownFound: 0, read: 0 }
    for (let round = 0; round - totals.startsKilled < ROUNDS; round++) {
      assert.ok(round < 2 * ROUNDS, 'most starts serve')
      const directory = directories[round % 2] as Directory
      try {
        await playRound(t, directory, round, dice, totals)
      } catch (error) {
        throw new Error(`round ${round}, ${directory.shards} shard(s): ${replayLine(seed, FILE)}`, { cause: error })
      }
    }
    for (const directory of directories) {
      const variant = { engine: 'uws', shards: directory.shards } as Variant
      const broker = await spawnBroker(t, { dataDir: directory.path, variant })
      await directory.judgeFresh(broker, totals)
      await directory.judgeAll(broker)
      assert.deepEqual(await broker.kill('SIGTERM'), { code: 0, signal: null })
    }
    const { acked, unknown, unknownFound, read, startsKilled } = totals
    t.diagnostic(
      `${ROUNDS} rounds (${JSON.stringify(kills)}, ${startsKilled} starts killed): ${acked} records acked, 0 lost, 0 duplicated; ` +
        `${unknown} without an answer, ${unknownFound} of them in the log; ${read} read meanwhile`
    )
    assert.ok(acked > ROUNDS * 20, `only ${acked} records were acknowledged`)
    assert.ok(kills['while running'] > 0 && startsKilled > 0, 'every kind of kill came')
  })
})
