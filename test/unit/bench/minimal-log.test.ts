/** The log of the minimal server: what is written when, and who hears of it. The file's calls wait for the test. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { GATHERED_BYTES_MAX, MinimalLog } from '../../../native-free-bench/minimal-log.ts'
import type { LogFile, SyncMode } from '../../../native-free-bench/minimal-log.ts'

const RECORD_HEAD_BYTES = 16

/** A file in memory whose calls are answered one by one, when the test says so. */
class HeldFile implements LogFile {
  readonly bytes = Buffer.alloc(4096)
  /** Calls in their order: `write 0+18`, `sync`. */
  readonly calls: string[] = []
  readonly #held: ((error: Error | null) => void)[] = []
  /** Most bytes that a write does at once. */
  writeBytesMax = Infinity
  isClosed = false

  write(bytes: Buffer, position: number, done: (error: Error | null, writtenBytes: number) => void): void {
    const count = Math.min(bytes.length, this.writeBytesMax)
    this.calls.push(`write ${position}+${bytes.length}`)
    this.#held.push(error => {
      if (error === null) bytes.copy(this.bytes, position, 0, count)
      done(error, error === null ? count : 0)
    })
  }

  sync(done: (error: Error | null) => void): void {
    this.calls.push('sync')
    this.#held.push(done)
  }

  close(): Promise<void> {
    this.isClosed = true
    return Promise.resolve()
  }

  /** Lets the one call that is held come to its end. */
  release(error: Error | null = null): void {
    assert.equal(this.#held.length, 1, 'one call at a time')
    this.#held.shift()?.(error)
  }

  get heldCount(): number {
    return this.#held.length
  }
}

function openLog(mode: SyncMode, fileBytes = 4096): { file: HeldFile; log: MinimalLog; heard: string[] } {
  const file = new HeldFile()
  return { file, log: new MinimalLog(file, fileBytes, mode), heard: [] }
}

function appendTo({ log, heard }: { log: MinimalLog; heard: string[] }, value: string): string {
  return log.append([{ value, partition: 3 }], [7], error => heard.push(`${value} ${error?.message ?? 'synced'}`))
}

describe('a log that syncs groups', () => {
  test('answers nobody before the sync, and writes all that came meanwhile at once', () => {
    const one = openLog('group')
    const { file, heard } = one
    assert.deepEqual([appendTo(one, 'a'), appendTo(one, 'bb'), appendTo(one, 'cc')], ['taken', 'taken', 'taken'])
    assert.deepEqual(file.calls, ['write 0+17'])
    file.release()
    assert.deepEqual([file.calls.at(-1), heard], ['sync', []])
    file.release()
    assert.deepEqual(heard, ['a synced'])
    assert.equal(file.calls.at(-1), 'write 17+36')
    file.release()
    assert.deepEqual(heard, ['a synced'])
    file.release()
    assert.deepEqual(heard, ['a synced', 'bb synced', 'cc synced'])
    assert.deepEqual([one.log.syncs, one.log.writtenBytes, file.heldCount], [2, 53, 0])
  })

  test('the records lie in the file one after the other, with partition, length and offset', () => {
    const one = openLog('group')
    one.log.append(
      [
        { value: 'é', partition: 3 },
        { value: '', partition: 10_000 }
      ],
      [2 ** 40, 5],
      () => {}
    )
    one.file.release()
    const { bytes } = one.file
    assert.deepEqual([bytes.readUInt32BE(0), bytes.readUInt32BE(4), bytes.readDoubleBE(8)], [3, 2, 2 ** 40])
    assert.equal(bytes.toString('utf8', RECORD_HEAD_BYTES, RECORD_HEAD_BYTES + 2), 'é')
    const second = RECORD_HEAD_BYTES + 2
    assert.deepEqual([bytes.readUInt32BE(second), bytes.readUInt32BE(second + 4)], [10_000, 0])
    assert.equal(bytes.readDoubleBE(second + 8), 5)
  })

  test('a write that does less than it was asked for goes on before the sync', () => {
    const one = openLog('group')
    one.file.writeBytesMax = 10
    appendTo(one, 'abc')
    one.file.release()
    assert.deepEqual(one.file.calls, ['write 0+19', 'write 10+9'])
    one.file.release()
    assert.equal(one.file.calls.at(-1), 'sync')
    assert.equal(one.file.bytes.toString('latin1', RECORD_HEAD_BYTES, RECORD_HEAD_BYTES + 3), 'abc')
  })
})

test('a log that syncs each request writes and syncs them one after the other', () => {
  const one = openLog('each')
  const { file, heard } = one
  for (const value of ['a', 'b', 'c']) appendTo(one, value)
  for (let i = 0; i < 6; i++) file.release()
  assert.deepEqual(file.calls, ['write 0+17', 'sync', 'write 17+17', 'sync', 'write 34+17', 'sync'])
  assert.deepEqual([heard, one.log.syncs], [['a synced', 'b synced', 'c synced'], 3])
})

for (const failing of ['write', 'sync'] as const) {
  test(`after a failed ${failing} everybody who waits is told, and nothing more is taken`, async () => {
    const one = openLog('group')
    appendTo(one, 'a')
    appendTo(one, 'b')
    if (failing === 'sync') one.file.release()
    one.file.release(new Error('no more'))
    assert.deepEqual(one.heard, ['a no more', 'b no more'])
    assert.equal(appendTo(one, 'c'), 'broken')
    await one.log.close()
    assert.deepEqual([one.file.isClosed, one.heard.length], [true, 2])
  })
}

test('what finds no room in the file is not taken, and neither is what finds none in memory', () => {
  const one = openLog('group', 50)
  assert.deepEqual([appendTo(one, 'a'), appendTo(one, 'b'), appendTo(one, 'c')], ['taken', 'taken', 'full'])
  const large = openLog('group', 4 * GATHERED_BYTES_MAX)
  appendTo(large, 'a')
  const half = '€'.repeat(GATHERED_BYTES_MAX / 6)
  assert.deepEqual([appendTo(large, half), appendTo(large, half)], ['taken', 'busy'])
})

test('the file is closed after what was taken is on the disk', async () => {
  const one = openLog('group')
  appendTo(one, 'a')
  const closed = one.log.close()
  one.file.release()
  assert.equal(one.file.isClosed, false)
  one.file.release()
  await closed
  assert.deepEqual([one.file.isClosed, one.heard], [true, ['a synced']])
})
