/** What is said of metrics anywhere is what there is: docs, dashboard, alert rules, runbooks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { quantiles } from '../../src/observe/loop-delay.ts'
import { processSeries, topicSeries, type SeriesSpec } from '../../src/observe/series.ts'
import { listFiles, readText } from '../support/repository.ts'

const all = { ...topicSeries, ...processSeries }
const suffix = /_(bucket|sum|count)$/

function specs(): Map<string, SeriesSpec> {
  return new Map(Object.entries(all))
}

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

/** Every expression of a query language, and where it stands. */
function expressions(): { readonly where: string; readonly text: string }[] {
  const rules = readText('config/deploy/prometheus-alerts.yaml')
  const alerts = [...rules.matchAll(/- alert: (\w+)\n +expr: (.+)$/gm)]
  assert.equal(alerts.length, rules.match(/- alert:/g)?.length, 'every alert has an expression')
  const dashboard = JSON.parse(readText('config/deploy/grafana-dashboard.json')) as {
    panels: { id: number; title: string; type: string; targets?: { expr: string }[] }[]
  }
  assert.equal(
    new Set(dashboard.panels.map(({ id }) => id)).size,
    dashboard.panels.length,
    'panels have ids of their own'
  )
  const panels = dashboard.panels.filter(({ type }) => type !== 'row')
  for (const { title, targets } of panels) assert.ok((targets?.length ?? 0) > 0, `${title} shows something`)
  return [
    ...alerts.map(([, where = '', text = '']) => ({ where, text })),
    ...panels.flatMap(({ title, targets }) => (targets ?? []).map(({ expr }) => ({ where: title, text: expr })))
  ]
}

test('the dashboard and the alert rules use series and labels that exist, each as its type allows', () => {
  const all = specs()
  const found = expressions()
  assert.ok(found.length > 40)
  const scrapes = /^up\{job="millrace"\} == 0 or absent\(up\{job="millrace"\}\)$/
  assert.ok(
    found.some(({ text }) => scrapes.test(text)),
    'a broker that does not answer has no series to tell of it'
  )
  assert.match(readText('docs/metrics.md'), /job_name: millrace$/m)
  for (const { where, text } of found.filter(({ text }) => !scrapes.test(text))) {
    const uses = [...text.matchAll(/\b((?:es|millrace)_[a-z0-9_]+)(\{[^}]*\})?(\[[^\]]+\])?/g)]
    assert.ok(uses.length > 0, where)
    for (const [use, name = '', selector = '', range] of uses) {
      const isPart = !all.has(name)
      const series = all.get(isPart ? name.replace(suffix, '') : name)
      assert.ok(series !== undefined, `${where}: ${name}`)
      assert.equal(isPart, series.type === 'histogram', `${where}: only histograms have parts: ${use}`)
      if (series.type === 'gauge')
        assert.ok(range === undefined || /(predict_linear|delta)\(/.test(text), `${where}: a gauge has no rate`)
      const labels = [...selector.matchAll(/([a-z_]+)(?:=~|!~|!=|=)"/g)].map(([, label]) => label ?? '')
      for (const label of labels)
        assert.ok(series.labels.includes(label) || label === 'instance', `${where}: ${name} has no label ${label}`)
    }
    const grouped = [...text.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/, */))
    const known = new Set([
      'le',
      'instance',
      ...uses.flatMap(([, name = '']) => all.get(name.replace(suffix, ''))?.labels ?? all.get(name)?.labels ?? [])
    ])
    for (const label of grouped) assert.ok(known.has(label), `${where}: no series there has ${label}`)
  }
})

test('every alert says what is wrong, how bad it is, and where the runbook stands', () => {
  const headings = [...readText('docs/operations.md').matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-')
  )
  const blocks = readText('config/deploy/prometheus-alerts.yaml').split('- alert: ').slice(1)
  for (const block of blocks) {
    const name = block.split('\n', 1)[0] ?? ''
    assert.match(block, /^ +labels: \{ severity: (critical|warning|info) \}$/m, name)
    assert.match(block, /^ +summary: '.+\.'$/m, name)
    const anchor = /^ +runbook: docs\/operations\.md#(\S+)$/m.exec(block)?.[1]
    assert.ok(anchor !== undefined && headings.includes(anchor), `${name}: ${anchor}`)
  }
})

test('every value that a rule or a panel asks a label for is one that the broker gives', () => {
  const given: Readonly<Record<string, readonly string[]>> = {
    state: ['ready', 'starting', 'down'],
    quantile: quantiles.map(String),
    thread: ['main'],
    kind: ['used', 'total', 'external', 'array_buffers'],
    result: ['done', 'failed'],
    job: ['millrace']
  }
  for (const { where, text } of expressions())
    for (const [, label = '', value = ''] of text.matchAll(/\b([a-z_]+)!?="([^"$]+)"/g))
      assert.ok(given[label]?.includes(value), `${where}: ${label}="${value}"`)
})
