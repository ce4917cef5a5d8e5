/** Lines out of a stream whose chunks end anywhere. */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { readLineBatches, type BatchLimits, type LineBatch } from '../../../src/cli/lines.ts'

const limits: BatchLimits = { linesMax: 3, bytesTarget: 1_000, lineBytesMax: 100 }

async function* chunksOf(bytes: Buffer, sizeOf: () => number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length;) {
    const end = at + sizeOf()
    yield await Promise.resolve(bytes.subarray(at, end))
    at = end
  }
}

async function batchesOf(
  content: string | Buffer,
  changed: Partial<BatchLimits> = {},
  sizeOf = () => 7
): Promise<LineBatch[]> {
  const batches: LineBatch[] = []
  const input = chunksOf(Buffer.from(content), sizeOf)
  for await (const batch of readLineBatches(input, 'input', { ...limits, ...changed })) batches.push(batch)
  return batches
}

test('batches know their lines and how much of the input they cover', async () => {
  assert.deepEqual(await batchesOf('a\n\nbb\nc\nd'), [
    { lines: ['a', 'bb', 'c'], firstLine: 1, lastLine: 4, inputBytes: 8 },
    { lines: ['d'], firstLine: 5, lastLine: 5, inputBytes: 9 }
  ])
})

test('a batch is closed at its bytes, and a line is never split', async () => {
  const batches = await batchesOf(`${'x'.repeat(60)}\n${'y'.repeat(60)}\n${'z'.repeat(60)}\n`, { bytesTarget: 100 })
  assert.deepEqual(
    batches.map(batch => batch.lines.length),
    [2, 1]
  )
})

test('an empty input and one of empty lines have no batch', async () => {
  assert.deepEqual(await batchesOf(''), [])
  assert.deepEqual(await batchesOf('\n\n\n'), [])
})

test('a byte order mark, blanks and carriage returns are part of the line', async () => {
  const batches = await batchesOf('\ufeffa \n b\r\n\r')
  assert.deepEqual(batches[0]?.lines, ['\ufeffa ', ' b\r', '\r'])
})

test('a line above the limit is refused by number, also when its end never comes', async () => {
  await batchesOf('x'.repeat(100))
  await assert.rejects(batchesOf(`a\n${'x'.repeat(101)}\nb`), /input, line 2: longer than 100 bytes/)
  async function* endless(): AsyncGenerator<Buffer> {
    for (;;) yield await Promise.resolve(Buffer.from('x'.repeat(50)))
  }
  await assert.rejects(readLineBatches(endless(), 'input', limits).next(), /input, line 1: longer than 100 bytes/)
})

test('however the chunks fall, the lines are those of the text', async t => {
  const seed = Number(process.env['LINES_SEED'] ?? randomInt(2 ** 31))
  t.diagnostic(`seed ${seed}; replay: LINES_SEED=${seed} node --test test/unit/cli/lines.test.ts`)
  let state = seed
  const next = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
  const pieces = ['a', 'é', '😀', '\n', '\r\n', '\r', ' ', 'long word ']
  for (let round = 0; round < 200; round++) {
    const text = Array.from({ length: next(60) }, () => pieces[next(pieces.length)]).join('')
    const expected = text.split('\n').filter(line => line !== '')
    const batches = await batchesOf(text, { lineBytesMax: 10_000 }, () => 1 + next(9))
    assert.deepEqual(
      batches.flatMap(batch => batch.lines),
      expected
    )
  }
})
