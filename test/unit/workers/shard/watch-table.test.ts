/** Watches on a shard: answered when what they wait for is durable, once, never before, and whatever happens meanwhile. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { FaultPoint } from '../../../../src/disk/faults.ts'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import { ShardPoisoned } from '../../../../workers/shard/produce-group.ts'
import { partitionOf, textRecord } from '../../../support/log-harness.ts'
import { InterruptibleDisk } from '../../../support/log-interruptible-disk.ts'
import { chosenSeed, diceOf, replayLine } from '../../../support/log-random.ts'
import { ShardStage } from '../../../support/shard-stage.ts'

const topic = { firstHandle: 1, partitionCount: 3, segmentBytes: 2 ** 31 - 1 }
const other = { firstHandle: 10, partitionCount: 1, segmentBytes: 2 ** 31 - 1 }

class Stage {
  readonly disk = new InterruptibleDisk(new SimulatedDisk())
  readonly shard: ShardStage
  #produceId = 1000

  constructor(t: TestContext) {
    this.shard = new ShardStage(t, this.disk, () => 0)
    this.shard.log.table.open(topic)
    this.shard.log.table.open(other)
  }

  /** The shard takes what main asked on its reads ring. */
  readAll(): void {
    while (this.shard.reads.run(() => undefined));
  }

  /** One durable group with a record of so many bytes for each. */
  produce(partition: number, ...sizes: readonly number[]): void {
    const records = sizes.map(size => textRecord(partition, null, 'v'.repeat(size)))
    this.shard.produce(this.#produceId++, 1, records)
    this.shard.group.run()
  }

  /** What watches heard since the last call, by id. */
  heard(): string[] {
    return this.shard
      .answers()
      .filter(({ kind }) => kind !== 'produced')
      .map(answer => `${answer.id} ${answer.kind === 'failed' ? answer.code : answer.kind}`)
  }

  failNext(point: FaultPoint, code: 'EIO' | 'ENOSPC'): void {
    const firstCall = this.disk.faults.callCount(point) + 1
    this.disk.faults.arm({ point, firstCall, lastCall: firstCall, fault: { kind: 'error', code } })
  }
}

describe('a watch on a shard', () => {
  it('is answered at once if there is something at or above its offset', t => {
    const stage = new Stage(t)
    stage.produce(0, 1, 1)
    for (const offset of [0, 1]) stage.shard.watch(offset, 1, { offset })
    stage.readAll()
    assert.deepEqual(stage.heard(), ['0 available', '1 available'])
    assert.equal(stage.shard.watches.count, 0)
  })

  it('stands at the end until a record is durable there, also of a partition that never had one', t => {
    const stage = new Stage(t)
    stage.produce(0, 1)
    stage.shard.watch(1, 1, { offset: 1 })
    stage.shard.watch(2, 1, { partition: 2 })
    stage.readAll()
    assert.deepEqual([stage.heard(), stage.shard.watches.count], [[], 2])
    stage.produce(1, 1)
    assert.deepEqual(stage.heard(), [], 'another partition is none of its business')
    stage.produce(0, 1)
    assert.deepEqual(stage.heard(), ['1 available'])
    stage.produce(2, 1)
    assert.deepEqual([stage.heard(), stage.shard.watches.count], [['2 available'], 0])
    stage.produce(0, 1)
    assert.deepEqual(stage.heard(), [], 'it is answered once')
  })

  it('hears after the acknowledgement of the records, in the same turn', t => {
    const stage = new Stage(t)
    stage.shard.watch(1, 1)
    stage.readAll()
    stage.shard.produce(2, 1, [textRecord(0, null, 'v')])
    stage.shard.group.run()
    assert.deepEqual(
      stage.shard.answers().map(({ kind }) => kind),
      ['produced', 'available']
    )
  })

  it('hears nothing of a group that was not written', t => {
    const stage = new Stage(t)
    stage.shard.watch(1, 1)
    stage.readAll()
    stage.failNext('group.write', 'ENOSPC')
    stage.produce(0, 1)
    assert.deepEqual(
      stage.shard.answers().map(({ id, kind }) => `${id} ${kind}`),
      ['1000 failed']
    )
    stage.failNext('group.sync', 'EIO')
    assert.throws(() => stage.produce(0, 1), ShardPoisoned)
    assert.deepEqual(
      stage.shard.answers().map(({ id, kind }) => `${id} ${kind}`),
      ['1001 failed']
    )
  })

  it('beyond the end waits until the end has passed its offset', t => {
    const stage = new Stage(t)
    stage.shard.watch(1, 1, { offset: 2 })
    stage.shard.watch(2, 1, { offset: 2 ** 60 })
    stage.readAll()
    stage.produce(0, 1, 1)
    assert.deepEqual(stage.heard(), [])
    stage.produce(0, 1)
    assert.deepEqual([stage.heard(), stage.shard.watches.count], [['1 available'], 1])
  })

  it('waits for as many bytes as it asked for, and counts none below its offset', t => {
    const stage = new Stage(t)
    stage.produce(0, 5000)
    stage.shard.watch(1, 1, { offset: 1, minBytes: 1500 })
    stage.shard.watch(2, 1, { offset: 2, minBytes: 1500 })
    stage.shard.watch(3, 1, { offset: 0, minBytes: 4000 })
    stage.readAll()
    assert.deepEqual(stage.heard(), ['3 available'])
    stage.produce(0, 1000)
    assert.deepEqual(stage.heard(), [])
    stage.produce(0, 1000)
    assert.deepEqual(stage.heard(), ['1 available'])
    stage.produce(0, 1000)
    assert.deepEqual(stage.heard(), ['2 available'])
  })

  it('counts from the start of a log that begins later, and not what was deleted while it stood', t => {
    const stage = new Stage(t)
    const partition = partitionOf(stage.shard.log, 1, 0)
    stage.produce(0, 1000)
    stage.shard.watch(1, 1, { offset: 0, minBytes: 2500 })
    stage.readAll()
    stage.produce(0, 1000)
    stage.shard.log.moveStarts([{ log: partition, offset: 2 }])
    stage.shard.watch(2, 1, { offset: 0 })
    stage.readAll()
    assert.deepEqual(stage.heard(), [], 'nothing is left')
    stage.produce(0, 1000)
    assert.deepEqual(stage.heard(), ['2 available'], 'with what is gone it would be enough')
    stage.produce(0, 2000)
    assert.deepEqual(stage.heard(), ['1 available'])
  })

  it('that is taken back is answered, once, so that main has nothing of it in progress', t => {
    const stage = new Stage(t)
    stage.shard.watch(1, 1)
    stage.shard.watch(2, 1)
    stage.readAll()
    stage.shard.unwatch(1)
    stage.readAll()
    assert.deepEqual([stage.heard(), stage.shard.watches.count], [['1 available'], 1])
    stage.produce(0, 1)
    assert.deepEqual(stage.heard(), ['2 available'])
    for (const id of [1, 2, 3]) stage.shard.unwatch(id)
    stage.readAll()
    assert.deepEqual(stage.heard(), [], 'those were answered before')
  })

  it('may be taken back before the shard has seen it', t => {
    const stage = new Stage(t)
    stage.shard.watch(1, 1)
    stage.shard.unwatch(1)
    stage.readAll()
    assert.deepEqual([stage.heard(), stage.shard.watches.count], [['1 available'], 0])
  })

  it('hears that its topic is gone, also if it came after that', t => {
    const stage = new Stage(t)
    stage.shard.watch(1, 1, { partition: 1 })
    stage.shard.watch(2, 1, { partition: 2, minBytes: 100 })
    stage.shard.watch(3, 10)
    stage.readAll()
    stage.shard.control({ kind: 'drop', id: 4, topic: { firstHandle: 1, partitionCount: 3 } })
    stage.shard.control({ kind: 'stop', id: 5 })
    stage.shard.loop.run()
    stage.shard.watch(6, 1)
    stage.readAll()
    assert.deepEqual(stage.heard(), [
      '1 TOPIC_NOT_FOUND',
      '2 TOPIC_NOT_FOUND',
      '4 acknowledged',
      '5 acknowledged',
      '6 TOPIC_NOT_FOUND'
    ])
    assert.equal(stage.shard.watches.count, 1, 'those of other topics stand')
  })

  it('is not missed by a record that came between the read that found nothing and the watch', t => {
    const stage = new Stage(t)
    stage.shard.read(1, 1, 1000)
    stage.readAll()
    stage.produce(0, 1)
    stage.shard.watch(2, 1, { offset: 0 })
    stage.readAll()
    assert.deepEqual(stage.heard(), ['1 read', '2 available'])
  })
})

describe('watches, records and deletions in any order', () => {
  it('are such that each watch is answered once, when there is something for it and not before', t => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    const replay = replayLine(seed, 'test/unit/workers/shard/watch-table.test.ts')
    const stage = new Stage(t)
    /** Watches that must stand, by id. */
    const standing = new Map<number, { readonly partition: number; readonly offset: number }>()
    const logOf = (partition: number) => partitionOf(stage.shard.log, 1, partition)
    const isReady = ({ partition, offset }: { partition: number; offset: number }): boolean =>
      logOf(partition).highWatermark > Math.max(offset, logOf(partition).startOffset)
    let nextId = 0
    for (let step = 0; step < 600; step++) {
      const partition = dice.below(3)
      const log = logOf(partition)
      const ended: number[] = []
      const action = dice.below(10)
      if (action < 5) {
        const wanted = { partition, offset: Math.max(0, log.highWatermark - 3 + dice.below(8)) }
        stage.shard.watch(nextId, 1, wanted)
        standing.set(nextId++, wanted)
      } else if (action < 7) {
        const id = dice.below(nextId + 1)
        if (standing.has(id)) ended.push(id)
        stage.shard.unwatch(id)
      } else if (action < 9) {
        stage.produce(partition, ...Array.from({ length: 1 + dice.below(4) }, () => 1 + dice.below(50)))
      } else if (log.highWatermark > log.startOffset) {
        const offset = log.startOffset + 1 + dice.below(log.highWatermark - log.startOffset)
        stage.shard.log.moveStarts([{ log, offset }])
      }
      stage.readAll()
      for (const [id, watch] of standing) if (isReady(watch) && !ended.includes(id)) ended.push(id)
      const heard = stage.heard().sort()
      assert.deepEqual(heard, ended.map(id => `${id} available`).sort(), `step ${step}; ${replay}`)
      for (const id of ended) standing.delete(id)
      assert.equal(stage.shard.watches.count, standing.size, replay)
    }
    assert.ok(nextId > 100, replay)
  })
})
