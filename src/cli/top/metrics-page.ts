/**
 * A page of /metrics, as far as `millrace top` reads it: Prometheus' text format, version 0.0.4. Pure. Lines of other series
 * are passed over before they are looked into, since a broker with many partitions has long pages.
 */

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  /** Tells it from the others of its name. */
  readonly key: string
}

const namePattern = /^[a-zA-Z_:][a-zA-Z0-9_:]*/
const labelPattern = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g
const escapes: Readonly<Record<string, string>> = { '\\\\': '\\', '\\"': '"', '\\n': '\n' }

/** Samples by name. Only the wanted names are there. */
export function readPage(page: string, wanted: ReadonlySet<string>): MetricsPage {
  const series = new Map<string, Sample[]>()
  for (const line of page.split('\n')) {
    const name = namePattern.exec(line)?.[0]
    if (name === undefined || !wanted.has(name)) continue
    const end = line.lastIndexOf(' ')
    const key = line.slice(name.length, end)
    const labels: Record<string, string> = {}
    for (const [, label = '', value = ''] of key.matchAll(labelPattern)) {
      labels[label] = value.replace(/\\[\\"n]/g, escaped => escapes[escaped] ?? escaped)
    }
    const samples = series.get(name) ?? []
    samples.push({ labels, value: numberOf(line.slice(end + 1)), key })
    series.set(name, samples)
  }
  return new MetricsPage(series)
}

function numberOf(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY
  return text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text)
}

export class MetricsPage {
  readonly #series: ReadonlyMap<string, readonly Sample[]>

  constructor(series: ReadonlyMap<string, readonly Sample[]>) {
    this.#series = series
  }

  samples(name: string): readonly Sample[] {
    return this.#series.get(name) ?? []
  }

  /** @returns null if there is no such sample: the key may not see it. */
  sum(name: string): number | null {
    const samples = this.samples(name)
    return samples.length === 0 ? null : samples.reduce((sum, { value }) => sum + value, 0)
  }

  /** Values summed up by a label, in the order of the page. */
  sumBy(name: string, label: string): Map<string, number> {
    return sumBy(this.samples(name), label)
  }

  /**
   * How much counters have grown since a page before. One that is new, or has begun again because the broker or a shard
   * has, has grown by what it is.
   */
  grownSince(before: MetricsPage, name: string): readonly Sample[] {
    const old = new Map(before.samples(name).map(({ key, value }) => [key, value]))
    return this.samples(name).map(sample => {
      const was = old.get(sample.key) ?? 0
      return { ...sample, value: sample.value < was ? sample.value : sample.value - was }
    })
  }
}

export function sumBy(samples: readonly Sample[], label: string): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { labels, value } of samples) {
    const name = labels[label] ?? ''
    sums.set(name, (sums.get(name) ?? 0) + value)
  }
  return sums
}

/**
 * A quantile of a histogram, by its buckets, as Prometheus estimates it: even inside a bucket.
 * @param buckets how many were at or below each `le`; of several histograms together if they have the same bounds.
 * @returns null if nothing was counted.
 */
export function quantileOf(buckets: ReadonlyMap<string, number>, quantile: number): number | null {
  const bounds = [...buckets].map(([le, count]) => ({ le: numberOf(le), count })).sort((a, b) => a.le - b.le)
  const total = bounds.at(-1)?.count ?? 0
  if (total === 0) return null
  const rank = quantile * total
  const at = bounds.findIndex(({ count }) => count >= rank)
  const { le = 0, count = 0 } = bounds[at] ?? {}
  const { le: below, count: countBelow } = bounds[at - 1] ?? { le: 0, count: 0 }
  if (!Number.isFinite(le)) return below
  return below + (le - below) * ((rank - countBelow) / (count - countBelow))
}
