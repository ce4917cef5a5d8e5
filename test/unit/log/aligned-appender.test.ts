/** Appending in aligned pieces: the bytes, the writes it takes, and that a committed byte never changes. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { alignedBuffer } from '../../../src/disk/aligned-memory.ts'
import { DiskError, type Disk, type DiskFile } from '../../../src/disk/disk.ts'
import { FaultPlan, parseFaultPlan, type ArmedFault, type FaultError } from '../../../src/disk/fault-plan.ts'
import type { FaultPoint } from '../../../src/disk/faults.ts'
import { createRealDisk } from '../../../src/disk/real-disk.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { AlignedAppender } from '../../../src/log/aligned-appender.ts'
import { Interruption, InterruptibleDisk } from '../../support/log-interruptible-disk.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../support/log-random.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const FILE = 'test/unit/log/aligned-appender.test.ts'
const BLOCK = 4096
const STAGING_BYTES = 4 * BLOCK
const points = { read: 'segment.read', write: 'segment.write' } as const
const paddedBytes = (bytes: number): number => Math.ceil(bytes / BLOCK) * BLOCK

/** Appends pieces behind `committedBytes` of a file and finishes. @returns the true length. */
function appendAll(
  appender: AlignedAppender,
  file: DiskFile,
  committedBytes: number,
  pieces: readonly Buffer[]
): number {
  appender.begin(file, points, committedBytes)
  for (const piece of pieces) appender.append(piece, 0, piece.length)
  return appender.finish()
}

/** The first `length` bytes of a file, read through an ordinary handle. */
function headOf(disk: Disk, path: string, length: number): Buffer {
  const file = disk.open('segment.open', path)
  const bytes = Buffer.alloc(length)
  assert.equal(file.read('segment.read', bytes, 0, length, 0), length, 'the file is as long as it should be')
  file.close()
  return bytes
}

/** Pieces of all lengths that matter: a few bytes, about a block, more than a staging. */
function somePieces(dice: Dice): Buffer[] {
  return Array.from({ length: dice.below(6) }, () =>
    dice.bytes(dice.pick([dice.below(100), BLOCK - 1 + dice.below(3), dice.below(STAGING_BYTES * 2)]))
  )
}

function newAppender(): AlignedAppender {
  return new AlignedAppender(alignedBuffer(STAGING_BYTES))
}

function diskUnder(plan: string): { disk: SimulatedDisk; faults: FaultPlan } {
  const faults = parseFaultPlan(plan)
  return { disk: new SimulatedDisk({ faults }), faults }
}

describe('an aligned appender', () => {
  it('puts the bytes one behind the other, and zeros up to the end of the last block', () => {
    const { disk } = diskUnder('')
    const file = disk.createDirect('segment.create', '/data/a')
    const pieces = [10, 4096, 1, 30_000, 0, 77].map((length, i) => Buffer.alloc(length, i + 1))
    const length = appendAll(newAppender(), file, 0, pieces)
    const expected = Buffer.concat(pieces)
    assert.equal(length, expected.length)
    assert.equal(file.sizeBytes(), paddedBytes(length))
    const padding = Buffer.alloc(file.sizeBytes() - length)
    assert.ok(headOf(disk, '/data/a', file.sizeBytes()).equals(Buffer.concat([expected, padding])))
  })

  it('takes the range it is given, and says where the next byte goes', () => {
    const { disk } = diskUnder('')
    const file = disk.createDirect('segment.create', '/data/a')
    const appender = newAppender()
    appender.begin(file, points, 0)
    appender.append(Buffer.from('..abc..'), 2, 5)
    assert.equal(appender.position, 3)
    appender.append(Buffer.alloc(STAGING_BYTES, 'x'), 0, STAGING_BYTES)
    assert.equal(appender.position, 3 + STAGING_BYTES)
    appender.append(Buffer.from('def'), 0, 3)
    assert.equal(appender.finish(), 6 + STAGING_BYTES)
    const expected = `abc${'x'.repeat(STAGING_BYTES)}def`
    assert.equal(headOf(disk, '/data/a', expected.length).toString(), expected)
  })

  it('writes a staging at a time, however small the pieces are, and the rest at the end', () => {
    const { disk, faults } = diskUnder('')
    const file = disk.createDirect('segment.create', '/data/a')
    const pieces = Array.from({ length: 400 }, () => Buffer.alloc(100, 1))
    appendAll(newAppender(), file, 0, pieces)
    assert.equal(faults.callCount('segment.write'), 3)
    assert.equal(faults.callCount('segment.read'), 0)
    assert.equal(faults.callCount('segment.sync'), 0)
  })

  it('goes on behind a length in the middle of a block, over what lies behind it', () => {
    const { disk, faults } = diskUnder('')
    const file = disk.createDirect('segment.create', '/data/a')
    const appender = newAppender()
    appendAll(appender, file, 0, [Buffer.alloc(BLOCK * 3, 'a')])
    const length = appendAll(appender, file, BLOCK + 100, [Buffer.from('new')])
    assert.equal(length, BLOCK + 103)
    assert.equal(faults.callCount('segment.read'), 1)
    const bytes = headOf(disk, '/data/a', 2 * BLOCK)
    assert.ok(
      bytes.equals(Buffer.concat([Buffer.alloc(BLOCK + 100, 'a'), Buffer.from('new'), Buffer.alloc(BLOCK - 103)]))
    )
  })

  it('reads nothing where the length is of whole blocks, and writes nothing where nothing is appended', () => {
    const { disk, faults } = diskUnder('')
    const file = disk.createDirect('segment.create', '/data/a')
    const appender = newAppender()
    assert.equal(appendAll(appender, file, 0, []), 0)
    appendAll(appender, file, 0, [Buffer.alloc(2 * BLOCK, 'a')])
    const before = faults.callCount('segment.write')
    assert.equal(appendAll(appender, file, BLOCK, []), BLOCK)
    assert.equal(faults.callCount('segment.read'), 0)
    assert.equal(appendAll(appender, file, BLOCK + 1, [Buffer.alloc(0)]), BLOCK + 1)
    assert.equal(faults.callCount('segment.write'), before)
  })

  it('serves one file after the other, and forgets an append that was not finished', () => {
    const { disk } = diskUnder('')
    const appender = newAppender()
    const [one, other] = ['one', 'other'].map(name => disk.createDirect('segment.create', `/data/${name}`))
    assert.ok(one !== undefined && other !== undefined)
    appender.begin(one, points, 0)
    appender.append(Buffer.from('forgotten'), 0, 9)
    assert.equal(appendAll(appender, other, 0, [Buffer.from('other')]), 5)
    assert.equal(appendAll(appender, one, 0, [Buffer.from('one')]), 3)
    assert.equal(headOf(disk, '/data/other', 6).toString(), 'other\0')
    assert.equal(headOf(disk, '/data/one', 4).toString(), 'one\0')
  })

  it('used without a file, or made over memory that is not aligned, is a bug', () => {
    const appender = newAppender()
    const bug = { name: 'BugError' }
    assert.throws(() => appender.append(Buffer.from('a'), 0, 1), bug)
    assert.throws(() => appender.finish(), bug)
    assert.throws(() => appender.position, bug)
    assert.throws(() => new AlignedAppender(Buffer.alloc(STAGING_BYTES)), bug)
    assert.throws(() => new AlignedAppender(alignedBuffer(STAGING_BYTES).subarray(0, 100)), bug)
  })
})

describe('an aligned appender on a disk that refuses', () => {
  it('reports a file that ends before its committed length, and writes nothing to it', () => {
    const { disk, faults } = diskUnder('')
    const file = disk.createDirect('segment.create', '/data/a')
    const tooShort = (error: unknown): boolean => error instanceof DiskError && error.code === 'EIO'
    assert.throws(() => newAppender().begin(file, points, 1), tooShort)
    assert.throws(() => newAppender().begin(file, points, BLOCK + 1), tooShort)
    assert.equal(faults.callCount('segment.write'), 0)
  })

  const failures = [
    { what: 'a write', plan: 'segment.write:2=ENOSPC' },
    { what: 'half a write', plan: 'segment.write:2=short-ENOSPC' },
    { what: 'the read of the last block', plan: 'segment.read:1=EIO' }
  ]
  for (const { what, plan } of failures) {
    it(`is of no use after ${what} failed, until it begins again, and then writes the same bytes`, () => {
      const { disk } = diskUnder(plan)
      const file = disk.createDirect('segment.create', '/data/a')
      const appender = newAppender()
      const kept = Buffer.alloc(100, 'k')
      const more = Buffer.alloc(STAGING_BYTES * 2, 'm')
      appendAll(appender, file, 0, [kept])
      assert.throws(() => appendAll(appender, file, 100, [more]), DiskError)
      assert.throws(() => appender.append(more, 0, 1), { name: 'BugError' })
      assert.throws(() => appender.finish(), { name: 'BugError' })
      assert.equal(appendAll(appender, file, 100, [more]), 100 + more.length)
      assert.ok(headOf(disk, '/data/a', 100 + more.length).equals(Buffer.concat([kept, more])))
    })
  }
})

describe('an aligned appender where the file system has no direct files', () => {
  const refusals = [
    { point: 'segment.create', call: 1 },
    { point: 'segment.write', call: 1 },
    { point: 'segment.write', call: 3 },
    { point: 'segment.read', call: 1 }
  ] as const
  const armed = ({ point, call }: (typeof refusals)[number]): ArmedFault => {
    return { point, firstCall: call, lastCall: call, fault: { kind: 'error', code: 'EINVAL' } }
  }

  /** Appends twice to a file that is refused on the way. */
  function assertSameBytes(disk: Disk, root: string): void {
    const dice = diceOf(7)
    const pieces = [...somePieces(dice), dice.bytes(STAGING_BYTES * 2 + 1)]
    const expected = Buffer.concat([...pieces, ...pieces])
    const file = disk.createDirect('segment.create', `${root}/a`)
    const appender = newAppender()
    const length = appendAll(appender, file, 0, pieces)
    assert.equal(appendAll(appender, file, length, pieces), expected.length)
    assert.equal(file.isDirect, false)
    file.close()
    assert.ok(headOf(disk, `${root}/a`, expected.length).equals(expected))
  }

  for (const refusal of refusals) {
    it(`writes the same bytes if that shows at call ${refusal.call} of ${refusal.point}`, t => {
      assertSameBytes(new SimulatedDisk({ faults: new FaultPlan([armed(refusal)]) }), '/data')
      assertSameBytes(createRealDisk(new FaultPlan([armed(refusal)])), temporaryDirectory(t))
    })
  }

  it('writes the same bytes on the disk that can be interrupted', () => {
    for (const refusal of refusals.filter(({ point }) => point !== 'segment.read')) {
      const disk = new InterruptibleDisk(new SimulatedDisk())
      disk.faults.arm(armed(refusal))
      assertSameBytes(disk, '/data')
    }
  })
})

/** Settling jobs on one file, each of which may end in any way; after each the committed bytes must be as they were. */
class FileLife {
  readonly #dice: Dice
  readonly #wrap: (file: DiskFile) => DiskFile
  #inner: SimulatedDisk
  #committed: Buffer = Buffer.alloc(0)
  readonly endings = { committed: 0, abandoned: 0, refused: 0, powerCut: 0, killed: 0 }

  constructor(dice: Dice, wrap: (file: DiskFile) => DiskFile = file => file, ignoreSync = false) {
    this.#dice = dice
    this.#wrap = wrap
    this.#inner = new SimulatedDisk({ ignoreSync })
    const file = this.#inner.create('segment.create', '/data/a')
    file.close()
    this.#inner.syncDirectory('segment.directory-sync', '/data')
  }

  /** @returns true while the committed bytes are what they were. */
  runJob(appender: AlignedAppender): boolean {
    const disk = new InterruptibleDisk(this.#inner)
    const dice = this.#dice
    if (dice.chance(0.3)) disk.stopAt(1 + dice.below(6), dice.chance(0.5))
    if (dice.chance(0.5)) armSome(disk, dice)
    try {
      this.#append(disk, appender)
    } catch (error) {
      if (error instanceof DiskError) this.endings.refused++
      else if (!(error instanceof Interruption)) throw error
    }
    if (disk.isStopped || dice.chance(0.1)) this.#restart()
    return this.#isIntact()
  }

  #append(disk: InterruptibleDisk, appender: AlignedAppender): void {
    const file = this.#wrap(disk.openDirect('segment.open', '/data/a'))
    const pieces = somePieces(this.#dice)
    const length = appendAll(appender, file, this.#committed.length, pieces)
    file.sync('segment.sync')
    file.close()
    if (this.#dice.chance(0.3)) {
      // Stopped between the sync and the manifest: nobody will ever ask for these bytes.
      this.endings.abandoned++
      return
    }
    this.#committed = Buffer.concat([this.#committed, ...pieces])
    assert.equal(length, this.#committed.length)
    this.endings.committed++
  }

  #restart(): void {
    const isPowerCut = this.#dice.chance(0.7)
    this.endings[isPowerCut ? 'powerCut' : 'killed']++
    this.#inner = isPowerCut ? this.#inner.crash(this.#dice.unit) : this.#inner.killProcess()
  }

  #isIntact(): boolean {
    const file = this.#inner.open('segment.open', '/data/a')
    const bytes = Buffer.alloc(this.#committed.length)
    const count = file.read('segment.read', bytes, 0, bytes.length, 0)
    file.close()
    return count === bytes.length && bytes.equals(this.#committed)
  }
}

/** One of: a full disk, a short write, a failing device, a failing sync, a file system without direct files. */
function armSome(disk: InterruptibleDisk, dice: Dice): void {
  const fault = dice.pick<{ point: FaultPoint; kind: 'error' | 'short'; code: FaultError }>([
    { point: 'segment.write', kind: 'error', code: 'ENOSPC' },
    { point: 'segment.write', kind: 'short', code: 'ENOSPC' },
    { point: 'segment.write', kind: 'error', code: 'EIO' },
    { point: 'segment.sync', kind: 'error', code: 'EIO' },
    { point: 'segment.write', kind: 'error', code: 'EINVAL' },
    { point: 'segment.open', kind: 'error', code: 'EINVAL' }
  ])
  const { point, kind, code } = fault
  const firstCall = point === 'segment.write' ? 1 + dice.below(3) : 1
  disk.faults.arm({ point, firstCall, lastCall: firstCall, fault: { kind, code } })
}

/** A file that reads as zeros: what a disk gives that the appender must not trust, or an appender that does not read. */
function readingZeros(file: DiskFile): DiskFile {
  return {
    path: file.path,
    get isDirect() {
      return file.isDirect
    },
    read: (_point, target, targetStart, length) => {
      target.fill(0, targetStart, targetStart + length)
      return length
    },
    write: (point, source, start, end, position) => file.write(point, source, start, end, position),
    writeLater: (point, source, start, end, position) => file.writeLater(point, source, start, end, position),
    sync: point => file.sync(point),
    syncLater: () => Promise.resolve(),
    sizeBytes: () => file.sizeBytes(),
    truncate: (point, sizeBytes) => file.truncate(point, sizeBytes),
    close: () => file.close()
  }
}

describe('committed bytes', () => {
  const lives = process.env['MILLRACE_LONG'] === '1' ? 10_000 : 150
  const jobs = 12
  const appender = newAppender()
  const isIntactThrough = (life: FileLife): boolean => Array.from({ length: jobs }).every(() => life.runJob(appender))

  it('never change, whatever is appended behind them and wherever that is cut off', (t: TestContext) => {
    const seed = chosenSeed()
    t.diagnostic(replayLine(seed, FILE))
    const totals: Record<string, number> = {}
    for (let i = 0; i < lives; i++) {
      const life = new FileLife(diceOf(seed + i))
      assert.ok(isIntactThrough(life), `a committed byte changed in life ${i}; ${replayLine(seed, FILE)}`)
      for (const [ending, count] of Object.entries(life.endings)) totals[ending] = (totals[ending] ?? 0) + count
    }
    t.diagnostic(JSON.stringify(totals))
    for (const [ending, count] of Object.entries(totals)) assert.ok(count > 10, `${ending}: ${count}`)
  })

  it('are seen to change if the block they end in is not read first (control)', () => {
    const changed = Array.from({ length: 20 }, (_, i) => !isIntactThrough(new FileLife(diceOf(i + 1), readingZeros)))
    assert.ok(changed.includes(true))
  })

  it('are seen to be lost if syncs do nothing (control)', () => {
    const lost = Array.from({ length: 20 }, (_, i) => !isIntactThrough(new FileLife(diceOf(i + 1), undefined, true)))
    assert.ok(lost.includes(true))
  })
})
