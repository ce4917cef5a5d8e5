/** Compaction that fails: it costs nobody else theirs, it is said to whoever asks, and only as long as it fails. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CompactPartitionResult } from '../../../src/background/compaction.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { Compaction } from '../../../src/broker/compaction.ts'
import { StructuralTurns } from '../../../src/broker/structural-turns.ts'
import { Catalog } from '../../../src/control/catalog.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import type { CompactablePartition } from '../../../src/wire/shard/settle.ts'
import { ManualClock } from '../../support/log-harness.ts'
import { configure, defaultConfig, emptyImage, remove, topicOf } from '../control/topics.ts'

const nothingToDo: CompactPartitionResult = {
  replacement: null,
  recordsRead: 1,
  recordsDropped: 0,
  opaqueBatches: 0,
  bytesRead: 1,
  bytesWritten: 0,
  problem: null,
  isDamaged: false
}

/** Two shards with one partition of a topic each: handles 2 and 1. What fails is set by the test. */
class Stage {
  readonly catalog = new Catalog({
    ...emptyImage,
    topics: [
      topicOf({
        id: 1,
        name: 'states',
        firstHandle: 1,
        partitionCount: 2,
        config: { ...defaultConfig, cleanup_policy: 'compact' }
      })
    ],
    nextTopicId: 2,
    nextHandle: 3
  })
  /** Its partitions cannot be found; −1: none. */
  lostShard = -1
  /** Text of the newest refusal. */
  refusal = ''
  /** What becomes of the job of a handle; absent: it finds nothing to do. */
  readonly outcomes = new Map<number, CompactPartitionResult | BrokerError>()
  /** What happens while a partition is compacted. */
  onRun: () => void = () => undefined
  readonly #done: number[] = []
  /** What was logged, in short. */
  readonly logged: string[] = []
  readonly #compaction = new Compaction({
    catalog: this.catalog,
    shards: {
      placementEpoch: 1,
      links: () => [{ shard: 0 }, { shard: 1 }],
      firstDown: () => null,
      refusal: shard => new BrokerError('SHARD_DOWN', { shard }),
      settleAll: () => Promise.resolve(),
      settler: { findCompactable: shard => this.#find(shard), replace: () => Promise.resolve(null) }
    },
    pool: { run: (_job, { partition }) => this.#run(partition[0] ?? 0) },
    turns: new StructuralTurns(),
    clock: new ManualClock(),
    logger: {
      ...silentLogger,
      warn: fields => void this.logged.push(`fails ${JSON.stringify(fields)}`),
      info: fields => void this.logged.push(`works ${JSON.stringify(fields)}`)
    },
    dataDirectory: '/data',
    intervalMs: 1000,
    mapBytes: 1000,
    space: { freeBytes: Number.POSITIVE_INFINITY },
    settleBytes: 0
  })

  #find(shard: number): Promise<CompactablePartition[]> {
    if (shard === this.lostShard) return Promise.reject(new Error('the manifest /data/journal/000/manifest is damaged'))
    const handle = 2 - shard
    return Promise.resolve([{ handle, key: 'k', bytes: 1, partition: Uint8Array.of(handle) }])
  }

  #run(handle: number): Promise<CompactPartitionResult> {
    this.#done.push(handle)
    this.onRun()
    const outcome = this.outcomes.get(handle) ?? nothingToDo
    return outcome instanceof BrokerError ? Promise.reject(outcome) : Promise.resolve(outcome)
  }

  /** One pass. @returns the code that it was refused with, handles gone over, and what is said of it. */
  async pass(): Promise<{ code: string; done: number[]; problem: string | null }> {
    let code = 'ok'
    try {
      await this.#compaction.runAll()
    } catch (error) {
      assert.ok(error instanceof BrokerError)
      code = error.code
      this.refusal = error.message
    }
    return { code, done: this.#done.splice(0), problem: this.#compaction.problem }
  }
}

describe('compaction', () => {
  it('goes on with the other shards where one cannot say what it has, and says so until it can', async () => {
    const stage = new Stage()
    stage.lostShard = 0
    const problem = 'compaction leaves out all of shard 0: the log says why'
    assert.deepEqual(await stage.pass(), { code: 'COMPACTION_INCOMPLETE', done: [1], problem })
    stage.lostShard = -1
    assert.deepEqual(await stage.pass(), { code: 'ok', done: [2, 1], problem: null })
  })

  it('goes on with the other partitions where a thread dies of one, and names no file to whoever asks', async () => {
    const stage = new Stage()
    const problem = 'compaction leaves out states/1: the log says why'
    stage.outcomes.set(2, new BrokerError('INTERNAL', { id: 'ab' }))
    assert.deepEqual(await stage.pass(), { code: 'COMPACTION_INCOMPLETE', done: [2, 1], problem })
    stage.outcomes.set(2, { ...nothingToDo, problem: 'EIO at segment.read of /data/topics/states~1/1/0.log' })
    assert.deepEqual(await stage.pass(), { code: 'COMPACTION_INCOMPLETE', done: [2, 1], problem })
  })

  it('says what is damaged to whoever asks, and to the log once, until that changes', async () => {
    const stage = new Stage()
    const damaged = (offset: number): CompactPartitionResult => {
      const problem = `the segment of offset ${offset} has damaged bytes`
      return { ...nothingToDo, problem, isDamaged: true }
    }
    stage.outcomes.set(1, damaged(4))
    stage.outcomes.set(2, damaged(7))
    for (let pass = 0; pass < 2; pass++) {
      const { code, problem } = await stage.pass()
      const left = 'states/1: the segment of offset 7 has damaged bytes; and 1 more'
      assert.deepEqual([code, problem], ['COMPACTION_INCOMPLETE', `compaction leaves out ${left}`])
      assert.equal(stage.refusal, `compaction left out ${left}; all else was gone over, and each pass tries it again`)
    }
    stage.outcomes.set(1, damaged(9))
    stage.outcomes.delete(2)
    await stage.pass()
    stage.outcomes.delete(1)
    assert.equal((await stage.pass()).code, 'ok')
    assert.deepEqual(stage.logged, [
      'fails {"topic":"states","partition":1,"cause":"the segment of offset 7 has damaged bytes"}',
      'fails {"topic":"states","partition":0,"cause":"the segment of offset 4 has damaged bytes"}',
      'works {"topic":"states","partition":1}',
      'fails {"topic":"states","partition":0,"cause":"the segment of offset 9 has damaged bytes"}',
      'works {"topic":"states","partition":0}'
    ])
  })

  it('has no trouble any more when the topic that made it is gone', async () => {
    const stage = new Stage()
    stage.lostShard = 0
    await stage.pass()
    remove(stage.catalog, 'states')
    assert.deepEqual(await stage.pass(), { code: 'ok', done: [], problem: null })
  })

  it('leaves alone what is not compacted any more when its turn comes', async () => {
    const stage = new Stage()
    stage.onRun = () => void configure(stage.catalog, 'states', { cleanup_policy: 'delete' })
    assert.deepEqual(await stage.pass(), { code: 'ok', done: [2], problem: null })
  })

  it('ends with the broker, and does not say that it is done', async () => {
    const stage = new Stage()
    stage.outcomes.set(2, new BrokerError('STOPPING'))
    assert.deepEqual(await stage.pass(), { code: 'STOPPING', done: [2], problem: null })
  })
})
