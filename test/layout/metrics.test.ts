/** What is said of metrics anywhere is what there is: docs, dashboard, alert rules, runbooks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { processSeries, topicSeries } from '../../src/observe/series.ts'
import { listFiles, readText } from '../support/repository.ts'

const all = { ...topicSeries, ...processSeries }
const suffix = /_(bucket|sum|count)$/

/** Names of series in a text; of a histogram's lines the name of the histogram. */
function seriesIn(text: string): string[] {
  const names = [...text.matchAll(/\b(?:es|millrace)_[a-z0-9_]*[a-z0-9]\b/g)].map(([name]) => name)
  return [...new Set(names.map(name => (Object.hasOwn(all, name) ? name : name.replace(suffix, ''))))]
}

test('the 14 series of the specification are there, with its types and labels in its order', () => {
  const specified = [
    'es_partition_start_offset gauge topic partition',
    'es_partition_end_offset gauge topic partition',
    'es_partition_size_bytes gauge topic partition',
    'es_partition_segment_count gauge topic partition',
    'es_topic_records_produced_total counter topic',
    'es_topic_bytes_produced_total counter topic',
    'es_topic_records_consumed_total counter topic',
    'es_topic_bytes_consumed_total counter topic',
    'es_retention_segments_deleted_total counter topic partition',
    'es_retention_bytes_reclaimed_total counter topic partition',
    'es_compaction_runs_total counter topic partition',
    'es_compaction_records_dropped_total counter topic partition',
    'es_group_committed_offset gauge group topic partition',
    'es_group_lag gauge group topic partition'
  ]
  const there = Object.entries(topicSeries).map(([name, { type, labels }]) => [name, type, ...labels].join(' '))
  assert.deepEqual(there, specified)
})

test('names say their unit and kind: counters end in _total, and nothing else does', () => {
  for (const [name, { type }] of Object.entries(all)) {
    assert.equal(name.endsWith('_total'), type === 'counter', name)
    assert.match(name, /^(es|millrace)_[a-z0-9_]+$/, name)
  }
})

test('docs/metrics.md lists every series as it is, and no other', () => {
  const rows = [...readText('docs/metrics.md').matchAll(/^\| `([a-z0-9_]+)` \| (\w+) \| ([a-z_, ]*?) ?\| (.+) \|$/gm)]
  assert.deepEqual(
    rows.map(([, name, type, labels, help]) => [name, type, labels, help]),
    Object.entries(all).map(([name, { type, labels, help }]) => [
      name,
      type,
      labels.join(', '),
      help.replace(/\.$/, '')
    ])
  )
})

test('no document names a series that does not exist', () => {
  for (const document of ['README.md', ...listFiles('docs/**/*.md')]) {
    const unknown = seriesIn(readText(document)).filter(name => !Object.hasOwn(all, name))
    assert.deepEqual(unknown, [], document)
  }
})
