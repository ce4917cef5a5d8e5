/**
 * The series of the process, through prom-client, which escapes and writes them. Main thread. Nothing is counted here:
 * counters are plain numbers of those who count, and are read when a page is asked for.
 */
import { Gauge, Registry, type MetricObjectWithValues, type MetricValue } from 'prom-client'
import type { HistogramFigures } from '../base/histogram.ts'
import type { PageWriter } from './page-writer.ts'
import { processSeries, type ProcessSeries, type SeriesSpec } from './series.ts'

/** One number, or one histogram, with its labels. */
export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number | HistogramFigures
}

/** The samples of a series without labels. */
export function one(value: number): Sample[] {
  return [{ labels: {}, value }]
}

/** Reads the samples of every series. An empty list: it has none now. */
export type ProcessReaders = { readonly [Name in ProcessSeries]: () => readonly Sample[] | Promise<readonly Sample[]> }

/** Longest without a turn of the event loop. */
const TURN_MS = 2

/** A value under the name of its line; none: the name of the metric. */
type NamedValue = MetricValue<string> & { metricName?: string }

/** A metric that is read, not kept. */
class ReadSeries extends Gauge {
  /** Where prom-client looks what to write as the type. */
  readonly type: SeriesSpec['type']
  readonly #name: string
  readonly #read: () => readonly Sample[] | Promise<readonly Sample[]>

  constructor(name: string, spec: SeriesSpec, read: () => readonly Sample[] | Promise<readonly Sample[]>) {
    super({ name, help: spec.help, labelNames: [...spec.labels], registers: [] })
    this.type = spec.type
    this.#name = name
    this.#read = read
  }

  override async get(): Promise<MetricObjectWithValues<MetricValue<string>>> {
    const samples = await this.#read()
    const values = samples.flatMap(({ labels, value }): NamedValue[] =>
      typeof value === 'number' ? [{ labels, value }] : histogramValues(this.#name, labels, value)
    )
    return { ...(await super.get()), values }
  }
}

/** Buckets as Prometheus wants them: each counts what is below its bound, the lower ones included. */
function histogramValues(
  name: string,
  labels: Sample['labels'],
  { bounds, counts, sum }: HistogramFigures
): NamedValue[] {
  let below = 0
  const buckets = counts.map((count, i) => {
    below += count
    const le = bounds[i] ?? '+Inf'
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: below }
  ]
}

export class ProcessPage {
  readonly #registry = new Registry()
  readonly #names: readonly ProcessSeries[]

  constructor(readers: ProcessReaders) {
    this.#names = Object.keys(processSeries) as ProcessSeries[]
    for (const name of this.#names)
      this.#registry.registerMetric(new ReadSeries(name, processSeries[name], readers[name]))
  }

  /** Writes all of processSeries, in its order. */
  async write(page: PageWriter): Promise<void> {
    let startMs = performance.now()
    for (const name of this.#names) {
      page.text(`${await this.#registry.getSingleMetricAsString(name)}\n`)
      if (performance.now() - startMs < TURN_MS) continue
      await page.breathe()
      startMs = performance.now()
    }
  }

  /** What a caller gets who may not see them. */
  writeHeads(page: PageWriter): void {
    for (const name of this.#names) page.head(name, processSeries[name])
  }
}
