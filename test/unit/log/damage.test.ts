/**
 * Damaged bytes, everywhere in a journal: what is served is right or it is reported, never wrong (R2, V2).
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BrokerError } from '../../../src/model/errors.ts'
import { partitionOf, readBack, notReady } from '../../support/log-harness.ts'
import { diskOf, withChange, withFlip, type JournalImage } from '../../support/log-image.ts'
import { chosenSeed, diceOf, replayLine } from '../../support/log-random.ts'
import { makeSample, openSample, sampleTopics } from '../../support/log-sample.ts'

const sample = makeSample()
const lastThree = sample.groups.slice(-3)
const [third, second, last] = lastThree
assert.ok(third !== undefined && second !== undefined && last !== undefined)

interface Verdict {
  /** null: the shard did not start; `problem` says why. */
  readonly servedRecords: number | null
  readonly problem: string
  /** Records that the log has, but reports as damaged. */
  readonly damagedRecords: number
  readonly cutGroups: number
  readonly quarantinedRuns: number
}

/** Opens the image and compares all that is served with what was appended. @throws if anything is wrong or out of place. */
function judge(image: JournalImage): Verdict {
  let log
  try {
    log = openSample(diskOf(image))
  } catch (error) {
    if (!(error instanceof BrokerError) || error.code !== 'NOT_READY') throw error
    return { servedRecords: null, problem: error.message, damagedRecords: 0, cutGroups: 0, quarantinedRuns: 0 }
  }
  let servedRecords = 0
  let damagedRecords = 0
  for (const { firstHandle, partitionCount } of sampleTopics) {
    for (let partition = 0; partition < partitionCount; partition++) {
      const expected = sample.records.get(firstHandle + partition) ?? []
      const partitionLog = partitionOf(log, firstHandle, partition)
      const { records, damaged } = readBack(log, partitionLog)
      // Every offset below the end is served or reported, once, in order.
      const offsets = [...records.map(record => record.offset)]
      for (const { firstOffset, lastOffset } of damaged) {
        for (let offset = firstOffset; offset <= lastOffset; offset++) offsets.push(offset)
      }
      offsets.sort((a, b) => a - b)
      assert.deepEqual(
        offsets,
        Array.from({ length: partitionLog.highWatermark }, (_, i) => i)
      )
      assert.ok(partitionLog.highWatermark <= expected.length)
      for (const record of records) assert.deepEqual(record, expected[record.offset])
      servedRecords += records.length
      damagedRecords += offsets.length - records.length
    }
  }
  return { servedRecords, problem: '', damagedRecords, ...reportOf(log.report) }
}

function reportOf(report: { cutGroups: number; quarantinedRuns: number }): {
  cutGroups: number
  quarantinedRuns: number
} {
  return { cutGroups: report.cutGroups, quarantinedRuns: report.quarantinedRuns }
}

const totalRecords = [...sample.records.values()].reduce((sum, records) => sum + records.length, 0)
const recordsPerGroup = 8

/** Every byte of a boundary, every 7th in between. */
function positionsIn(start: number, end: number): number[] {
  return Array.from({ length: end - start }, (_, i) => start + i).filter(
    at => at - start < 700 || end - at < 500 || at % 7 === 0
  )
}

describe('an undamaged journal', () => {
  it('serves every record, and cuts and quarantines nothing', () => {
    const verdict = judge(sample.image)
    assert.deepEqual(verdict, {
      servedRecords: totalRecords,
      problem: '',
      damagedRecords: 0,
      cutGroups: 0,
      quarantinedRuns: 0
    })
    assert.equal(new Set([sample.fullFile, sample.closedFile, sample.openFile]).size, 3)
  })
})

describe('one damaged byte of the open slot', () => {
  it('costs at most the runs it lies in, if a later group proves that its group was synced', () => {
    let whole = 0
    let damaged = 0
    for (const group of [third, second]) {
      for (const at of positionsIn(group.position, group.endPosition)) {
        const verdict = judge(withFlip(sample.image, sample.openFile, at, at % 8))
        assert.equal(verdict.cutGroups, 0, `byte ${at}`)
        assert.equal((verdict.servedRecords ?? 0) + verdict.damagedRecords, totalRecords, `byte ${at}`)
        assert.ok(verdict.quarantinedRuns <= 1 && verdict.damagedRecords <= 4, `byte ${at}`)
        assert.equal(verdict.damagedRecords > 0, verdict.quarantinedRuns === 1, `byte ${at}`)
        if (verdict.damagedRecords === 0) whole++
        else damaged++
      }
    }
    assert.ok(whole > 300 && damaged > 100, `${whole} bytes cost nothing, ${damaged} cost a run`)
  })

  it('cuts the last group, whose sync nothing proves, and says so', () => {
    for (const at of positionsIn(last.position, last.endPosition)) {
      const verdict = judge(withFlip(sample.image, sample.openFile, at, at % 8))
      assert.deepEqual(
        [verdict.cutGroups, verdict.servedRecords, verdict.damagedRecords],
        [1, totalRecords - recordsPerGroup, 0],
        `byte ${at}`
      )
    }
  })
})

describe('a file that ends too early', () => {
  it('serves the groups before its end, whole and in order', () => {
    for (let at = third.position; at < last.endPosition; at += at % 4096 < 8 || at % 4096 > 4088 ? 1 : 97) {
      const verdict = judge(withChange(sample.image, sample.openFile, bytes => bytes.subarray(0, at)))
      const lost = lastThree.filter(group => group.endPosition > at).length
      assert.equal(verdict.servedRecords, totalRecords - lost * recordsPerGroup, `cut at byte ${at}`)
      assert.equal(verdict.damagedRecords, 0)
    }
  })

  it('keeps the shard down if a later slot says that more was there', () => {
    const end = Math.max(
      ...sample.groups.filter(group => group.file === sample.fullFile).map(group => group.endPosition)
    )
    for (let at = 0; at < end; at += 1021) {
      const verdict = judge(withChange(sample.image, sample.fullFile, bytes => bytes.subarray(0, at)))
      assert.equal(verdict.servedRecords, null, `cut at byte ${at}`)
      assert.match(verdict.problem, at < 4096 ? /slot/ : /0001\.slot is damaged at byte \d+/)
    }
  })
})

describe('damage in a sealed slot', () => {
  for (const [what, file] of [
    ['full', sample.fullFile],
    ['cleanly closed', sample.closedFile]
  ] as const) {
    it(`costs at most the runs it lies in, if the slot was ${what}`, () => {
      const seed = chosenSeed()
      const dice = diceOf(seed)
      const size = sample.image.get(file)?.length ?? 0
      for (let i = 0; i < 600; i++) {
        const at = dice.below(size)
        const message = `byte ${at} of ${file}; ${replayLine(seed, 'test/unit/log/damage.test.ts')}`
        const verdict = judge(withFlip(sample.image, file, at, dice.below(8)))
        assert.equal((verdict.servedRecords ?? 0) + verdict.damagedRecords, totalRecords, message)
        assert.ok(verdict.damagedRecords <= 4 && verdict.cutGroups === 0, message)
      }
    })

    it(`costs nothing if only footer and tail of a ${what} slot are gone`, () => {
      const groupsEnd = Math.max(...sample.groups.filter(group => group.file === file).map(group => group.endPosition))
      const verdict = judge(withChange(sample.image, file, bytes => bytes.fill(0xff, groupsEnd)))
      assert.deepEqual([verdict.servedRecords, verdict.cutGroups], [totalRecords, 0])
    })
  }

  it('is found when it is read, and the next readable offset is named', () => {
    const image = withFlip(sample.image, sample.fullFile, (sample.groups[1]?.position ?? 0) + 1500)
    const log = openSample(diskOf(image))
    const reports = [1, 2, 3, 10].map(handle => {
      const partitionLog = partitionOf(log, handle === 10 ? 10 : 1, handle === 10 ? 0 : handle - 1)
      return readBack(log, partitionLog)
    })
    const damaged = reports.flatMap(report => report.damaged)
    assert.equal(damaged.length, 1)
    const hurt = reports.find(report => report.damaged.length > 0)
    const range = damaged[0] ?? { firstOffset: -1, lastOffset: -1 }
    assert.ok(
      hurt?.records.some(record => record.offset === range.lastOffset + 1),
      'what is behind the range is served'
    )
  })
})

describe('damaged slot headers', () => {
  for (const [what, file] of [
    ['oldest', sample.fullFile],
    ['newest', sample.openFile]
  ] as const) {
    it(`cost nothing if one of the two blocks of the ${what} slot is whole`, () => {
      for (const block of [0, 4096]) {
        for (let at = block; at < block + 4096; at += at < block + 80 ? 1 : 37) {
          const verdict = judge(withFlip(sample.image, file, at, at % 8))
          assert.deepEqual([verdict.servedRecords, verdict.cutGroups], [totalRecords, 0], `byte ${at}`)
        }
      }
    })

    it(`keep the shard down if both blocks of the ${what} slot are damaged`, () => {
      for (const [first, other] of [
        [0, 4096],
        [30, 4096 + 40],
        [4095, 8191],
        [2000, 4096 + 2000]
      ] as const) {
        const image = withFlip(withFlip(sample.image, file, first), file, other)
        assert.throws(() => openSample(diskOf(image)), notReady(new RegExp(`${file}.*bytes 0 to 8192`)))
      }
    })
  }

  it('keep the shard down if a slot in the middle is missing', () => {
    const image = new Map(sample.image)
    image.delete(sample.closedFile)
    assert.throws(() => openSample(diskOf(image)), notReady(/slot 3 \(\d+\.slot\) where slot 2 is expected/))
  })

  it('of a newer version are refused in one clear line', () => {
    const image = withChange(sample.image, sample.openFile, bytes => asVersion(bytes, 2))
    assert.throws(
      () => openSample(diskOf(image)),
      notReady(/^[^\n]*journal format 2 was written by a newer version[^\n]*$/)
    )
  })

  it('of another shard are refused', () => {
    assert.throws(() => openSample(diskOf(sample.image), { shard: 3 }), notReady(/belongs to shard 0/))
  })
})

describe('a synced group of which neither directory nor trailer can be read', () => {
  it('keeps the shard down and names file and byte', () => {
    for (const group of [third, second]) {
      const image = withFlip(withFlip(sample.image, group.file, group.position + 70), group.file, group.endPosition - 5)
      assert.throws(
        () => openSample(diskOf(image)),
        notReady(new RegExp(`${group.file} is damaged at byte ${group.position}: group \\d+ has neither`))
      )
    }
  })
})

describe('damage at many places at once', () => {
  it('never makes the log serve a wrong byte', () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    for (let i = 0; i < 300; i++) {
      let image = sample.image
      for (let flip = 0; flip < 8; flip++) {
        const group = dice.pick(sample.groups)
        const at = group.position + dice.below(group.endPosition - group.position)
        image = withFlip(image, group.file, at, dice.below(8))
      }
      try {
        judge(image)
      } catch (error) {
        throw new Error(`round ${i}; ${replayLine(seed, 'test/unit/log/damage.test.ts')}`, { cause: error })
      }
    }
  })
})

/** The slot with another version in both of its header blocks, their checksums made good. */
function asVersion(bytes: Buffer, version: number): Buffer {
  for (const block of [0, 4096]) {
    bytes.writeUInt32BE(version, block + 8)
    bytes.writeUInt32BE(crc32cOf(bytes.subarray(block, block + 4092)), block + 4092)
  }
  return bytes
}

/** CRC32C from its definition. */
function crc32cOf(bytes: Buffer): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  }
  return (crc ^ 0xffffffff) >>> 0
}
