/**
 * The decoder of kafkajs, an independent reader of the format, makes the same of a segment's `.log` as we wrote into it: of
 * samples, and of records with headers that came over HTTP, were settled, dumped and restored.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { BlockTable } from '../../src/log/segment-blocks.ts'
import { runMillrace, spawnBroker, waitFor } from '../support/broker.ts'
import { HttpApi, parse, type ReadAnswer } from '../support/http-api.ts'
import { chosenSeed, diceOf, replayLine } from '../support/log-random.ts'
import { blocksBytes, sampleKinds, sampleSegment, type SampleSegment } from '../support/log-segments.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const FILE = 'test/integration/kafkajs-decoder.test.ts'

interface KafkajsRecord {
  readonly offset: string
  readonly timestamp: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** Values of a name: an array where several headers have it. */
  readonly headers: Readonly<Record<string, Buffer | null | readonly (Buffer | null)[]>>
  readonly isControlRecord: boolean
  readonly batchContext: { readonly partitionLeaderEpoch: number; readonly lastOffsetDelta: number }
}

const require = createRequire(import.meta.url)
const Decoder: new (bytes: Buffer) => object = require('kafkajs/src/protocol/decoder.js')
/** What kafkajs does with the records of a fetch response: a length and batches, the last of them perhaps cut. */
const decodeMessages: (
  decoder: object
) => Promise<KafkajsRecord[]> = require('kafkajs/src/protocol/requests/fetch/v4/decodeMessages.js')

async function decode(batches: Buffer): Promise<KafkajsRecord[]> {
  const length = Buffer.alloc(4)
  length.writeInt32BE(batches.length)
  return decodeMessages(new Decoder(Buffer.concat([length, batches])))
}

interface Row {
  readonly offset: string
  readonly timestamp: string
  readonly key: string | null
  readonly value: string | null
  readonly isControl: boolean
  readonly leaderEpoch: number
}

const textOf = (bytes: Buffer | null): string | null => bytes?.toString('hex') ?? null

function wantedRows(segment: SampleSegment, position: number): Row[] {
  return segment.batches
    .filter(batch => batch.position >= position)
    .flatMap(batch =>
      batch.records.map(record => ({
        offset: String(record.offset),
        timestamp: String(record.timestampMs),
        key: textOf(record.key),
        value: textOf(record.value),
        isControl: batch.isControl,
        leaderEpoch: batch.leaderEpoch
      }))
    )
}

function seenRows(records: readonly KafkajsRecord[]): Row[] {
  return records.map(record => ({
    offset: record.offset,
    timestamp: record.timestamp,
    key: textOf(record.key),
    value: textOf(record.value),
    isControl: record.isControlRecord,
    leaderEpoch: record.batchContext.partitionLeaderEpoch
  }))
}

type Header = readonly [string, string | null]

/** Headers of the i-th record: none, one, or several with a name twice, no value, an empty one, and other scripts. */
function headersOf(i: number): readonly Header[] {
  const many: readonly Header[] = [
    ['trace', `${i}`],
    ['größe', 'ü'.repeat(i % 90)],
    ['trace', 'again'],
    ['none', null],
    ['empty', '']
  ]
  return many.slice(0, [0, 1, 5][i % 3])
}

/** The same as kafkajs has them. */
function groupedHeaders(headers: readonly Header[]): Record<string, string | null | (string | null)[]> {
  const grouped: Record<string, string | null | (string | null)[]> = {}
  for (const [name] of headers) {
    const values = headers.filter(([other]) => other === name).map(([, value]) => value)
    grouped[name] = values.length === 1 ? (values[0] ?? null) : values
  }
  return grouped
}

const utf8Of = (bytes: Buffer | null): string | null => bytes?.toString() ?? null

/** How many segments have a file of their own. */
function segmentFileCount(dataDir: string): number {
  const topics = join(dataDir, 'topics')
  if (!existsSync(topics)) return 0
  return readdirSync(topics, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.log')).length
}

async function succeed(...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runMillrace(words)
  assert.equal(code, 0, stderr)
  return stdout
}

interface SegmentRow {
  readonly extents: readonly { readonly file: string; readonly position: number; readonly bytes: number }[]
}

/** Offset, value and headers of every settled record of the one partition of a data directory that no broker has open. */
async function settledRecords(dataDir: string): Promise<readonly unknown[]> {
  const lines = (await succeed('inspect', 'segments', '--data-dir', dataDir, '--json')).trimEnd().split('\n')
  const rows: unknown[] = []
  for (const { file, position, bytes } of lines.flatMap(line => (JSON.parse(line) as SegmentRow).extents)) {
    const batches = readFileSync(join(dataDir, file)).subarray(position, position + bytes)
    for (const { offset, value, headers } of await decode(batches)) {
      const texts = Object.entries(headers).map(([key, found]) => {
        return [key, found === null || Buffer.isBuffer(found) ? utf8Of(found) : found.map(utf8Of)] as const
      })
      rows.push({ offset: Number(offset), value: utf8Of(value), headers: Object.fromEntries(texts) })
    }
  }
  return rows
}

describe('the decoder of kafkajs', () => {
  for (const kind of sampleKinds) {
    it(`reads a ${kind} segment as it was written, from any block on`, async () => {
      const seed = chosenSeed()
      const segment = sampleSegment(diceOf(seed), kind, 150_000)
      const blocks = new BlockTable(blocksBytes(segment), segment.segmentBase)
      assert.ok(blocks.count > 15, replayLine(seed, FILE))
      for (let i = 0; i < blocks.count; i += 5) {
        const position = blocks.position(i)
        const records = await decode(segment.log.subarray(position))
        assert.deepEqual(seenRows(records), wantedRows(segment, position), `block ${i}, ${replayLine(seed, FILE)}`)
      }
    })
  }

  it('reads the headers of records that were produced over HTTP, settled, dumped and restored', async t => {
    const flags = { '--settle-idle': '20ms', '--segment-ms': '1h' }
    const broker = await spawnBroker(t, { variant: { engine: 'node', shards: 1 }, flags })
    const api = new HttpApi(broker.url)
    await api.createTopic('t', 1, { segment_bytes: 700_000 })
    // More than a journal slot holds: what is sealed is settled.
    const valueOf = (i: number): string => `${i} `.padEnd(2500, 'v')
    const expectedOf = (count: number): unknown[] =>
      Array.from({ length: count }, (_, i) => ({ offset: i, value: valueOf(i), headers: groupedHeaders(headersOf(i)) }))
    for (let round = 0; round < 60; round++) {
      const records = Array.from({ length: 20 }, (_, j) => ({
        value: valueOf(round * 20 + j),
        headers: headersOf(round * 20 + j)
      }))
      assert.equal((await api.post('/topics/t/produce', { records })).status, 200)
    }
    await waitFor('segments with files of their own', () => segmentFileCount(broker.dataDir) >= 2)
    // What a consume says of them is the same, with the order that kafkajs does not keep.
    const { records } = parse<ReadAnswer>(await api.get('/topics/t/consume?partition=0&offset=0&max_records=500'))
    assert.deepEqual(
      records.map(({ headers = [] }) => headers),
      records.map((_, i) => headersOf(i))
    )
    assert.equal((await broker.kill('SIGTERM')).code, 0)
    const settled = await settledRecords(broker.dataDir)
    assert.ok(settled.length > 200, `${settled.length} records`)
    assert.deepEqual(settled, expectedOf(settled.length))
    const [archive, back] = [join(temporaryDirectory(t), 'all.tar'), join(temporaryDirectory(t), 'back')]
    await succeed('dump', '--data-dir', broker.dataDir, '--output', archive)
    await succeed('restore', '--input', archive, '--data-dir', back)
    // What was in the journal is settled in an archive.
    assert.deepEqual(await settledRecords(back), expectedOf(1200))
  })
})
