/** Moving segments to cold storage on a disk that loses power at every call: nothing is lost, and it is done in the end. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createDirectoryStore } from '../../../src/cold/directory-store.ts'
import type { Disk } from '../../../src/disk/disk.ts'
import type { FaultPoint } from '../../../src/disk/faults.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { ColdSegmentAbsent } from '../../../src/log/cold-segment.ts'
import { prepareColdSegment, removeOutgoing } from '../../../src/log/cold-files.ts'
import { loadManifest } from '../../../src/log/manifest-file.ts'
import type { Manifest, ManifestPartition, ManifestSegment } from '../../../src/log/manifest.ts'
import { SettleMemory } from '../../../src/log/settle/settle-memory.ts'
import { removeDue } from '../../../src/log/settle/removals.ts'
import { replaceSegments } from '../../../src/log/settle/replace.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { tierableSegments } from '../../../src/log/tiering.ts'
import { cachedPath } from '../../../src/wire/shard/cold.ts'
import type { ShardTopic } from '../../../src/wire/shard/messages.ts'
import { append, openLog, partitionOf, readBack, testDirectory, textRecord } from '../../support/log-harness.ts'
import { Interruption, InterruptibleDisk } from '../../support/log-interruptible-disk.ts'
import { chosenSeed, diceOf, replayLine } from '../../support/log-random.ts'
import { settleAll } from '../../support/log-settle.ts'

const FILE = 'test/unit/log/tiering.test.ts'
const topic: ShardTopic = { firstHandle: 1, partitionCount: 1, segmentBytes: 3000 }
const memory = new SettleMemory(8 * 1024)
const nowMs = 1_700_000_000_000
/** Everything sealed. */
const limits = { retentionMs: null, retentionBytes: 0 }

/** Segments partly in a pack, partly in files of their own; the newest is not sealed. */
function settledDisk(): { disk: SimulatedDisk; values: string[] } {
  const disk = new SimulatedDisk({ directories: ['/data', '/cold'] })
  const log = open(disk)
  const values: string[] = []
  for (let i = 0; i < 12; i++) {
    values.push(`${i}:`.padEnd(900 + i, 'x'))
    append(log, { firstHandle: 1, records: [textRecord(0, `k${i}`, values[i] ?? '')] })
    if (i === 5) {
      log.sealOpenSlot()
      settleAll(disk, log, { sizes: { ownBytesMin: 1, turnBytes: 1024 } })
    }
  }
  log.sealOpenSlot()
  settleAll(disk, log)
  log.close()
  return { disk: disk.killProcess(), values }
}

function open(disk: Disk): ShardLog {
  const log = openLog(disk)
  log.table.open(topic)
  return log
}

function partitionIn(manifest: Manifest): ManifestPartition {
  const partition = manifest.partitions.get(1)
  assert.ok(partition !== undefined)
  return partition
}

/** What broker, background thread and settler do together, one segment after another. */
async function tierAll(disk: Disk): Promise<void> {
  const place = { disk, dataDirectory: '/data', journalDirectory: testDirectory, memory }
  const store = createDirectoryStore({ disk, directory: '/cold/store' })
  await store.sweep()
  for (;;) {
    const manifest = loadManifest(disk, testDirectory, 0, 1)
    const partition = partitionIn(manifest)
    const [segment] = tierableSegments(partition, limits, nowMs)
    if (segment === undefined) break
    const steps = prepareColdSegment(place, { shard: 0, placementEpoch: 1 }, partition, segment)
    let step = steps.next()
    while (step.done !== true) step = steps.next()
    for (const { key, path, bytes, checksum } of step.value.files) {
      await store.put(key, path, bytes, checksum)
      await store.verify(key, bytes, checksum)
    }
    removeOutgoing(place, step.value)
    const replacement = { handle: 1, inputs: [segment], outputs: [step.value.segment], directory: null }
    const done = replaceSegments(place, manifest, replacement, { nowMs, graceMs: 0 })
    assert.ok(done !== null)
    const { refused } = removeDue(disk, '/data', done.manifest.removals, nowMs)
    assert.deepEqual(refused, [])
  }
}

/** Reads everything; what is cold is fetched as it is asked for. */
async function readAll(disk: Disk): Promise<string[]> {
  const store = createDirectoryStore({ disk, directory: '/cold/store' })
  const log = open(disk)
  for (;;) {
    try {
      const { records, damaged } = readBack(log, partitionOf(log, 1, 0))
      assert.deepEqual(damaged, [])
      return records.map(({ value }) => value.toString())
    } catch (error) {
      if (!(error instanceof ColdSegmentAbsent)) throw error
      const { name, logKey, blocksKey, logBytes, blocksBytes, logChecksum, blocksChecksum } = error.segment
      if (!disk.exists('/data/cold-cache')) disk.makeDirectory('segment.directory', '/data/cold-cache')
      const blocks = await store.fetch(blocksKey, `/data/${cachedPath(name, '.blocks')}`, blocksBytes)
      const read = await store.fetch(logKey, `/data/${cachedPath(name, '.log')}`, logBytes)
      assert.deepEqual([blocks.bytes, blocks.crc32c], [blocksBytes, blocksChecksum])
      assert.deepEqual([read.bytes, read.crc32c], [logBytes, logChecksum])
    }
  }
}

/** Moves segments until the power goes at a call. @returns null for `found`: it came to its end before. */
async function cutAt(
  call: number,
  seed: number,
  ignoredSyncs: readonly FaultPoint[] = []
): Promise<{ found: SimulatedDisk | null; values: string[] }> {
  const { disk, values } = settledDisk()
  const stopping = new InterruptibleDisk(disk, ignoredSyncs)
  stopping.stopAt(call, call % 2 === 0)
  try {
    await tierAll(stopping)
    return { found: null, values }
  } catch (error) {
    if (!(error instanceof Interruption)) throw error
    const dice = diceOf(seed + call)
    return { found: disk.crash(() => dice.unit()), values }
  }
}

const coldOf = (disk: Disk): ManifestSegment[] =>
  partitionIn(loadManifest(disk, testDirectory, 0, 1)).segments.filter(({ cold }) => cold !== undefined)

describe('segments that are moved to cold storage', () => {
  it('read the same, whatever files they lay in, and leave none behind', async () => {
    const { disk, values } = settledDisk()
    const before = partitionIn(loadManifest(disk, testDirectory, 0, 1)).segments
    const kinds = new Set(before.flatMap(({ extents }) => extents.map(({ pack }) => pack > 0)))
    assert.equal(kinds.size, 2, 'some in packs, some not')
    await tierAll(disk)
    assert.equal(coldOf(disk).length, before.length - 1)
    assert.deepEqual(
      disk.list('/data/topics/t~1/1').filter(name => name.endsWith('.log')),
      []
    )
    assert.deepEqual(await readAll(disk), values)
  })

  it('are lost at no power cut, at whatever call of the disk', async t => {
    const seed = chosenSeed()
    t.diagnostic(replayLine(seed, FILE))
    let cuts = 0
    for (let call = 1; ; call += 3) {
      const { found, values } = await cutAt(call, seed)
      if (found === null) break
      cuts++
      assert.deepEqual(await readAll(found), values, `cut at call ${call}`)
      const next = found.killProcess()
      await tierAll(next)
      assert.deepEqual(await readAll(next), values, `cut at call ${call}, and done again`)
    }
    assert.ok(cuts > 20, `${cuts} cuts`)
  })

  it('would be lost without the syncs of their objects: the test above sees it', async t => {
    const seed = chosenSeed()
    t.diagnostic(replayLine(seed, FILE))
    let losses = 0
    for (let call = 1; losses === 0; call += 3) {
      const { found, values } = await cutAt(call, seed, ['segment.sync'])
      assert.ok(found !== null, 'no cut lost anything')
      const read = await readAll(found).catch(() => [])
      if (read.length < values.length) losses++
    }
  })
})
