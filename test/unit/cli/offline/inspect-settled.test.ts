/** `millrace inspect` over both layers: settled data is shown like that of slots, and with the files it lies in. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { takeTree, makeSettled, settledPartition, settledRecords, withBit } from '../../../support/settled-sample.ts'
import { run } from '../terminal.ts'
import { snapshot, topicOf, writeTree } from './offline-directories.ts'

const disk = makeSettled()
const tree = takeTree(disk)
const topics = [topicOf(1, 'orders', 1, 3)]
const log = 'topics/orders~1/0/00000000000000000000.log'

async function rowsOf<T>(words: readonly string[], expectedCode = 0): Promise<T[]> {
  const { code, stdout, stderr } = await run(['inspect', ...words, '--json'])
  assert.equal(code, expectedCode, stderr + stdout)
  return stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as T)
}

test('records and batches come from both layers, each offset once, and nothing is changed', async t => {
  const dataDir = await writeTree(t, tree, topics)
  const before = snapshot(dataDir)
  for (const partition of [0, 1]) {
    const chosen = ['--data-dir', dataDir, '--topic', 'orders', '--partition', String(partition), '--limit', '9999']
    const records = await rowsOf<{ offset: number; value: string }>(['records', ...chosen])
    assert.deepEqual(
      records.map(({ offset }) => offset),
      Array.from({ length: settledRecords + 4 }, (_, i) => i)
    )
    assert.match(records[17]?.value ?? '', partition === 0 ? /^1\.1 x/ : /^small 1\.1$/)
    const batches = await rowsOf<{ base_offset: number; file?: string; slot?: string }>(['batches', ...chosen])
    for (const { base_offset: offset, file, slot } of batches) {
      assert.equal(file !== undefined, offset < settledRecords, `offset ${offset}`)
      assert.equal(slot !== undefined, offset >= settledRecords, `offset ${offset}`)
    }
  }
  const later = ['--data-dir', dataDir, '--topic', 'orders', '--partition', '0', '--offset', '40', '--limit', '2']
  assert.deepEqual(
    (await rowsOf<{ offset: number }>(['records', ...later])).map(({ offset }) => offset),
    [40, 41]
  )
  assert.deepEqual(snapshot(dataDir), before)
})

test('segments are listed with their extents, and can be chosen', async t => {
  const dataDir = await writeTree(t, tree, topics)
  const chosen = ['segments', '--data-dir', dataDir, '--topic', 'orders', '--partition', '0', '--offset', '30']
  const rows = await rowsOf<{ base_offset: number; sealed: boolean; extents: { file: string; bytes: number }[] }>(
    chosen
  )
  const expected = settledPartition(disk, 0).segments.filter(({ nextOffset }) => nextOffset > 30)
  assert.deepEqual(
    rows.map(row => [row.base_offset, row.sealed, row.extents.reduce((sum, { bytes }) => sum + bytes, 0)]),
    expected.map(({ baseOffset, isSealed, bytes }) => [baseOffset, isSealed, bytes])
  )
  const { stdout } = await run(['inspect', 'segments', '--data-dir', dataDir])
  assert.match(
    stdout,
    /^orders\/0 segment=0 offsets=0\.\.22 size_bytes=\d+ received=\S+ sealed\n {2}topics\/orders~1\/0\/0{20}\.log position=0 bytes=\d+ offsets=0\.\.22 blocks=\d+\n/
  )
  assert.match(stdout, /\norders\/2 segment=0 offsets=0\.\.0 .* active\n {2}packs\/000\/00000001\.pack position=\d+ /)
})

test('the manifest is printed: its shard, then its partitions', async t => {
  const dataDir = await writeTree(t, tree, topics)
  const rows = await rowsOf<Record<string, unknown>>(['manifest', '--data-dir', dataDir])
  assert.deepEqual([rows.length, rows[0]?.['partitions'], rows[0]?.['commit']], [4, 3, 4])
  assert.deepEqual(
    rows.slice(1).map(row => [row['topic'], row['partition'], row['next_offset']]),
    [
      ['orders', 0, settledRecords],
      ['orders', 1, settledRecords],
      ['orders', 2, 1]
    ]
  )
  const damaged = await writeTree(t, withBit(tree, 'journal/000/manifest', 80), topics)
  const { code, stdout } = await run(['inspect', 'manifest', '--data-dir', damaged])
  assert.equal(code, 1)
  assert.match(stdout, /^shard=0 DAMAGED: the manifest is damaged: /)
})

test('a damaged settled batch is shown as damaged, and those around it as they are', async t => {
  const dataDir = await writeTree(t, withBit(tree, log, 40_000), topics)
  const chosen = ['--data-dir', dataDir, '--topic', 'orders', '--partition', '0', '--limit', '9999']
  const rows = await rowsOf<{ offset?: number; problem?: string; file?: string }>(['records', ...chosen], 1)
  assert.deepEqual(
    rows.filter(row => row.problem !== undefined).map(row => [row.problem, row.file]),
    [['a batch fails its CRC', log]]
  )
  assert.equal(rows.filter(row => row.offset !== undefined).length, settledRecords + 3)
})
