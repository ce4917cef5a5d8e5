/**
 * A parser of Prometheus' text format 0.0.4, written from its description and strict: a page that it takes is one that
 * scrapers take. It shares nothing with what writes the page.
 */
import assert from 'node:assert/strict'

export interface ParsedSample {
  /** The name of the line: of a histogram with `_bucket`, `_sum` or `_count`. */
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  /** As written. */
  readonly text: string
}

export interface ParsedSeries {
  readonly help: string
  readonly type: string
  readonly samples: readonly ParsedSample[]
}

/** Series by name, in the order of the page. @throws what is wrong, with the line. */
export function parsePage(page: string): Map<string, ParsedSeries> {
  assert.ok(page.endsWith('\n'), 'the last line ends')
  const all = new Map<string, { help: string; type: string; samples: ParsedSample[] }>()
  let current = ''
  let pending: { name: string; text: string } | undefined
  const seen = new Set<string>()
  for (const [i, line] of page.slice(0, -1).split('\n').entries()) {
    const where = `line ${i + 1}: ${line}`
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line) ?? []
    if (kind === 'HELP') {
      assert.ok(!all.has(name), `a series stands in one place: ${where}`)
      pending = { name, text: rest }
    } else if (kind === 'TYPE') {
      assert.equal(pending?.name, name, `HELP stands before TYPE: ${where}`)
      assert.match(rest, /^(counter|gauge|histogram)$/, where)
      all.set(name, { help: pending?.text ?? '', type: rest, samples: [] })
      current = name
      pending = undefined
    } else {
      const sample = parseSample(line, where)
      const series = all.get(current)
      assert.ok(series !== undefined && pending === undefined, `a sample follows its series: ${where}`)
      const suffix = sample.name.slice(current.length)
      const allowed = series.type === 'histogram' ? /^_(bucket|sum|count)$/ : /^$/
      assert.ok(sample.name.startsWith(current) && allowed.test(suffix), `a sample stands under its series: ${where}`)
      const key = `${sample.name}${JSON.stringify(Object.entries(sample.labels).sort())}`
      assert.ok(!seen.has(key), `a sample stands once: ${where}`)
      seen.add(key)
      series.samples.push(sample)
    }
  }
  for (const [name, series] of all) if (series.type === 'histogram') checkHistogram(name, series.samples)
  return all
}

function parseSample(line: string, where: string): ParsedSample {
  const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*/.exec(line)?.[0]
  assert.ok(name !== undefined, `no name: ${where}`)
  let at = name.length
  const labels: Record<string, string> = {}
  if (line[at] === '{') {
    at++
    while (line[at] !== '}') {
      const label = /^[a-zA-Z_][a-zA-Z0-9_]*(?==")/.exec(line.slice(at))?.[0]
      assert.ok(label !== undefined && !Object.hasOwn(labels, label), `no label, or twice: ${where}`)
      at += label.length + 2
      let value = ''
      for (; line[at] !== '"'; at++) {
        assert.ok(at < line.length, `an open quote: ${where}`)
        if (line[at] !== '\\') value += line[at] ?? ''
        else {
          const escaped: string | undefined = { '\\': '\\', '"': '"', n: '\n' }[line[++at] ?? '']
          assert.ok(escaped !== undefined, `an unknown escape: ${where}`)
          value += escaped
        }
      }
      labels[label] = value
      at++
      assert.ok(line[at] === ',' || line[at] === '}', `no end of a label: ${where}`)
      if (line[at] === ',') at++
    }
    at++
  }
  const [, text = ''] = /^ (\S+)$/.exec(line.slice(at)) ?? []
  assert.match(text, /^([+-]Inf|NaN|[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)$/, where)
  const value = text.endsWith('Inf') ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text)
  return { name, labels, value, text }
}

/** Buckets rise, the last one is +Inf and is the count. */
function checkHistogram(name: string, samples: readonly ParsedSample[]): void {
  const groups = Map.groupBy(samples, ({ labels: { le: _le, ...rest } }) => JSON.stringify(rest))
  for (const [labels, group] of groups) {
    const buckets = group.filter(sample => sample.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) => (labels['le'] === '+Inf' ? Infinity : Number(labels['le'])))
    assert.deepEqual(
      bounds,
      bounds.toSorted((a, b) => a - b),
      `${name}${labels}`
    )
    assert.equal(bounds.at(-1), Infinity, `${name}${labels}`)
    const counts = buckets.map(({ value }) => value)
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => a - b),
      `${name}${labels}`
    )
    assert.equal(group.find(sample => sample.name === `${name}_count`)?.value, counts.at(-1), `${name}${labels}`)
    assert.equal(group.filter(sample => sample.name === `${name}_sum`).length, 1, `${name}${labels}`)
  }
}

/** The value of the sample with these labels; undefined: there is none. */
export function valueOf(
  page: ReadonlyMap<string, ParsedSeries>,
  name: string,
  labels: Readonly<Record<string, string>> = {}
): number | undefined {
  const base = page.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '')
  return page.get(base)?.samples.find(sample => {
    const entries = Object.entries(sample.labels)
    return (
      sample.name === name &&
      entries.length === Object.keys(labels).length &&
      entries.every(([label, value]) => labels[label] === value)
    )
  })?.value
}
