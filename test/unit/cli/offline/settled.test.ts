/** `verify` over settled data: every planted damage is found where it is, and named with what it costs. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { Finding } from '../../../../src/cli/offline/findings.ts'
import { encodeManifest } from '../../../../src/log/manifest-format.ts'
import { chosenSeed, diceOf, replayLine } from '../../../support/log-random.ts'
import {
  allSettledRecords,
  unsettledRecords,
  diskOfTree,
  makeSettled,
  manifestOf,
  servedOf,
  settledPartition,
  takeTree,
  withBit,
  withFile,
  type Tree
} from '../../../support/settled-sample.ts'
import { run } from '../terminal.ts'
import { imageOf, snapshot, topicOf, verifyDisk, writeTree } from './offline-directories.ts'
import type { Verification } from '../../../../src/cli/offline/verification.ts'

const disk = makeSettled()
const sound: Tree = takeTree(disk)
const manifest = manifestOf(disk)
const topics = [topicOf(1, 'orders', 1, 3)]
const store = imageOf(topics)
const large = settledPartition(disk, 0)
const first = large.segments[0] ?? assert.fail('no segment')
const firstFile = (kind: string): string => `topics/orders~1/0/00000000000000000000${kind}`
const packOf = (partition: number): string => {
  const pack = settledPartition(disk, partition).segments[0]?.extents[0]?.pack ?? 0
  return `packs/000/${String(pack).padStart(8, '0')}.pack`
}

const verify = (tree: Tree): Verification => verifyDisk(diskOfTree(tree), store)
const recordsOf = ({ shards }: Verification): number => shards.reduce((sum, shard) => sum + shard.records, 0)
const totalRecords = recordsOf(verify(sound))

/** The one finding of damage. */
function only({ findings }: Verification): Finding {
  const [finding] = findings.damage
  assert.ok(finding !== undefined && findings.damageCount === 1, JSON.stringify(findings.damage, null, 1))
  return finding
}

describe('settled data that is whole', () => {
  it('has every layer in it, no damage and no notes, and both layers are counted', () => {
    const extents = [...manifest.partitions.values()].flatMap(({ segments }) => segments.flatMap(s => s.extents))
    assert.ok(extents.some(({ pack }) => pack !== 0))
    assert.ok(extents.some(({ pack, blocksPack }) => pack === 0 && blocksPack !== 0))
    assert.ok(extents.some(({ pack, blocksPack }) => pack === 0 && blocksPack === 0))
    const verification = verify(sound)
    assert.deepEqual([verification.findings.damage, verification.findings.notes], [[], []])
    const segments = [...manifest.partitions.values()].reduce((sum, partition) => sum + partition.segments.length, 0)
    assert.equal(verification.shards[0]?.segments, segments)
    assert.equal(totalRecords, allSettledRecords + unsettledRecords)
  })

  it('frees its slots: what stands in them is no damage', () => {
    const stale = [...sound.keys()].filter(path => path.endsWith('.slot'))
    assert.ok(stale.length > 1)
    const [shard] = verify(sound).shards
    assert.ok((shard?.spares ?? 0) >= 1)
  })
})

describe('a damaged batch', () => {
  for (const [what, path, shift] of [
    ["of a segment's own log", firstFile('.log'), 200],
    [
      'that is the only one of a pack extent',
      packOf(2),
      (settledPartition(disk, 2).segments[0]?.extents[0]?.position ?? 0) + 70
    ]
  ] as const) {
    it(`${what} is found, with its bytes and with the offsets that readers are refused`, () => {
      const tree = withBit(sound, path, shift)
      const finding = only(verify(tree))
      assert.equal(finding.file, path)
      assert.ok(Number(finding.startByte) <= shift && shift < Number(finding.endByte))
      assert.match(finding.meaning, /^reads of these offsets are refused/)
      const partition = finding.partition?.partition ?? -1
      assert.deepEqual(servedOf(tree, partition).damaged, [
        { firstOffset: finding.firstOffset, lastOffset: finding.lastOffset }
      ])
    })
  }
})

describe('files beside a sealed log', () => {
  const repaired = (tree: Tree): Tree => {
    const target = diskOfTree(tree)
    const { findings } = verifyDisk(target, store, true)
    assert.deepEqual(findings.damage, [])
    assert.ok(findings.repairCount > 0)
    return takeTree(target)
  }

  for (const kind of ['.blocks', '.index', '.timeindex']) {
    it(`are missed, found wrong, and written anew: ${kind}`, () => {
      for (const change of [
        () => null,
        (bytes: Buffer) => bytes.subarray(0, bytes.length - 4),
        (bytes: Buffer) => bytes.fill(bytes.readUInt8(3) ^ 1, 3, 4)
      ]) {
        const tree = withFile(sound, firstFile(kind), change)
        const finding = only(verify(tree))
        assert.equal(finding.file, firstFile(kind))
        assert.match(finding.meaning, /^costs readers nothing: .* can be rebuilt: 'millrace verify --repair'/)
        assert.deepEqual(servedOf(tree, 0), servedOf(sound, 0))
        const after = repaired(tree)
        assert.deepEqual(verify(after).findings.damage, [])
        assert.deepEqual(servedOf(after, 0), servedOf(sound, 0))
        assert.deepEqual([...after.keys()].sort(), [...sound.keys()].sort())
      }
    })
  }

  it('are left alone where the log is damaged too: the entries may say more than the batches', () => {
    const tree = withFile(withBit(sound, firstFile('.log'), 40_000), firstFile('.blocks'), () => null)
    const target = diskOfTree(tree)
    const { findings } = verifyDisk(target, store, true)
    assert.ok(
      findings.damage.some(({ file, meaning }) => file === firstFile('.blocks') && /log is damaged/.test(meaning))
    )
    assert.ok(!takeTree(target).has(firstFile('.blocks')))
  })

  it('are not touched without --repair', () => {
    const tree = withFile(sound, firstFile('.index'), () => null)
    const target = diskOfTree(tree)
    verifyDisk(target, store)
    assert.ok([...takeTree(target)].every(([path, bytes]) => tree.get(path)?.equals(bytes)))
  })
})

describe('files that are missing or short', () => {
  it('are damage: the log of a segment', () => {
    const { findings } = verify(withFile(sound, firstFile('.log'), () => null))
    const [finding] = findings.damage
    assert.deepEqual(
      [finding?.file, finding?.problem, finding?.firstOffset, finding?.lastOffset],
      [firstFile('.log'), 'the file is missing', 0, first.nextOffset - 1]
    )
  })

  it('are damage: a log that ends before its committed length', () => {
    const tree = withFile(sound, firstFile('.log'), bytes => bytes.subarray(0, bytes.length - 100))
    const finding = only(verify(tree))
    assert.match(finding.problem, /^the file ends at byte \d+, before its committed length$/)
    assert.equal(finding.lastOffset, first.nextOffset - 1)
  })

  it('are damage: the manifest, and the slots are still checked', () => {
    const { findings, shards } = verify(withBit(sound, 'journal/000/manifest', 60))
    assert.match(findings.damage[0]?.problem ?? '', /^the manifest is damaged: /)
    assert.ok((shards[0]?.records ?? 0) >= unsettledRecords)
  })
})

describe('files that do not count', () => {
  it('are notes and no damage: those that no manifest names, and those that wait to be removed', async t => {
    const removals = [{ path: 'packs/000/00000001.pack', dueMs: Date.UTC(2026, 0, 2) }]
    const unpacked = new Map([...manifest.partitions].filter(([handle]) => handle === 1))
    const left = encodeManifest({ ...manifest, partitions: unpacked, removals })
    const tree = new Map(sound)
      .set('topics/orders~1/0/00000000000000009999.log', Buffer.from('left over'))
      .set('journal/000/manifest', left)
    const dataDir = await writeTree(t, tree, topics)
    const before = snapshot(dataDir)
    const { stdout } = await run(['verify', '--data-dir', dataDir])
    assert.match(stdout, /\nnote: packs\/000\/00000001\.pack\n {2}nothing in it counts.*\n {2}.* from 2026-01-02T/)
    assert.match(
      stdout,
      /\nnote: topics\/orders~1\/0\/00000000000000009999\.log\n {2}kept, not named by any manifest\n/
    )
    assert.deepEqual(snapshot(dataDir), before)
  })

  it('are not mentioned where all is in use', async t => {
    const { code, stdout } = await run(['verify', '--data-dir', await writeTree(t, sound, topics)])
    assert.deepEqual([code, /note:|damage:/.test(stdout)], [0, false], stdout)
  })
})

describe('verify --repair', () => {
  it('prints what it wrote anew, and exits well; a second run has nothing to do', async t => {
    const dataDir = await writeTree(
      t,
      withFile(sound, firstFile('.timeindex'), () => null),
      topics
    )
    assert.equal((await run(['verify', '--data-dir', dataDir])).code, 1)
    const repaired = await run(['verify', '--repair', '--data-dir', dataDir])
    assert.match(
      repaired.stdout,
      /\nrepaired: topics\/\S+\.timeindex\n {2}the file is missing\n {2}written anew from the log\n/
    )
    assert.match(repaired.stdout, /\nno damage found; 1 file\(s\) repaired;/)
    assert.equal(repaired.code, 0)
    const right = sound.get(firstFile('.timeindex'))
    assert.ok(right?.equals(readFileSync(join(dataDir, firstFile('.timeindex')))))
    assert.match((await run(['verify', '--data-dir', dataDir])).stdout, /\nno damage found; \d+ bytes/)
  })
})

describe('a damaged bit anywhere in settled data', () => {
  it('is reported, and what a start serves has no wrong byte', () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    const right = [0, 1, 2].map(partition => servedOf(sound, partition).records)
    const places = [...manifest.partitions.values()].flatMap(({ segments, directory }) =>
      segments.flatMap(segment =>
        segment.extents.flatMap(extent => {
          const base = `${directory}/${String(segment.baseOffset).padStart(20, '0')}`
          const pack = (number: number): string => `packs/000/${String(number).padStart(8, '0')}.pack`
          const data = {
            path: extent.pack === 0 ? `${base}.log` : pack(extent.pack),
            start: extent.position,
            bytes: extent.bytes
          }
          const path = extent.blocksPack === 0 ? `${base}.blocks` : pack(extent.blocksPack)
          return [data, { path, start: extent.blocksPosition, bytes: extent.blockCount * 32 }]
        })
      )
    )
    for (let i = 0; i < 40; i++) {
      const place = dice.pick(places)
      // Every other time among the first bytes of a batch, which its own checksum does not cover.
      const at = place.start + dice.below(i % 2 === 0 ? place.bytes : Math.min(place.bytes, 21))
      const message = `bit of ${place.path} at ${at}; ${replayLine(seed, 'test/unit/cli/offline/settled.test.ts')}`
      const tree = withBit(sound, place.path, at, dice.below(8))
      assert.ok(verify(tree).findings.damageCount > 0, message)
      right.forEach((records, partition) => {
        const served = servedOf(tree, partition)
        const lost = (offset: number): boolean =>
          served.damaged.some(({ firstOffset, lastOffset }) => firstOffset <= offset && offset <= lastOffset)
        assert.deepEqual(
          served.records,
          records.filter(record => !lost(Number.parseInt(record))),
          message
        )
      })
    }
  })
})
