/** A commit of which it is not known whether it happened: nothing is removed that the shard may read, and it learns all. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FaultPlan } from '../../../../src/disk/fault-plan.ts'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import { loadManifest } from '../../../../src/log/manifest-file.ts'
import type { ManifestPartition } from '../../../../src/log/manifest.ts'
import type { PartitionChange } from '../../../../src/log/settle/partition-change.ts'
import type { ShardLog } from '../../../../src/log/shard-log.ts'
import { packMessage, unpackMessage } from '../../../../src/wire/msgpack.ts'
import type { SettlerReply } from '../../../../src/wire/shard/settle.ts'
import { ManifestDesk, type ManifestJob } from '../../../../workers/settler/manifest-desk.ts'
import { append, openLog, testDirectory, textRecord } from '../../../support/log-harness.ts'

const handle = 1
const topic = { firstPartition: 0, firstHandle: handle, partitionCount: 1, directory: 'topics/t~1' }
const place = { shard: 0, placementEpoch: 1, journalDirectory: testDirectory, dataDirectory: '/data' }

class Stage {
  readonly faults = new FaultPlan()
  readonly disk = new SimulatedDisk({ faults: this.faults })
  readonly #replies: SettlerReply[] = []
  readonly #desk = new ManifestDesk(
    this.disk,
    reply => this.#replies.push(reply),
    () => false
  )
  readonly #log: ShardLog

  constructor() {
    this.#log = openLog(this.disk, { slotBytes: 2 ** 20, firstSlotBytes: 2 ** 20 })
    this.#log.table.open({ firstHandle: handle, partitionCount: 1, segmentBytes: 150_000 })
    for (let i = 0; i < 40; i++)
      append(this.#log, { firstHandle: handle, records: [textRecord(0, null, `${i}`.padEnd(10_000, 'x'))] })
    this.#log.sealOpenSlot()
  }

  /** @returns what the thread answers. */
  async run(job: ManifestJob): Promise<SettlerReply[]> {
    await this.#desk.run(job)
    return this.#replies.splice(0)
  }

  get toldCount(): number {
    return this.#desk.toldCount
  }

  settle(): Promise<SettlerReply[]> {
    const slots = [...this.#log.sealedSlots]
    return this.run({
      kind: 'settle',
      place,
      wish: { slots, startOffsets: [], unreadJobs: 0 },
      topics: [topic],
      graceMs: 0
    })
  }

  /** The topic is deleted. */
  drop(): Promise<SettlerReply[]> {
    const wish = { slots: [], startOffsets: [], unreadJobs: 0 }
    return this.run({ kind: 'settle', place, wish, topics: [{ ...topic, directory: null }], graceMs: 0 })
  }

  sweep(): Promise<SettlerReply[]> {
    return this.run({ kind: 'sweep', place })
  }

  /** As a compaction that leaves no record of the oldest segment; the last sync of its commit fails. */
  replaceInDoubt(): Promise<SettlerReply[]> {
    const [oldest] = this.partition().segments
    assert.ok(oldest?.isSealed)
    const inputs = [oldest]
    const outputs = [{ ...oldest, bytes: 0, compaction: 7, extents: [] }]
    const replacement = packMessage({ handle, inputs, outputs, directory: null })
    this.#failCommit()
    return this.run({ kind: 'replace', place, replacement, graceMs: 0 })
  }

  partition(): ManifestPartition {
    const partition = loadManifest(this.disk, testDirectory, 0, 1).partitions.get(handle)
    assert.ok(partition)
    return partition
  }

  /** The next sync of the journal's directory by a commit fails. */
  #failCommit(): void {
    const firstCall = this.faults.callCount('manifest.directory-sync') + 1
    const fault = { kind: 'error', code: 'EIO' } as const
    this.faults.arm({ point: 'manifest.directory-sync', firstCall, lastCall: firstCall, fault })
  }

  fileCount(): number {
    return this.disk.list('/data/topics/t~1/0').length
  }
}

/** Compactions of the oldest segment that a shard is told of. */
function toldCompactions(replies: readonly SettlerReply[]): number[] {
  return replies.flatMap(reply => {
    if (reply.kind !== 'settled-part') return []
    const bytes = Buffer.from(reply.changes)
    const changes = unpackMessage(bytes, 0, bytes.length) as PartitionChange[]
    return changes.map(({ partition }) => partition.segments[0]?.compaction ?? -1)
  })
}

describe('a replacement whose last sync failed', () => {
  it('leaves the files that the shard still reads, and is told with the next job', async () => {
    const stage = new Stage()
    await stage.settle()
    const before = stage.fileCount()
    const [replaced] = await stage.replaceInDoubt()
    assert.ok(replaced?.kind === 'replaced' && !replaced.isCommitted && replaced.problem !== null)
    assert.equal(stage.partition().segments[0]?.compaction, 7, 'it happened after all')
    const [swept] = await stage.sweep()
    assert.ok(swept?.kind === 'swept' && swept.removed === 0 && swept.problem !== null)
    assert.equal(stage.fileCount(), before)
    assert.deepEqual(toldCompactions(await stage.settle()), [7])
    const [again] = await stage.sweep()
    assert.ok(again?.kind === 'swept' && again.removed > 0 && again.problem === null)
    assert.ok(stage.fileCount() < before)
  })

  it('is committed once more before anything is built upon it: a later sync alone proves nothing', async () => {
    const stage = new Stage()
    await stage.settle()
    await stage.replaceInDoubt()
    const { commit } = loadManifest(stage.disk, testDirectory, 0, 1)
    await stage.run({ kind: 'find-compactable', place, ranges: [] })
    assert.equal(loadManifest(stage.disk, testDirectory, 0, 1).commit, commit + 1)
  })
})

describe('what the settler has told of a partition', () => {
  it('is forgotten with its topic: partitions come and go for ever', async () => {
    const stage = new Stage()
    await stage.settle()
    assert.equal(stage.toldCount, 1)
    await stage.drop()
    assert.equal(stage.toldCount, 0)
  })
})
