/**
 * `millrace quarantine` from end to end: a start refuses what nothing can read, `list` names it, `skip` gives it up, and
 * then the shard starts, serves all the rest, and says of every offset that is gone that it is damaged.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createRealDisk } from '../../../../src/disk/real-disk.ts'
import { loadManifest } from '../../../../src/log/manifest-file.ts'
import { SettleMemory } from '../../../../src/log/settle/settle-memory.ts'
import { settle } from '../../../../src/log/settle/settle.ts'
import { ShardLog } from '../../../../src/log/shard-log.ts'
import { append, notReady, openLog, partitionOf, readBack, textRecord } from '../../../support/log-harness.ts'
import { withFlip, type JournalImage } from '../../../support/log-image.ts'
import { makeSample, sampleOptions, sampleTopics } from '../../../support/log-sample.ts'
import { plainSlot } from '../../../support/log-slot-bytes.ts'
import { run } from '../terminal.ts'
import { snapshot, topicOf, writeDirectory } from './offline-directories.ts'

const sample = makeSample()
const topics = [topicOf(1, 'orders', 1, 3), topicOf(2, 'gap', 4, 6), topicOf(3, 'notes', 10, 1)]
const handles = [1, 2, 3, 10]

function start(dataDir: string, newestSlot: number): ShardLog {
  const log = openLog(createRealDisk(), {
    ...sampleOptions,
    directory: join(dataDir, 'journal', '000'),
    dataDirectory: dataDir,
    newestSlot
  })
  for (const topic of sampleTopics) log.table.open(topic)
  return log
}

interface Range {
  readonly handle: number
  readonly first: number
  readonly last: number
}

const logOf = (log: ShardLog, handle: number): ReturnType<typeof partitionOf> =>
  handle === 10 ? partitionOf(log, 10, 0) : partitionOf(log, 1, handle - 1)

/** Every partition serves what was not lost, and reports the lost ranges behind which something follows. */
function checkServed(log: ShardLog, lost: readonly Range[]): void {
  for (const handle of handles) {
    const own = lost.filter(range => range.handle === handle)
    const isLost = (offset: number): boolean => own.some(({ first, last }) => first <= offset && offset <= last)
    const right = (sample.records.get(handle) ?? []).filter(({ offset }) => !isLost(offset))
    const { records, damaged } = readBack(log, logOf(log, handle))
    assert.deepEqual(
      records.filter(({ value }) => value.toString() !== 'later').map(({ offset, value }) => [offset, value]),
      right.map(({ offset, value }) => [offset, value]),
      `partition ${handle}`
    )
    const end = (right.at(-1)?.offset ?? -1) + 1
    const reported = damaged.flatMap(({ firstOffset, lastOffset }) =>
      Array.from({ length: lastOffset - firstOffset + 1 }, (_, i) => firstOffset + i)
    )
    const expected = own.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, i) => first + i))
    assert.deepEqual(
      reported.sort((a, b) => a - b),
      expected.filter(offset => offset < end).sort((a, b) => a - b),
      `partition ${handle}`
    )
  }
}

const rangesIn = (file: string, isLost: (position: number) => boolean): Range[] =>
  plainSlot(sample.image.get(file) ?? assert.fail(file))
    .groups.filter(({ position }) => isLost(position))
    .flatMap(({ entries }) =>
      entries.map(entry => ({ handle: entry.handle, first: entry.baseOffset, last: entry.nextOffset - 1 }))
    )

const lostGroup = sample.groups.filter(({ file }) => file === sample.openFile)[1] ?? assert.fail('groups')
const without = (file: string): JournalImage => new Map([...sample.image].filter(([name]) => name !== file))
const headless = (file: string): JournalImage => withFlip(withFlip(sample.image, file, 30), file, 4096 + 30)

interface Plant {
  readonly what: string
  readonly image: JournalImage
  readonly newestSlot: number
  readonly ids: readonly string[]
  readonly refusal: RegExp
  readonly lost: readonly Range[]
}

const plants: readonly Plant[] = [
  {
    what: 'a group of which neither directory nor trailer can be read',
    image: withFlip(
      withFlip(sample.image, lostGroup.file, lostGroup.position + 70),
      lostGroup.file,
      lostGroup.endPosition - 5
    ),
    newestSlot: 3,
    ids: [`0/${lostGroup.file}/${lostGroup.position}`],
    refusal: /neither a readable directory nor trailer/,
    lost: rangesIn(lostGroup.file, position => position === lostGroup.position)
  },
  {
    what: 'a slot between others whose two headers are damaged',
    image: headless(sample.closedFile),
    newestSlot: 3,
    ids: [`0/${sample.closedFile}`, '0/slot-2'],
    refusal: /both header blocks/,
    lost: rangesIn(sample.closedFile, () => true)
  },
  {
    what: 'a slot between others that is missing',
    image: without(sample.closedFile),
    newestSlot: 3,
    ids: ['0/slot-2'],
    refusal: /slot 3 .* where slot 2 is expected/,
    lost: rangesIn(sample.closedFile, () => true)
  },
  {
    what: 'the oldest slot, missing',
    image: without(sample.fullFile),
    newestSlot: 3,
    ids: ['0/slot-1'],
    refusal: /slot 2 .* where slot 1 is expected/,
    lost: rangesIn(sample.fullFile, () => true)
  },
  {
    what: 'the newest slot, missing',
    image: without(sample.openFile),
    newestSlot: 3,
    ids: ['0/slot-3'],
    refusal: /slot 3 was written: its file is missing/,
    lost: rangesIn(sample.openFile, () => true)
  },
  {
    what: 'the newest slot, whose two headers are damaged',
    image: headless(sample.openFile),
    newestSlot: 2,
    ids: [`0/${sample.openFile}`],
    refusal: /both header blocks/,
    lost: rangesIn(sample.openFile, () => true)
  }
]

/** Settles the oldest sealed slot, as the settler thread does. */
function settleOne(dataDir: string, log: ShardLog): void {
  const disk = createRealDisk()
  const journalDirectory = join(dataDir, 'journal', '000')
  const steps = settle(
    { disk, dataDirectory: dataDir, journalDirectory, memory: new SettleMemory() },
    loadManifest(disk, journalDirectory, 0, 1),
    {
      slots: log.sealedSlots.slice(0, 1),
      placeOf: handle => ({ kind: 'kept', directory: `topics/t~1/${handle}` }),
      startOffsets: new Map(),
      nowMs: 1_700_000_000_000,
      graceMs: 0
    }
  )
  for (;;) {
    const step = steps.next()
    if (step.done !== true) continue
    log.adopt(step.value.changed)
    log.freeSlots(step.value.manifest.settledSequence)
    return
  }
}

for (const { what, image, newestSlot, ids, refusal, lost } of plants) {
  describe(`${what}`, () => {
    it('keeps the shard down, is listed, is given up, and then all else is served', async t => {
      const dataDir = await writeDirectory(t, image, topics, newestSlot)
      assert.throws(() => start(dataDir, newestSlot), notReady(refusal))

      const words = ['--data-dir', dataDir]
      const listed = await run(['quarantine', 'list', ...words])
      assert.equal(listed.code, 1, listed.stderr)
      const found = [...listed.stdout.matchAll(/^ {2}its shard .*: millrace quarantine skip (\S+)$/gm)].map(
        match => match[1]
      )
      assert.deepEqual(found, ids, listed.stdout)

      const before = snapshot(dataDir)
      const asked = await run(['quarantine', 'skip', ...ids, ...words])
      assert.deepEqual([asked.code, asked.stderr.includes('repeat with --yes')], [1, true])
      assert.equal([...asked.stdout.matchAll(/^to give up: /gm)].length, ids.length)
      assert.deepEqual(snapshot(dataDir), before)
      assert.throws(() => start(dataDir, newestSlot), notReady(refusal))

      const given = await run(['quarantine', 'skip', ...ids, ...words, '--yes'])
      assert.equal(given.code, 0, given.stderr)
      const log = start(dataDir, newestSlot)
      checkServed(log, lost)
      for (const handle of handles) assert.equal(logOf(log, handle).leaderEpoch, 1, `partition ${handle}`)
      const newest = log.newestSlot
      log.close()

      // Twice told is not twice lost: the next start raises no epoch, and goes on.
      const again = start(dataDir, newest)
      checkServed(again, lost)
      append(again, { firstHandle: 10, records: [textRecord(0, null, 'later')] })
      assert.equal(logOf(again, 10).leaderEpoch, 1)
      again.sealOpenSlot()
      let settling = again
      while (settling.sealedSlots.length > 0) {
        // What was given up may be settled while slots that show it are not.
        settleOne(dataDir, settling)
        checkServed(settling, lost)
        const last = settling.newestSlot
        settling.close()
        settling = start(dataDir, last)
        checkServed(settling, lost)
      }
      settling.close()

      const after = await run(['quarantine', 'list', ...words])
      assert.ok(!after.stdout.includes('undecided'), after.stdout)
    })
  })
}

describe('quarantine', () => {
  it('keeps the bytes of a group that was given up, and verify says who decided', async t => {
    const [plant] = plants
    assert.ok(plant !== undefined)
    const dataDir = await writeDirectory(t, plant.image, topics, 3)
    const before = await run(['verify', '--data-dir', dataDir])
    assert.match(before.stdout, /a start refuses this shard/)
    assert.equal((await run(['quarantine', 'skip', ...plant.ids, '--data-dir', dataDir, '--yes'])).code, 0)
    const [kept] = readdirSync(join(dataDir, 'quarantine'))
    assert.equal(kept, `0-slot-3-${lostGroup.position}.bytes`)
    assert.deepEqual(
      readFileSync(join(dataDir, 'quarantine', kept)),
      plant.image.get(lostGroup.file)?.subarray(lostGroup.position, lostGroup.endPosition)
    )
    for (let round = 0; round < 2; round++) {
      const { code, stdout } = await run(['verify', '--data-dir', dataDir])
      assert.equal(code, 1)
      assert.match(stdout, /an operator gave it up/)
      assert.doesNotMatch(stdout, /a start refuses this shard|does not say what the groups/)
      start(dataDir, 3 + round).close()
    }
  })

  it('lists a damaged run with partition, offsets, bytes and the next readable offset', async t => {
    const entry = plainSlot(sample.image.get(sample.openFile) ?? assert.fail('slot')).groups[0]?.entries[0]
    assert.ok(entry !== undefined)
    const at = (sample.image.get(sample.openFile) ?? assert.fail('slot')).indexOf(entry.run)
    const dataDir = await writeDirectory(t, withFlip(sample.image, sample.openFile, at + 80), topics, 3)
    const { code, stdout } = await run(['quarantine', 'list', '--json', '--data-dir', dataDir])
    assert.equal(code, 1)
    const row = JSON.parse(stdout) as Record<string, unknown>
    assert.deepEqual(
      [row['kind'], row['topic'], row['partition'], row['first_offset'], row['last_offset'], row['next_offset']],
      ['damaged', 'orders', entry.handle - 1, entry.baseOffset, entry.nextOffset - 1, entry.nextOffset]
    )
    assert.deepEqual([row['start_byte'], row['end_byte']], [at, at + entry.run.length])
    const log = start(dataDir, 3)
    log.close()
    const later = await run(['quarantine', 'list', '--json', '--data-dir', dataDir])
    assert.equal(
      (JSON.parse(later.stdout) as Record<string, unknown>)['problem'],
      'a run that an earlier start quarantined'
    )
  })

  it('has nothing to list in a sound directory, and nothing to skip', async t => {
    const dataDir = await writeDirectory(t, sample.image, topics, 3)
    const { code, stdout, stderr } = await run(['quarantine', 'list', '--data-dir', dataDir])
    assert.deepEqual([code, stdout], [0, ''])
    assert.match(stderr, /no damage is known/)
    const skipped = await run(['quarantine', 'skip', '0/0001.slot/8192', '--yes', '--data-dir', dataDir])
    assert.deepEqual([skipped.code, existsSync(join(dataDir, 'quarantine'))], [2, false])
    assert.match(skipped.stderr, /'0\/0001\.slot\/8192' is nothing to decide/)
  })

  it('is refused where the decisions on disk are damaged, and so is a start', async t => {
    const [plant] = plants
    assert.ok(plant !== undefined)
    const image = new Map(plant.image).set('decisions.json', Buffer.from('{"version":1,"crc32c":1,"decisions":[]}'))
    const dataDir = await writeDirectory(t, image, topics, 3)
    assert.throws(() => start(dataDir, 3), notReady(/decisions\.json is damaged/))
    assert.match((await run(['verify', '--data-dir', dataDir])).stdout, /decisions\.json is damaged/)
    const { code, stderr } = await run(['quarantine', 'skip', ...plant.ids, '--yes', '--data-dir', dataDir])
    assert.equal(code, 3)
    assert.match(stderr, /decisions\.json is damaged/)
  })
})
