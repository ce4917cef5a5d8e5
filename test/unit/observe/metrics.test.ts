/** The page of metrics: who sees what, how old its numbers may be, and what it does to everybody else. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CommittedEntry } from '../../../src/model/metrics.ts'
import { toTopicId } from '../../../src/model/ids.ts'
import { limits } from '../../../src/model/limits.ts'
import type { Principal } from '../../../src/model/principal.ts'
import { Metrics } from '../../../src/observe/metrics.ts'
import { processSeries, topicSeries } from '../../../src/observe/series.ts'
import { parsePage, valueOf, type ParsedSeries } from '../../support/prometheus.ts'
import { admin, callerOf, FakeSources, figuresOf, topicOf } from './metrics-source.ts'

async function textOf(metrics: Metrics, who: Principal = admin): Promise<string> {
  return Buffer.concat(await metrics.scrape(who)).toString()
}

async function pageOf(sources: FakeSources, who: Principal = admin): Promise<Map<string, ParsedSeries>> {
  return parsePage(await textOf(new Metrics(sources), who))
}

const samplesOf = (page: Map<string, ParsedSeries>, name: string): string[] =>
  page.get(name)?.samples.map(({ labels, text }) => [...Object.values(labels), text].join(' ')) ?? []

describe('who sees what', () => {
  const open = topicOf(1, 'open', 2)
  const shut = topicOf(2, 'shut', 1)
  const entry = { group: 'g', topicId: open.id, partition: 1, offset: 1n }
  const reader = callerOf('key_reader', topic => topic === 'open')

  it('a key sees the topics that it may read, and not the process', async () => {
    const sources = new FakeSources([open, shut])
    sources.traffic = { producedRecords: 1, producedBytes: 2, consumedRecords: 3, consumedBytes: 4 }
    const page = await pageOf(sources, reader)
    assert.deepEqual(samplesOf(page, 'es_partition_end_offset'), ['open 0 1', 'open 1 2'])
    assert.deepEqual(samplesOf(page, 'es_topic_bytes_consumed_total'), ['open 4'])
    for (const name of Object.keys(processSeries)) assert.deepEqual(page.get(name)?.samples, [], name)
  })

  it('an admin sees everything', async () => {
    const page = await pageOf(new FakeSources([open, shut]))
    assert.deepEqual(samplesOf(page, 'es_partition_size_bytes'), ['open 0 10', 'open 1 20', 'shut 0 10'])
    assert.equal(valueOf(page, 'millrace_topics'), 2)
  })

  it('a key sees the groups that it owns, on topics that it may read', async () => {
    const sources = new FakeSources([open, shut])
    sources.committedEntries = [
      { ...entry, ownerKeyId: 'key_reader' },
      { ...entry, ownerKeyId: 'key_other', group: 'other' },
      { ...entry, ownerKeyId: 'key_reader', topicId: shut.id, partition: 0 }
    ]
    assert.deepEqual(samplesOf(await pageOf(sources, reader), 'es_group_committed_offset'), ['g open 1 1'])
    assert.deepEqual(samplesOf(await pageOf(sources), 'es_group_committed_offset'), [
      'g open 1 1',
      'other open 1 1',
      'g shut 0 1'
    ])
  })

  it('everybody gets HELP and TYPE of every series, in one order', async () => {
    const names = Object.keys({ ...topicSeries, ...processSeries })
    const nobody = callerOf('key_nobody', () => false)
    for (const who of [admin, reader, nobody])
      assert.deepEqual([...(await pageOf(new FakeSources([open]), who)).keys()], names)
  })

  it('two callers at once get their own pages of the same numbers', async () => {
    const sources = new FakeSources([open, shut])
    const metrics = new Metrics(sources)
    const [all, some] = await Promise.all([textOf(metrics), textOf(metrics, reader)])
    assert.ok(all.includes('shut') && !some.includes('shut') && some.includes('open'))
  })
})

describe('lag', () => {
  const topic = topicOf(1, 't', 2)
  const entry = { group: 'g', ownerKeyId: 'k', topicId: topic.id, partition: 1, offset: 0n }

  it('is the distance to the end, and never below 0', async () => {
    const sources = new FakeSources([topic])
    sources.committedEntries = [{ ...entry, partition: 0, offset: 7n }, entry]
    const page = await pageOf(sources)
    assert.deepEqual(samplesOf(page, 'es_group_lag'), ['g t 0 0', 'g t 1 2'])
    assert.deepEqual(samplesOf(page, 'es_group_committed_offset'), ['g t 0 7', 'g t 1 0'])
  })

  it('is not told of partitions and topics that are not there any more', async () => {
    const sources = new FakeSources([topic])
    sources.committedEntries = [
      { ...entry, partition: 2 },
      { ...entry, topicId: toTopicId(9) }
    ]
    const page = await pageOf(sources)
    assert.deepEqual([samplesOf(page, 'es_group_lag'), samplesOf(page, 'es_group_committed_offset')], [[], []])
  })

  it('is told once of an entry that comes twice, because groups commit while they are walked', async () => {
    const other = topicOf(2, 'u', 2)
    const sources = new FakeSources([topic, other])
    const at = (partition: number, topicId = topic.id): CommittedEntry => ({ ...entry, topicId, partition })
    // Partition 0 was put before 1, which moved; the group was made anew while others were walked.
    sources.committedEntries = [at(1), at(1), at(0, other.id), at(0), at(1), { ...at(0), group: 'h' }]
    assert.deepEqual(samplesOf(await pageOf(sources), 'es_group_committed_offset'), ['g t 1 0', 'g u 0 0', 'h t 0 0'])
  })

  it('is exact beyond 2^53', async () => {
    const sources = new FakeSources([topic])
    sources.committedEntries = [{ ...entry, offset: 18446744073709551615n }]
    assert.deepEqual(samplesOf(await pageOf(sources), 'es_group_committed_offset'), ['g t 1 18446744073709551615'])
  })

  it('is not told where the end is not known', async () => {
    const sources = new FakeSources([topic])
    sources.figures.isKnown[1] = 0
    sources.committedEntries = [entry]
    const page = await pageOf(sources)
    assert.deepEqual(samplesOf(page, 'es_group_committed_offset'), ['g t 1 0'])
    assert.deepEqual(samplesOf(page, 'es_group_lag'), [])
    assert.deepEqual(samplesOf(page, 'es_partition_end_offset'), ['t 0 1'], 'nor anything else of that partition')
  })
})

describe('samples', () => {
  it('escape what their labels hold', async () => {
    const page = await pageOf(new FakeSources([topicOf(1, 'a"b\\c\nd', 1)]))
    assert.deepEqual(page.get('es_partition_end_offset')?.samples[0]?.labels, { topic: 'a"b\\c\nd', partition: '0' })
  })

  it('of retention come for topics that have a limit, and for what was dropped', async () => {
    const topics = [topicOf(1, 'kept', 1), topicOf(2, 'dropped', 2), topicOf(3, 'limited', 1, { retention_ms: 5 })]
    const sources = new FakeSources(topics)
    sources.figures.retiredSegments[2] = 3
    const page = await pageOf(sources)
    assert.deepEqual(samplesOf(page, 'es_retention_segments_deleted_total'), ['dropped 1 3', 'limited 0 0'])
  })

  it('of compaction come for topics that are compacted, and for what was dropped', async () => {
    const sources = new FakeSources([topicOf(1, 'kept', 2), topicOf(2, 'compacted', 1, { cleanup_policy: 'compact' })])
    sources.compacted.set('kept/1', { runs: 2, recordsDropped: 9 })
    const page = await pageOf(sources)
    assert.deepEqual(samplesOf(page, 'es_compaction_runs_total'), ['kept 1 2', 'compacted 0 0'])
    assert.deepEqual(samplesOf(page, 'es_compaction_records_dropped_total'), ['kept 1 9', 'compacted 0 0'])
  })

  it('do not come of a topic that was deleted while its numbers were gathered', async () => {
    const [first, second, third] = [topicOf(1, 'a', 2), topicOf(2, 'b', 3), topicOf(3, 'c', 1)]
    const sources = new FakeSources([first, second, third])
    sources.figures.endOffset[5] = 42
    sources.live.delete(second)
    assert.deepEqual(samplesOf(await pageOf(sources), 'es_partition_end_offset'), ['a 0 1', 'a 1 2', 'c 0 42'])
  })
})

describe('numbers', () => {
  const end = async (page: Promise<string>): Promise<number | undefined> =>
    valueOf(parsePage(await page), 'es_partition_end_offset', { topic: 't', partition: '0' })

  it('are never older than the request: who asks during a gathering gets those of the next', async () => {
    const topic = topicOf(1, 't', 1)
    const sources = new FakeSources([topic])
    const metrics = new Metrics(sources)
    const { promise, resolve } = Promise.withResolvers<undefined>()
    sources.gate = promise
    const first = textOf(metrics)
    sources.figures = { ...figuresOf([topic]), endOffset: Float64Array.of(7) }
    const others = [textOf(metrics), textOf(metrics), textOf(metrics)]
    resolve(undefined)
    assert.equal(await end(first), 1)
    for (const other of others) assert.equal(await end(other), 7)
    assert.equal(sources.gatherings, 2, 'the others share one')
  })

  it('are not gathered while a page is written, so that no two pages are half written at a time', async () => {
    const topic = topicOf(1, 't', 1)
    const sources = new FakeSources([topic])
    let walks = 0
    let most = 0
    const entry = { ownerKeyId: 'key_0', topicId: topic.id, partition: 0, offset: 1n }
    const committed = function* (): Generator<CommittedEntry> {
      most = Math.max(most, ++walks)
      for (let i = 0; i < 20_000; i++) yield { ...entry, group: `g${i}` }
      walks--
    }
    const metrics = new Metrics(Object.assign(sources, { committed }))
    const pages: Promise<unknown>[] = []
    for (let i = 0; i < 20; i++) {
      pages.push(metrics.scrape(callerOf(`key_${i % 3}`, () => true)), metrics.scrape(admin))
      await new Promise(resolve => setImmediate(resolve))
    }
    await Promise.all(pages)
    assert.equal(most, 1)
    assert.ok(sources.gatherings < 10, `${sources.gatherings} gatherings`)
  })

  it('are gathered anew for each request while there are few partitions', async () => {
    const sources = new FakeSources([topicOf(1, 't', limits.freshPartitionsMax)])
    const metrics = new Metrics(sources)
    for (let i = 0; i < 3; i++) await textOf(metrics)
    assert.equal(sources.gatherings, 3)
  })

  it('of very many partitions serve for a second and no longer', async () => {
    const sources = new FakeSources([topicOf(1, 't', limits.freshPartitionsMax + 1)])
    const metrics = new Metrics(sources)
    await textOf(metrics)
    sources.nowMs = 999
    await textOf(metrics)
    assert.equal(sources.gatherings, 1)
    sources.nowMs = 1000
    await textOf(metrics)
    assert.equal(sources.gatherings, 2)
  })

  it('that could not be gathered fail those who asked, and nobody after them', async () => {
    const sources = new FakeSources([topicOf(1, 't', 1)])
    const metrics = new Metrics(sources)
    sources.gate = Promise.reject(new Error('broken'))
    const during = [textOf(metrics), textOf(metrics)]
    const failed = await Promise.allSettled(during)
    sources.gate = Promise.resolve()
    assert.deepEqual(
      failed.map(({ status }) => status),
      ['rejected', 'rejected']
    )
    assert.equal(await end(textOf(metrics)), 1)
  })

  it('of 10,000 partitions and 100,000 committed offsets let the event loop have its turns', async () => {
    const topic = topicOf(1, 't', 10_000, { retention_ms: 1 })
    const sources = new FakeSources([topic])
    const entry = { ownerKeyId: 'k', topicId: topic.id, offset: 1n }
    sources.committedEntries = Array.from({ length: 100_000 }, (_, i) => {
      return { ...entry, group: `group-${Math.floor(i / 10_000)}`, partition: i % 10_000 }
    })
    const metrics = new Metrics(sources)
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns++
      if (!isOver) setImmediate(count)
    }
    count()
    const pieces = await metrics.scrape(admin)
    isOver = true
    const lines = Buffer.concat(pieces).toString().split('\n').length
    assert.ok(lines > 260_000, String(lines))
    assert.ok(turns > lines / 2500, `${turns} turns for ${lines} lines`)
    for (const piece of pieces) assert.ok(piece.length < 512 * 1024)
  })

  it('of offsets beyond the limit of a page are left out', async () => {
    const topics = Array.from({ length: 21 }, (_, i) => topicOf(i + 1, `t${i}`, 10_000))
    const sources = new FakeSources(topics)
    sources.committedEntries = topics.flatMap(({ id, partitionCount }) =>
      Array.from({ length: partitionCount }, (_, partition) => {
        return { group: 'g', ownerKeyId: 'k', topicId: id, partition, offset: 0n }
      })
    )
    const text = await textOf(new Metrics(sources))
    const told = text.match(/^es_group_lag\{/gm)?.length
    assert.equal(told, limits.scrapedOffsetsMax)
  })
})
