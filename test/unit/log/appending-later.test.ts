/** Appending while earlier pieces are still being written off the thread, and going on from a kept last block. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { alignedBuffer } from '../../../src/disk/aligned-memory.ts'
import type { DiskFile } from '../../../src/disk/disk.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { AlignedAppender } from '../../../src/log/aligned-appender.ts'
import { TailBlocks } from '../../../src/log/tail-blocks.ts'
import { diceOf } from '../../support/log-random.ts'

const BLOCK = 4096
const STAGING_BYTES = 4 * BLOCK
const points = { read: 'segment.read', write: 'segment.write' } as const

const newAppender = (): AlignedAppender =>
  new AlignedAppender(...([0, 1, 2].map(() => alignedBuffer(STAGING_BYTES)) as [Buffer, Buffer, Buffer]))

/** A file whose later writes take their bytes only when they are let through, and which counts what is done to it. */
class SlowFile implements DiskFile {
  readonly path = '/slow'
  readonly isDirect = true
  readonly #inner: DiskFile
  readonly #held: (() => void)[] = []
  refusal: Error | null = null
  reads = 0
  laterWrites = 0

  constructor(inner: DiskFile) {
    this.#inner = inner
  }

  read(...call: Parameters<DiskFile['read']>): number {
    this.reads++
    return this.#inner.read(...call)
  }

  write(...call: Parameters<DiskFile['write']>): void {
    this.#inner.write(...call)
  }

  writeLater(...call: Parameters<DiskFile['write']>): Promise<void> {
    this.laterWrites++
    return new Promise((resolve, reject) => {
      this.#held.push(() => {
        if (this.refusal !== null) return reject(this.refusal)
        this.#inner.write(...call)
        resolve()
      })
    })
  }

  /** Lets all writes through that are held now. @returns how many. */
  release(): number {
    const held = this.#held.splice(0)
    for (const write of held) write()
    return held.length
  }

  sync(...call: Parameters<DiskFile['sync']>): void {
    this.#inner.sync(...call)
  }

  syncLater(...call: Parameters<DiskFile['syncLater']>): Promise<void> {
    return this.#inner.syncLater(...call)
  }

  sizeBytes(): number {
    return this.#inner.sizeBytes()
  }

  truncate(...call: Parameters<DiskFile['truncate']>): void {
    this.#inner.truncate(...call)
  }

  close(): void {
    this.#inner.close()
  }
}

function slowFile(): SlowFile {
  return new SlowFile(new SimulatedDisk().createDirect('segment.create', '/slow'))
}

/** Lets writes through until the append has ended. */
async function ended(file: SlowFile, append: Promise<void>): Promise<void> {
  let isEnded = false
  const watched = append.finally(() => (isEnded = true))
  watched.catch(() => undefined)
  while (!isEnded) {
    file.release()
    await new Promise(resolve => setImmediate(resolve))
  }
  return watched
}

function contentOf(file: SlowFile, length: number): Buffer {
  const bytes = alignedBuffer(Math.ceil(length / BLOCK) * BLOCK)
  file.read('segment.read', bytes, 0, bytes.length, 0)
  return bytes.subarray(0, length)
}

describe('an append off the thread', () => {
  for (const landsEach of [1, 2, 3, 100]) {
    it(`puts every byte in its place when every ${landsEach} pieces the disk catches up`, async () => {
      const dice = diceOf(landsEach)
      const file = slowFile()
      const appender = newAppender()
      const pieces = Array.from({ length: 20 }, () => dice.bytes(1 + dice.below(STAGING_BYTES)))
      appender.begin(file, points, 0, { isLater: true })
      for (const [i, piece] of pieces.entries()) {
        appender.append(piece, 0, piece.length)
        if (i % landsEach === 0 && file.release() > 0) await new Promise(resolve => setImmediate(resolve))
      }
      const length = appender.position
      await ended(file, appender.finishLater())
      assert.ok(file.laterWrites > 0, 'some pieces were written off the thread')
      assert.deepEqual(contentOf(file, length), Buffer.concat(pieces))
      assert.equal(appender.landed, null)
    })
  }

  it('has not landed before the last piece is written, and begins no other append until then', async () => {
    const file = slowFile()
    const appender = newAppender()
    appender.begin(file, points, 0, { isLater: true })
    appender.append(Buffer.alloc(10, 1), 0, 10)
    const append = appender.finishLater()
    assert.notEqual(appender.landed, null)
    assert.throws(() => appender.begin(file, points, 10), /one append at a time/)
    await ended(file, append)
    assert.equal(appender.landed, null)
    appender.begin(file, points, 10)
  })

  it('fails with what the disk said to an earlier piece, also when later pieces were taken', async () => {
    const file = slowFile()
    const appender = newAppender()
    appender.begin(file, points, 0, { isLater: true })
    appender.append(Buffer.alloc(STAGING_BYTES, 1), 0, STAGING_BYTES)
    file.refusal = new Error('no room')
    file.release()
    await appender.landed
    file.refusal = null
    appender.append(Buffer.alloc(10, 2), 0, 10)
    await assert.rejects(ended(file, appender.finishLater()), /no room/)
    assert.throws(() => appender.position, /an append was begun/)
    appender.begin(file, points, 0, { isLater: true })
    appender.append(Buffer.alloc(10, 3), 0, 10)
    await ended(file, appender.finishLater())
    assert.deepEqual(contentOf(file, 10), Buffer.alloc(10, 3))
  })
})

describe('the last block of a file', () => {
  it('is not read again when it was kept, and the committed bytes in it stay as they were', async () => {
    const file = slowFile()
    const appender = newAppender()
    const tails = new TailBlocks()
    const disk = new SimulatedDisk()
    const pieces = [BLOCK + 10, 20, 3 * BLOCK, 5].map((bytes, i) => Buffer.alloc(bytes, 1 + i))
    let length = 0
    for (const piece of pieces) {
      const tail = tails.take(disk, file.path, length)
      appender.begin(file, points, length, { tail, isLater: true })
      appender.append(piece, 0, piece.length)
      length = appender.position
      tails.keep(disk, file.path, length, appender.copyTail())
      await ended(file, appender.finishLater())
    }
    assert.equal(file.reads, 0)
    assert.deepEqual(contentOf(file, length), Buffer.concat(pieces))
  })

  it('is given out only for the length, the file and the disk it was kept for, and once', () => {
    const disk = new SimulatedDisk()
    const tails = new TailBlocks()
    tails.keep(disk, '/a', 4100, Buffer.from('tail'))
    assert.equal(tails.take(new SimulatedDisk(), '/a', 4100), null)
    assert.equal(tails.take(disk, '/b', 4100), null)
    assert.deepEqual(tails.take(disk, '/a', 4100), Buffer.from('tail'))
    assert.equal(tails.take(disk, '/a', 4100), null)
    tails.keep(disk, '/a', 4100, Buffer.from('tail'))
    assert.equal(tails.take(disk, '/a', 4), null, 'another length: the file went on without it')
    assert.equal(tails.take(disk, '/a', 4100), null, 'and what is outdated is forgotten')
    tails.keep(disk, '/a', 4100, Buffer.from('tail'))
    tails.clear()
    assert.equal(tails.take(disk, '/a', 4100), null)
  })

  it('takes bounded memory: the oldest are forgotten', () => {
    const disk = new SimulatedDisk()
    const tails = new TailBlocks()
    for (let i = 0; i < 3000; i++) tails.keep(disk, `/${i}`, 1, Buffer.from('t'))
    assert.equal(tails.take(disk, '/0', 1), null)
    assert.notEqual(tails.take(disk, '/2999', 1), null)
  })
})
