/**
 * Apache Kafka's DumpLogSegments reads the segment files that this broker derives, without a complaint. Its findings go to
 * stderr; a batch whose checksum is wrong says `isvalid: false`.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { encodeOffsetIndex, encodeTimeIndex } from '../../src/log/kafka-index.ts'
import { startBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { dumpLogSegments, kafkaToolsSkip } from '../support/kafka-tools.ts'
import { chosenSeed, diceOf, replayLine } from '../support/log-random.ts'
import { blocksOf, sampleKinds, sampleSegment, type SampleSegment } from '../support/log-segments.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const FILE = 'test/integration/kafka-tools.test.ts'

interface SegmentFiles {
  readonly log: string
  readonly index: string
  readonly timeIndex: string
}

/** Writes the files of a segment as they lie in a partition's directory. */
function writeSegment(
  directory: string,
  segment: SampleSegment,
  change?: (index: Buffer, times: Buffer) => void
): SegmentFiles {
  const path = (suffix: string): string => join(directory, `${String(segment.segmentBase).padStart(20, '0')}.${suffix}`)
  const files = { log: path('log'), index: path('index'), timeIndex: path('timeindex') }
  const blocks = blocksOf(segment, diceOf(1))
  const index = encodeOffsetIndex(blocks)
  const times = encodeTimeIndex(blocks)
  change?.(index, times)
  writeFileSync(files.log, segment.log)
  writeFileSync(files.index, index)
  writeFileSync(files.timeIndex, times)
  return files
}

/** Offsets that do not follow each other: what the tool reports of any compacted log, Kafka's own too. */
function gapsOf(segment: SampleSegment): string[] {
  const offsets = segment.batches.flatMap(batch => batch.records.map(record => record.offset))
  const gaps: string[] = []
  for (let i = 1; i < offsets.length; i++) {
    if (offsets[i] !== (offsets[i - 1] ?? 0) + 1) gaps.push(`  ${offsets[i - 1]} is followed by ${offsets[i]}`)
  }
  return gaps.reverse()
}

/** The lines that the tool prints for the batches and records of a segment, as far as they say what we wrote. */
function wantedLines(segment: SampleSegment): string[] {
  return segment.batches.flatMap(batch => [
    `baseOffset ${batch.baseOffset} lastOffset ${batch.lastOffset} count ${batch.records.length} ` +
      `epoch ${batch.leaderEpoch} control ${batch.isControl} position ${batch.position} size ${batch.bytes} valid true`,
    ...batch.records.map(record => {
      const key = record.key === null || batch.isControl ? '' : ` key: ${record.key.toString()}`
      const value = record.value === null || batch.isControl ? '' : ` payload: ${record.value.toString()}`
      return `offset ${record.offset} time ${record.timestampMs}${key}${value}`
    })
  ])
}

function seenLines(lines: readonly string[]): string[] {
  const seen: string[] = []
  for (const line of lines) {
    const field = (name: string): string => new RegExp(`(?:^|\\s)${name}: (\\S*)`).exec(line)?.[1] ?? 'none'
    if (line.startsWith('baseOffset: ')) {
      seen.push(
        `baseOffset ${field('baseOffset')} lastOffset ${field('lastOffset')} count ${field('count')} ` +
          `epoch ${field('partitionLeaderEpoch')} control ${field('isControl')} position ${field('position')} ` +
          `size ${field('size')} valid ${field('isvalid')}`
      )
    } else if (line.startsWith('| offset: ')) {
      const time = field('CreateTime') === 'none' ? field('LogAppendTime') : field('CreateTime')
      const rest = line.slice(line.indexOf(']') + 1).replace(/ endTxnMarker.*/, '')
      seen.push(`offset ${field('offset')} time ${time}${rest}`)
    }
  }
  return seen
}

async function dumpWhole(t: TestContext, files: SegmentFiles): Promise<readonly string[]> {
  const { lines, complaints } = await dumpLogSegments(
    [files.log, files.index, files.timeIndex],
    '--deep-iteration',
    '--print-data-log'
  )
  t.diagnostic(`${lines.length} lines, for example: ${lines.at(-1)}`)
  assert.deepEqual(
    lines.filter(line => /invalid|isvalid: false|is empty/.test(line)),
    []
  )
  return complaints.length === 0 ? lines : [...lines, ...complaints.map(line => `complaint: ${line}`)]
}

describe('Kafka’s DumpLogSegments', { skip: kafkaToolsSkip }, () => {
  for (const kind of sampleKinds) {
    it(`reads a ${kind} segment and its index files as they were written`, async t => {
      const seed = chosenSeed()
      const segment = sampleSegment(diceOf(seed), kind, 300_000)
      const files = writeSegment(temporaryDirectory(t), segment)
      const printed = await dumpWhole(t, files)
      assert.deepEqual(seenLines(printed), wantedLines(segment), replayLine(seed, FILE))
      const complaints = printed.filter(line => line.startsWith('complaint: '))
      const gaps = gapsOf(segment)
      const expected = gaps.length === 0 ? [] : [`Non-consecutive offsets in ${files.log}`, ...gaps]
      assert.deepEqual(
        complaints,
        expected.map(line => `complaint: ${line}`),
        replayLine(seed, FILE)
      )
      assert.equal(gaps.length > 0, kind === 'compacted')
      const blocks = blocksOf(segment, diceOf(1))
      const entries = printed.filter(line => /^offset: \d+ position: \d+$/.test(line))
      assert.equal(entries.length, encodeOffsetIndex(blocks).length / 8)
      assert.ok(entries.length > 20)
      const times = printed.filter(line => /^timestamp: \d+ offset: \d+$/.test(line))
      assert.equal(times.length, encodeTimeIndex(blocks).length / 12)
      assert.ok(times.length > 5)
    })
  }

  it('finds index files sound, as Kafka does when it starts', async t => {
    const dice = diceOf(chosenSeed())
    const files = sampleKinds.map(kind => writeSegment(temporaryDirectory(t), sampleSegment(dice, kind, 60_000)))
    const paths = files.flatMap(({ index, timeIndex }) => [index, timeIndex])
    const { lines, complaints } = await dumpLogSegments(paths, '--index-sanity-check')
    assert.deepEqual(complaints, [])
    assert.deepEqual(
      lines,
      paths.flatMap(path => [`Dumping ${path}`, `${path} passed sanity check.`])
    )
    const verified = await dumpLogSegments(paths, '--verify-index-only')
    assert.deepEqual(verified, { lines: paths.map(path => `Dumping ${path}`), complaints: [] })
  })

  it('reads every file that a broker settled and compacted, without a complaint', async t => {
    const flags = { '--settle-idle': '20ms', '--segment-ms': '1h' }
    const broker = await startBroker(t, { variant: { engine: 'node', shards: 1 }, flags })
    const api = new HttpApi(broker.url)
    await api.createTopic('plain', 1, { segment_bytes: 700_000 })
    await api.createTopic('state', 1, { segment_bytes: 100_000, cleanup_policy: 'compact' })
    for (let round = 0; round < 30; round++) {
      const records = Array.from({ length: 100 }, (_, i) => ({ key: `k${i}`, value: `${round}.${i}`.padEnd(900, 'x') }))
      await api.produce('plain', records)
      await api.produce('state', records)
    }
    assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
    const paths = readdirSync(`${broker.dataDir}/topics`, { recursive: true, encoding: 'utf8' })
      .map(name => `${broker.dataDir}/topics/${name}`)
      .filter(path => existsSync(path.replace(/\.(log|timeindex)$/, '.index')) && /\.(log|index|timeindex)$/.test(path))
    assert.ok(paths.length >= 9, `${paths.length} files`)
    assert.ok(
      paths.some(path => path.includes('/c')),
      'compacted ones too'
    )
    const { lines, complaints } = await dumpLogSegments(paths, '--deep-iteration')
    assert.deepEqual(
      lines.filter(line => /invalid|isvalid: false|is empty/.test(line)),
      []
    )
    // Compaction leaves gaps: the tool names them, of Kafka's own logs too.
    const complained = complaints.filter(line => !/^Non-consecutive|is followed by/.test(line))
    assert.deepEqual(complained, [])
    assert.ok(complaints.every(line => !line.startsWith('Non-consecutive') || line.includes('/c')))
    assert.equal(lines.filter(line => line.startsWith('baseOffset: ')).length > 20, true)
  })

  it('does complain of a wrong entry, so that its silence means something', async t => {
    // A fixed one, in which the offset before that of the third time entry is within its batch.
    const segment = sampleSegment(diceOf(8), 'plain', 60_000)
    const files = writeSegment(temporaryDirectory(t), segment, (index, times) => {
      index.writeInt32BE(index.readInt32BE(8) - 1, 8)
      times.writeBigInt64BE(times.readBigInt64BE(12) + 1n, 12)
      times.writeInt32BE(times.readInt32BE(2 * 12 + 8) - 1, 2 * 12 + 8)
    })
    const { complaints } = await dumpLogSegments([files.index, files.timeIndex])
    const text = complaints.join('\n')
    assert.match(text, /Mismatches in :.*\.index/)
    assert.match(text, /Found timestamp mismatch in :.*\.timeindex/)
    assert.match(text, /indexed offsets are not found in the log/)
  })
})
