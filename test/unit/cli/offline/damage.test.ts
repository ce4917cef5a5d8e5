/** Damage planted in every region of a journal: `verify` finds it, names its range, and says whose records it costs. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Finding } from '../../../../src/cli/offline/findings.ts'
import type { Verification } from '../../../../src/cli/offline/verification.ts'
import { diskOf, takeImage, withChange, withFlip, type JournalImage } from '../../../support/log-image.ts'
import { chosenSeed, diceOf, replayLine } from '../../../support/log-random.ts'
import { makeSample, openSample, type SampleGroup } from '../../../support/log-sample.ts'
import { plainSlot } from '../../../support/log-slot-bytes.ts'
import { imageOf, topicOf, verify } from './offline-directories.ts'

const sample = makeSample()
const store = imageOf([topicOf(1, 'orders', 1, 3), topicOf(2, 'notes', 10, 1)])
const totalRecords = [...sample.records.values()].reduce((sum, records) => sum + records.length, 0)

const verifySample = (image: JournalImage): Verification => verify(image, store)
const recordsOf = ({ shards }: Verification): number => shards.reduce((sum, shard) => sum + shard.records, 0)

/** The one finding of damage. */
function only({ findings }: Verification): Finding {
  const [finding] = findings.damage
  assert.ok(finding !== undefined && findings.damageCount === 1, JSON.stringify(findings.damage, null, 1))
  return finding
}

const rangeOf = ({ startByte, endByte }: Finding): [number | null, number | null] => [startByte, endByte]

function bytesOf(file: string): Buffer {
  return sample.image.get(file) ?? assert.fail(`no file ${file}`)
}

function groupsIn(file: string): SampleGroup[] {
  return sample.groups.filter(group => group.file === file)
}

/** A group in the middle of each slot: sealed when it was full, sealed by a clean end, still open. */
const places = [
  ['a slot that was full', sample.fullFile],
  ['a slot that was closed', sample.closedFile],
  ['the open slot', sample.openFile]
] as const

describe('an undamaged journal', () => {
  it('has no damage and no notes, and all is counted', () => {
    const verification = verifySample(sample.image)
    assert.deepEqual([verification.findings.damage, verification.findings.notes], [[], []])
    const [shard] = verification.shards
    assert.deepEqual([shard?.slots, shard?.groups, shard?.records], [3, sample.groups.length, totalRecords])
  })

  it('is sound after every start and every clean end', () => {
    let disk = diskOf(sample.image)
    for (let round = 0; round < 3; round++) {
      const log = openSample(disk)
      assert.deepEqual(verifySample(takeImage(disk)).findings.damage, [])
      if (round === 1) log.close()
      disk = disk.killProcess()
      const { findings } = verifySample(takeImage(disk))
      assert.deepEqual(findings.damage, [])
    }
  })
})

for (const [where, file] of places) {
  describe(`one damaged byte in ${where}`, () => {
    const group = groupsIn(file)[0] ?? assert.fail(where)
    const plain = plainSlot(bytesOf(file)).groups[0] ?? assert.fail(where)
    const directoryBytes = bytesOf(file).readUInt32BE(group.position + 28)
    const flip = (at: number): Verification => verifySample(withFlip(sample.image, file, at, 3))

    it('of a group header costs nothing and is named as the header', () => {
      const finding = only(flip(group.position + 41))
      assert.deepEqual(rangeOf(finding), [group.position, group.position + 64])
      assert.equal(finding.file, `journal/000/${file}`)
      assert.match(finding.problem, /^group \d+ has a damaged header$/)
      assert.match(finding.meaning, /costs readers nothing/)
    })

    it('of a directory is named to the byte', () => {
      const at = group.position + 64 + 9
      const finding = only(flip(at))
      assert.deepEqual(rangeOf(finding), [at, at + 1])
      assert.match(finding.problem, /damaged directory$/)
    })

    it('of the copy of the directory is named to the byte', () => {
      const at = group.endPosition - 32 - directoryBytes + 70
      const finding = only(flip(at))
      assert.deepEqual(rangeOf(finding), [at, at + 1])
      assert.match(finding.problem, /damaged copy of the directory$/)
    })

    it('of a trailer is named as the trailer', () => {
      const finding = only(flip(group.endPosition - 20))
      assert.deepEqual(rangeOf(finding), [group.endPosition - 32, group.endPosition])
      assert.match(finding.problem, /damaged trailer$/)
    })

    it('of the padding is named to the byte', () => {
      const at = group.endPosition - 32 - directoryBytes - 1
      assert.equal(bytesOf(file)[at], 0)
      const finding = only(flip(at))
      assert.deepEqual(rangeOf(finding), [at, at + 1])
      assert.match(finding.problem, /padding$/)
    })

    for (const [what, shift, pattern] of [
      ['records', 100, /fails its CRC/],
      ['CRC', 18, /fails its CRC/],
      ['base offset', 7, /has base offset \d+ where \d+ is next/],
      ['leader epoch', 15, /has leader epoch \d+ where \d+ is right/],
      ['magic', 16, /not a record batch/],
      ['length', 9, /longer than its run/]
    ] as const) {
      it(`of the ${what} of a batch costs the offsets of its run, which are named with topic and partition`, () => {
        for (const entry of plain.entries) {
          const start = bytesOf(file).indexOf(entry.run, group.position)
          const verification = flip(start + shift)
          const finding = only(verification)
          assert.deepEqual(rangeOf(finding), [start, start + entry.run.length])
          assert.match(finding.problem, pattern)
          assert.match(finding.meaning, /reads of these offsets are refused/)
          const topic = entry.handle === 10 ? 'notes' : 'orders'
          assert.deepEqual(finding.partition, {
            handle: entry.handle,
            topic,
            partition: topic === 'notes' ? 0 : entry.handle - 1,
            isDeleted: false
          })
          assert.deepEqual([finding.firstOffset, finding.lastOffset], [entry.baseOffset, entry.nextOffset - 1])
          assert.equal(recordsOf(verification), totalRecords - entry.recordCount)
        }
      })
    }

    it('of a header block costs nothing', () => {
      for (const [at, range] of [
        [30, [0, 4096]],
        [4096 + 4000, [4096, 8192]]
      ] as const) {
        const finding = only(flip(at))
        assert.deepEqual(rangeOf(finding), [...range])
        assert.match(finding.problem, /header block is damaged/)
      }
    })

    it('of each header block keeps the shard down, and the other slots are still checked', () => {
      const image = withFlip(withFlip(sample.image, file, 30), file, 4096 + 30)
      const verification = verifySample(image)
      const headers = verification.findings.damage.filter(finding => /both header blocks/.test(finding.problem))
      assert.deepEqual(headers.map(rangeOf), [[0, 8192]])
      assert.equal(verification.shards[0]?.slots, 2)
    })
  })
}

for (const [where, file] of places.slice(0, 2)) {
  describe(`footer and tail of ${where}`, () => {
    const footerAt = Math.max(...groupsIn(file).map(group => group.endPosition))
    const size = bytesOf(file).length
    const footerBytes = bytesOf(file).readUInt32BE(size - 4096 + 24)

    it('are found damaged and cost nothing', () => {
      for (const [at, range, pattern] of [
        [footerAt + 40, [footerAt, footerAt + footerBytes], /footer fails its checksum/],
        [footerAt + footerBytes - 1, [footerAt, footerAt + footerBytes], /footer fails its checksum/],
        [size - 4096 + 3, [size - 4096, size], /tail block is damaged/],
        [size - 4096 + 12, [size - 4096, size], /tail block is damaged/],
        [size - 1, [size - 4096, size], /tail block is damaged/]
      ] as const) {
        const verification = verifySample(withFlip(sample.image, file, at))
        const finding = only(verification)
        assert.deepEqual(rangeOf(finding), [...range], `byte ${at}`)
        assert.match(finding.problem, pattern)
        assert.match(finding.meaning, /costs readers nothing/)
        assert.equal(recordsOf(verification), totalRecords)
      }
    })

    it('are missed when they are gone', () => {
      const finding = only(verifySample(withChange(sample.image, file, bytes => bytes.fill(0, size - 4096))))
      assert.match(finding.problem, /tail block is gone/)
    })
  })
}

describe('the last group of an open slot', () => {
  const last = sample.groups.at(-1) ?? assert.fail('groups')

  it('is a note and no damage if it is not whole: nothing proves that it was synced', () => {
    const { findings } = verifySample(withFlip(sample.image, sample.openFile, last.endPosition - 5))
    assert.deepEqual(findings.damage, [])
    assert.ok(findings.notes.length > 0)
    for (const note of findings.notes) {
      assert.deepEqual(rangeOf(note), [last.position, last.endPosition])
      assert.match(note.meaning, /the next start cuts it/)
      assert.ok(note.partition !== null && note.firstOffset !== null)
    }
  })
})

describe('a start that found damage', () => {
  /** The journal after the start of a broker, and its kill. */
  const afterStart = (image: JournalImage): JournalImage => {
    const disk = diskOf(image)
    openSample(disk)
    return takeImage(disk.killProcess())
  }

  it('leaves the same damage behind, and a footer that agrees with it', () => {
    for (const file of places.map(([, name]) => name)) {
      const plain = plainSlot(bytesOf(file)).groups[0]?.entries[0] ?? assert.fail(file)
      const image = withFlip(sample.image, file, bytesOf(file).indexOf(plain.run) + 100)
      const before = verifySample(image)
      assert.deepEqual(only(verifySample(afterStart(image))), only(before))
    }
  })

  it('leaves no damage where it cut a torn group and began new leader epochs', () => {
    const last = sample.groups.at(-1) ?? assert.fail('groups')
    const after = verifySample(afterStart(withFlip(sample.image, sample.openFile, last.endPosition - 5)))
    assert.deepEqual([after.findings.damage, after.findings.notes], [[], []])
    assert.equal(after.shards[0]?.slots, 4)
    assert.equal(recordsOf(after), totalRecords - 8)
  })
})

describe('a group of which neither directory nor trailer can be read', () => {
  const spoil = (group: SampleGroup): JournalImage =>
    withFlip(withFlip(sample.image, group.file, group.position + 70), group.file, group.endPosition - 5)

  it('costs readers nothing in a sealed slot, whose footer names its runs', () => {
    for (const file of [sample.fullFile, sample.closedFile]) {
      const group = groupsIn(file)[0] ?? assert.fail(file)
      const verification = verifySample(spoil(group))
      const finding = only(verification)
      assert.deepEqual(rangeOf(finding), [group.position, group.endPosition])
      assert.match(finding.meaning, /costs readers nothing/)
      assert.equal(recordsOf(verification), totalRecords)
    }
  })

  it('keeps the shard down in an open slot, and the offsets that are missing are named', () => {
    const group = groupsIn(sample.openFile)[1] ?? assert.fail('groups')
    const [damaged, ...gaps] = verifySample(spoil(group)).findings.damage
    assert.ok(damaged !== undefined)
    assert.deepEqual(rangeOf(damaged), [group.position, group.endPosition])
    assert.match(damaged.meaning, /a start refuses this shard/)
    const plain = plainSlot(bytesOf(sample.openFile)).groups.find(({ position }) => position === group.position)
    assert.deepEqual(
      gaps.map(gap => [gap.partition?.handle, gap.firstOffset, gap.lastOffset]).sort(),
      plain?.entries.map(entry => [entry.handle, entry.baseOffset, entry.nextOffset - 1]).sort()
    )
  })
})

describe('slots that are missing or in the wrong place', () => {
  it('are damage: a gap in the sequence', () => {
    const image = new Map(sample.image)
    image.delete(sample.closedFile)
    const { findings } = verifySample(image)
    assert.ok(findings.damage.some(finding => /^slot 2 is missing/.test(finding.problem)))
    assert.ok(findings.damage.some(finding => finding.problem === 'no readable group holds these offsets'))
  })

  it('are damage: the newest one, which the store remembers', () => {
    const image = new Map(sample.image)
    image.delete(sample.openFile)
    const remembering = { ...store, newestSlots: [{ shard: 0, sequence: 3 }] }
    assert.deepEqual(verify(sample.image, remembering).findings.damage, [])
    assert.match(only(verify(image, remembering)).problem, /ends with slot 2, and slot 3 was written/)
  })

  it('are damage: the same sequence twice', () => {
    const image = new Map(sample.image).set('0009.slot', bytesOf(sample.fullFile))
    const finding = only(verifySample(image))
    assert.match(finding.problem, /says that it is slot 1, which 0001\.slot is as well/)
  })

  it('are notes where a start only tidies up', () => {
    const image = new Map(sample.image)
      .set('0007.filling', Buffer.alloc(4096))
      .set('0008.slot', Buffer.alloc(64 * 1024))
      .set('readme.txt', Buffer.from('hello'))
    const { findings, shards } = verifySample(image)
    assert.deepEqual([findings.damage, findings.notes.length, shards[0]?.spares], [[], 2, 1])
  })
})

describe('a store that does not fit the journal', () => {
  it('is damage where it has no topic for a handle', () => {
    const finding = only(verify(sample.image, imageOf([topicOf(1, 'orders', 1, 3)])))
    assert.match(finding.problem, /no topic for partition handle 10/)
  })

  it('is sound where the topic was deleted', () => {
    const tombstone = { id: topicOf(2, 'notes', 10, 1).id, name: 'notes', firstHandle: 10, partitionCount: 1 }
    const image = imageOf([topicOf(1, 'orders', 1, 3)], { tombstones: [tombstone] })
    assert.deepEqual(verify(sample.image, image).findings.damage, [])
  })

  it('is damage where another shard owns a partition, or a journal is missing', () => {
    const { damage } = verify(sample.image, { ...store, shardCount: 2 }).findings
    const problems = damage.map(finding => finding.problem)
    assert.ok(problems.includes('the journal of shard 1 is missing'))
    assert.ok(problems.includes('partition handle 1 belongs to shard 1'))
  })

  it('is damage where two topics claim a handle', () => {
    const topics = [topicOf(1, 'orders', 1, 3), topicOf(3, 'other', 3, 1), topicOf(2, 'notes', 10, 1)]
    assert.match(only(verify(sample.image, imageOf(topics))).problem, /'orders' and 'other' claim the same/)
  })
})

describe('a damaged byte anywhere', () => {
  it('is inside of a range that is reported, and no record is counted that is damaged', () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    const last = sample.groups.at(-1)
    for (let i = 0; i < 400; i++) {
      const group = dice.pick(sample.groups.filter(candidate => candidate !== last))
      const at = group.position + dice.below(group.endPosition - group.position)
      const message = `byte ${at} of ${group.file}; ${replayLine(seed, 'test/unit/cli/offline/damage.test.ts')}`
      const verification = verifySample(withFlip(sample.image, group.file, at, dice.below(8)))
      const { damage } = verification.findings
      assert.ok(
        damage.some(({ startByte, endByte }) => (startByte ?? Infinity) <= at && at < (endByte ?? 0)),
        `${message}\n${JSON.stringify(damage)}`
      )
      const lost = new Map(
        damage.flatMap(({ partition, firstOffset, lastOffset }) =>
          partition === null ? [] : [[`${partition.handle} ${firstOffset}`, (lastOffset ?? 0) - (firstOffset ?? 0) + 1]]
        )
      )
      assert.equal(recordsOf(verification) + [...lost.values()].reduce((a, b) => a + b, 0), totalRecords, message)
    }
  })

  it('never ends the check, however many there are', () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    const names = [...sample.image.keys()]
    for (let i = 0; i < 150; i++) {
      let image = sample.image
      for (let flip = 0; flip < 12; flip++) {
        const name = dice.pick(names)
        image = withFlip(image, name, dice.below(image.get(name)?.length ?? 1), dice.below(8))
      }
      const cut = dice.pick(names)
      if (dice.chance(0.3)) image = withChange(image, cut, bytes => bytes.subarray(0, dice.below(bytes.length)))
      try {
        verifySample(image)
      } catch (error) {
        throw new Error(`round ${i}; ${replayLine(seed, 'test/unit/cli/offline/damage.test.ts')}`, { cause: error })
      }
    }
  })
})
