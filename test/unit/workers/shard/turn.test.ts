/** The turn of a shard: the commit comes first, and reads get no more of it than their share (R1). */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import { counterIndex } from '../../../../src/wire/shard/counters.ts'
import { append, openLog, textRecord } from '../../../support/log-harness.ts'
import { ShardStage } from '../../../support/shard-stage.ts'

const MIB = 1024 * 1024
/** Of reads in one turn, and one piece of a slot on top. */
const TURN_BYTES_MAX = MIB + 256 * 1024
const HANDLE = 1
const topic = { firstHandle: HANDLE, partitionCount: 1, segmentBytes: 2 ** 31 - 1 }
/** The encode buffer holds next to nothing: reads go to the disk. */
const options = { firstSlotBytes: 16 * MIB, slotBytes: 16 * MIB, encodeBufferBytes: 256 * 1024 }

/** A shard with 6 MiB in partition 0. */
function stage(t: TestContext, monotonicMs: () => number): ShardStage {
  const disk = new SimulatedDisk()
  const first = openLog(disk, options)
  first.table.open(topic)
  for (let i = 0; i < 60; i++)
    append(first, { firstHandle: HANDLE, records: [textRecord(0, null, 'v'.repeat(100_000))] })
  first.close()
  const shard = new ShardStage(t, disk, monotonicMs, options)
  shard.log.table.open(topic)
  return shard
}

/** Bytes that reads have taken from memory and disk. */
function bytesRead({ log }: ShardStage): number {
  return log.window.probe.memoryBytes + log.window.probe.diskBytes
}

describe('the turn of a shard', () => {
  it('commits first, and between two groups reads a bounded part of what a long read wants', t => {
    const built: { shard?: ShardStage } = {}
    let produced = 0
    let isStopped = false
    const seen: { groups: number; bytes: number }[] = []
    // The shard looks at its clock all the time: what main does meanwhile is done there. The time itself stands still.
    const lookAtClock = (): number => {
      const { shard } = built
      if (shard === undefined) return 0
      const groups = shard.counters[counterIndex.groups] ?? 0
      seen.push({ groups, bytes: bytesRead(shard) })
      assert.ok(seen.length < 10_000, 'the read comes to an end')
      if (groups === produced && !isStopped) shard.produce(++produced, HANDLE, [textRecord(0, null, 'new')])
      if (shard.counters[counterIndex.reads] === 1 && !isStopped) {
        isStopped = true
        shard.control({ kind: 'stop', id: 77 })
      }
      return 0
    }
    const shard = stage(t, lookAtClock)
    built.shard = shard
    shard.read(1000, HANDLE, 5 * MIB)
    shard.produce(++produced, HANDLE, [textRecord(0, null, 'first')])
    shard.loop.run()

    assert.ok(seen.every(({ groups, bytes }) => groups > 0 || bytes === 0))
    let before = 0
    for (let groups = 1; groups <= produced; groups++) {
      const most = seen.reduce((sum, look) => (look.groups === groups ? Math.max(sum, look.bytes) : sum), before)
      assert.ok(most - before <= TURN_BYTES_MAX, `${most - before} bytes were read behind group ${groups}`)
      before = most
    }
    assert.ok(before >= 5 * 1_000_000, 'the read went to the disk')
    const answers = shard.answers()
    const place = answers.findIndex(({ kind }) => kind === 'read')
    const groupsBefore = answers.slice(0, place).filter(({ kind }) => kind === 'produced').length
    assert.ok(groupsBefore >= 4, `${groupsBefore} produces were answered before the long read`)
    const chunks = answers.filter(answer => answer.kind === 'read')
    const bytes = chunks.reduce((sum, chunk) => sum + chunk.bytes, 0)
    assert.ok(bytes === chunks[0]?.totalBytes && bytes > 5 * 1_000_000, 'and all of it came in the end')
    assert.equal(answers.filter(({ kind }) => kind === 'produced').length, produced)
  })

  it('ends the share of reads after a millisecond, however many wait', t => {
    let nowMs = 0
    const shard = stage(t, () => (nowMs += 0.3))
    for (let id = 1; id <= 20; id++) shard.read(id, HANDLE, 1000, id)
    const answered: number[] = []
    let turns = 0
    for (let isLeft = true; isLeft; turns++) {
      isLeft = shard.reads.run(() => undefined)
      const ids = shard.answers().map(({ id }) => id)
      assert.ok(ids.length <= 4, `${ids.length} reads in one turn`)
      answered.push(...ids)
    }
    assert.ok(turns >= 5, `${turns} turns`)
    assert.deepEqual(
      answered,
      Array.from({ length: 20 }, (_, i) => i + 1)
    )
  })
})
