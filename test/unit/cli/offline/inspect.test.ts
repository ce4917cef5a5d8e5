/** `millrace inspect`: what is on disk is what it shows, row by row, no more than was asked for. */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import { append, openLog, textRecord } from '../../../support/log-harness.ts'
import { takeImage, withFlip } from '../../../support/log-image.ts'
import { makeSample } from '../../../support/log-sample.ts'
import { plainSlot, type PlainEntry } from '../../../support/log-slot-bytes.ts'
import { run } from '../terminal.ts'
import { snapshot, topicOf, writeDirectory } from './offline-directories.ts'

const golden = fileURLToPath(new URL('../../../fixtures/journal-v1/', import.meta.url))
const goldenTopics = [topicOf(1, 'orders', 1, 2), topicOf(2, 'notes', 3, 1)]
const sample = makeSample()
const sampleTopics = [topicOf(1, 'orders', 1, 3), topicOf(2, 'gap', 4, 6), topicOf(3, 'notes', 10, 1)]

/** The lines of --json, parsed. */
async function rowsOf<T>(words: readonly string[], expectedCode = 0): Promise<T[]> {
  const { code, stdout, stderr } = await run([...words, '--json'])
  assert.equal(code, expectedCode, stderr + stdout)
  return stdout
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as T)
}

interface GoldenPartition {
  readonly handle: number
  readonly records: readonly {
    readonly offset: number
    readonly key: string | null
    readonly value: string
    readonly timestampMs: number
  }[]
}

interface RecordRow {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestamp_ms: number
  readonly key: string | null
  readonly value: string | null
}

test('the records of the golden journal are shown as they were written', async t => {
  const dataDir = await writeDirectory(t, golden, goldenTopics)
  const before = snapshot(dataDir)
  const expected = JSON.parse(readFileSync(join(golden, 'records.json'), 'utf8')) as GoldenPartition[]
  for (const { handle, records } of expected) {
    const [topic, partition] = handle === 3 ? ['notes', 0] : ['orders', handle - 1]
    const words = ['inspect', 'records', '--data-dir', dataDir, '--topic', String(topic), '--partition', `${partition}`]
    const rows = await rowsOf<RecordRow>(words)
    assert.deepEqual(
      rows,
      records.map(record => ({
        topic,
        partition,
        offset: record.offset,
        timestamp_ms: record.timestampMs,
        key: record.key,
        // An empty value is stored as null.
        value: record.value === '' ? null : record.value
      }))
    )
  }
  assert.deepEqual(snapshot(dataDir), before)
})

test('the groups of the golden journal are those that a reader written from the format finds', async t => {
  const dataDir = await writeDirectory(t, golden, goldenTopics)
  const rows = await rowsOf<{ slot: string; group: number; position: number; entries: { handle: number }[] }>([
    'inspect',
    'groups',
    '--data-dir',
    dataDir
  ])
  const slots = readdirSync(golden).filter(name => name.endsWith('.slot'))
  const found = rows.map(row => [row.slot, row.group, row.position, row.entries.map(entry => entry.handle)])
  const plain = slots.flatMap(name =>
    plainSlot(readFileSync(join(golden, name))).groups.map(group => [
      name,
      group.number,
      group.position,
      group.entries.map(entry => entry.handle)
    ])
  )
  // The torn group at the end of the second slot, and the one that was copied from there, are cut or dead.
  for (const row of found) assert.ok(plain.some(group => JSON.stringify(group) === JSON.stringify(row)))
  assert.deepEqual(
    found.map(row => row[1]),
    [1, 2, 3, 4, 5, 6, 7, 8]
  )
  const { stdout } = await run(['inspect', 'groups', '--data-dir', dataDir, '--limit', '1'])
  assert.match(
    stdout,
    /^shard=0 slot=0001\.slot group=1 position=8192 bytes=4096 received=2023-11-14T22:13:20\.000Z entries=3\n {2}orders\/0 run offsets=0\.\.1 batches=1 records=2 position=256 bytes=553\n {2}orders\/1 .*\n {2}notes\/0 .*\n$/
  )
})

test('an offset and a limit choose records, batches and groups', async t => {
  const dataDir = await writeDirectory(t, sample.image, sampleTopics)
  const chosen = ['--data-dir', dataDir, '--topic', 'orders', '--partition', '1', '--offset', '3', '--limit', '4']
  const records = await rowsOf<RecordRow>(['inspect', 'records', ...chosen])
  assert.deepEqual(
    records.map(record => record.offset),
    [3, 4, 5, 6]
  )
  const batches = await rowsOf<{ base_offset: number; last_offset: number }>(['inspect', 'batches', ...chosen])
  assert.equal(batches.length, 4)
  assert.ok(batches[0] !== undefined && batches[0].base_offset <= 3 && batches[0].last_offset >= 3)
  const groups = await rowsOf<{ entries: { handle: number; next_offset: number }[] }>(['inspect', 'groups', ...chosen])
  assert.equal(groups.length, 4)
  for (const { entries } of groups) assert.ok(entries.some(entry => entry.handle === 2 && entry.next_offset > 3))
  const total = sample.records.get(2)?.length ?? 0
  const all = ['inspect', 'records', '--data-dir', dataDir, '--topic', 'orders', '--partition', '1', '--limit', '9999']
  assert.equal((await rowsOf(all)).length, total)
})

test('what is not UTF-8 is shown in base64, under a name that says so', async t => {
  const disk = new SimulatedDisk()
  const log = openLog(disk)
  log.table.open({ firstHandle: 1, partitionCount: 2, segmentBytes: 2 ** 31 - 1 })
  const bytes = Buffer.from([0xff, 0, 1])
  append(log, {
    firstHandle: 1,
    records: [{ partition: 0, key: bytes, value: bytes }, textRecord(0, null, 'a\nb'), textRecord(0, 'gone', '')]
  })
  const dataDir = await writeDirectory(t, takeImage(disk), [topicOf(1, 'orders', 1, 2)])
  const words = ['inspect', 'records', '--data-dir', dataDir, '--topic', 'orders', '--partition', '0']
  const rows = await rowsOf<Record<string, unknown>>(words)
  assert.deepEqual(
    rows.map(({ key, value, key_base64, value_base64 }) => ({ key, value, key_base64, value_base64 })),
    [
      { key: undefined, value: undefined, key_base64: '/wAB', value_base64: '/wAB' },
      { key: null, value: 'a\nb', key_base64: undefined, value_base64: undefined },
      { key: 'gone', value: null, key_base64: undefined, value_base64: undefined }
    ]
  )
  const lines = (await run(words)).stdout.split('\n').map(line => line.replace(/timestamp=\S+/, ''))
  assert.deepEqual(lines, [
    'offset=0  key_base64=/wAB value_base64=/wAB',
    'offset=1  value=a\\nb',
    'offset=2  key=gone',
    ''
  ])
  const none = await run(['inspect', 'records', '--data-dir', dataDir, '--topic', 'orders', '--partition', '1'])
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, '', 'millrace: nothing found\n'])
})

test('a damaged batch is shown as damaged, what is around it as it is, and the exit code says so', async t => {
  const slot = sample.image.get(sample.fullFile) ?? assert.fail('no slot')
  const entry: PlainEntry = plainSlot(slot).groups[2]?.entries[0] ?? assert.fail('no group')
  const at = slot.indexOf(entry.run) + 90
  const dataDir = await writeDirectory(t, withFlip(sample.image, sample.fullFile, at), sampleTopics)
  const words = ['--data-dir', dataDir, '--topic', 'orders', '--partition', `${entry.handle - 1}`, '--limit', '9999']
  for (const what of ['records', 'batches']) {
    const rows = await rowsOf<{ problem?: string; run_base_offset?: number; offset?: number }>(
      ['inspect', what, ...words],
      1
    )
    const damaged = rows.filter(row => row.problem !== undefined)
    assert.deepEqual(
      damaged.map(row => [row.problem, row.run_base_offset]),
      [['a batch fails its CRC', entry.baseOffset]]
    )
    if (what === 'batches') continue
    const offsets = rows.flatMap(row => (row.offset === undefined ? [] : [row.offset]))
    const count = sample.records.get(entry.handle)?.length ?? 0
    assert.deepEqual(
      offsets,
      Array.from({ length: count }, (_, i) => i).filter(i => i < entry.baseOffset || i >= entry.nextOffset)
    )
  }
  const { stdout, stderr } = await run(['inspect', 'groups', ...words])
  assert.match(stdout, /group=3 .* DAMAGED\n/)
  assert.match(stderr, /damage was met: 'millrace verify' reports all of it/)
})

test('topics of the store are listed with their settings', async t => {
  const notes = topicOf(2, 'notes', 3, 1)
  const config = { ...notes.config, cleanup_policy: 'compact', partitioner: 'murmur2' } as const
  const dataDir = await writeDirectory(t, golden, [topicOf(1, 'orders', 1, 2), { ...notes, config }])
  const rows = await rowsOf<{ name: string; partitions: number; first_handle: number; deleted: boolean }>([
    'inspect',
    'topics',
    '--data-dir',
    dataDir
  ])
  assert.deepEqual(
    rows.map(row => [row.name, row.partitions, row.first_handle, row.deleted]),
    [
      ['orders', 2, 1, false],
      ['notes', 1, 3, false]
    ]
  )
  const one = await run(['inspect', 'topics', '--data-dir', dataDir, '--topic', 'notes'])
  assert.equal(
    one.stdout,
    'notes id=2 partitions=1 first_handle=3 retention_ms=unlimited retention_bytes=unlimited cleanup_policy=compact ' +
      'segment_bytes=67108864 tombstone_retention_ms=86400000 validate_schema=false message_timestamp_type=CreateTime ' +
      'max_message_bytes=default segment_ms=default partitioner=murmur2\n'
  )
})

test('wrong use is explained with what there is', async t => {
  const dataDir = await writeDirectory(t, golden, goldenTopics)
  for (const [words, pattern] of [
    [['records', '--topic', 'orders'], /--partition is missing/],
    [['batches', '--partition', '0'], /--topic is missing/],
    [
      ['records', '--topic', 'order', '--partition', '0'],
      /--topic 'order' is not in the store: 'millrace inspect topics'/
    ],
    [['records', '--topic', 'orders', '--partition', '2'], /--partition 2: topic 'orders' has 2, numbered from 0/],
    [['groups', '--shard', '4'], /--shard 4 is not there: the directory has shards 0/],
    [['groups', '--offset', '4'], /--offset needs --topic and --partition/],
    [['groups', '--limit', '0'], /--limit '0' is not a whole number from 1/],
    [['groups', '--shards', '0'], /unknown option '--shards'.* did you mean --shard\?/]
  ] as const) {
    const { code, stdout, stderr } = await run(['inspect', ...words, '--data-dir', dataDir])
    assert.deepEqual([code, stdout], [2, ''], stderr)
    assert.match(stderr, pattern)
  }
})
