/**
 * The command line of the load generator. Pure: text in, options or every fault at once out.
 */
import { parseArgs } from 'node:util'
import { parseAddress } from './drivers/driver.ts'
import { ES01_SLOTS_MAX } from './drivers/es01.ts'
import { protocols } from './load/connections.ts'
import type { BrokerAddresses, Protocol } from './load/connections.ts'
import { parseBytes } from './units.ts'

export const scenarios = [
  'limit',
  'produce',
  'partitions',
  'latency',
  'consume',
  'mixed',
  'sustained',
  'cleaning',
  'recovery',
  'many',
  'scrape',
  'groups',
  'streams',
  'connections',
  'kafka',
  'json'
] as const
export type Scenario = (typeof scenarios)[number]

/** The HTTP servers that a broker has. */
export const httpEngines = ['uws', 'node'] as const
export type HttpEngine = (typeof httpEngines)[number]

export interface BenchOptions {
  readonly scenarios: readonly Scenario[]
  readonly protocols: readonly Protocol[]
  readonly rounds: number
  readonly windowMs: number
  readonly warmUpMs: number
  readonly connections: number
  readonly inFlight: number
  readonly records: number
  readonly valueBytes: number
  /** Partitions of the topic where the scenario does not vary them. */
  readonly partitions: number
  /** null: the scenario's own, see partitionCountsOf of plan.ts. */
  readonly partitionCounts: readonly number[] | null
  readonly keyed: boolean
  /** Requests per second of an open loop, or null for a closed loop. */
  readonly rate: number | null
  /** Shard counts to sweep; null stands for the broker's default. */
  readonly shards: readonly (number | null)[]
  /** HTTP engines of the brokers of `json` and `streams`; null stands for the broker's own choice, and for both. */
  readonly engines: readonly (HttpEngine | null)[]
  readonly fillAheadBytes: number
  /** Journal budget of the brokers of `sustained` and `cleaning`; null: the broker's own. */
  readonly budgetBytes: number | null
  /** Journal budgets that `sustained` and `cleaning` write in all. */
  readonly budgets: number
  /** Data of the scenario recovery, 10⁹ bytes, rising. */
  readonly gigabytes: readonly number[]
  /** Starts that recovery takes the median of. */
  readonly starts: number
  /** Record values of each load of the scenario kafka, 10⁶ bytes. */
  readonly megabytes: number
  readonly fetchBytes: number
  /** Bytes per sync of the first limit loop; null: as the broker reports, else estimated. */
  readonly limitBytes: number | null
  readonly jsonPath: string | null
  readonly htmlPath: string | null
  /** Folder under which data directories are made and removed. */
  readonly dataDir: string | null
  /** A broker that runs already; null: one is started per case. */
  readonly broker: BrokerAddresses | null
  readonly help: boolean
}

export const helpText = `Usage: npm run bench -- [options]

Measures a broker with durable writes: starts one per case on a fresh directory, warms up, measures a window, and
compares with a bare loop of write + fdatasync on the same disk. Rounds are interleaved, every other one backwards.

  --scenario LIST          ${scenarios.join(', ')} (default: limit,produce,partitions,latency)
  --protocol LIST          es01, http (default: es01)
  --rounds N               rounds of all cases (default: 5)
  --seconds N              measured window (default: 3); ends earlier when the filled slots are used up
  --warm-up N              seconds before the window (default: 0.5)
  --connections N          (default: 8)
  --in-flight N            requests in flight per connection (default: 4; over HTTP that many more connections)
  --records N              records per request (default: 500)
  --bytes SIZE             bytes of a value (default: 256)
  --partitions N           partitions of the topic (default: 12)
  --partition-counts LIST  for partitions (default: 1,12,100,1000), sustained and cleaning (default: 12,1000; cleaning
                           only the first), recovery (default: 1000,10000), many and scrape (default: 10000)
  --keyed                  records have keys and scatter by them
  --rate N                 open loop: requests per second, latency from the intended send time
  --shards LIST            sweep over shard counts (default: the broker's own)
  --engine LIST            uws, node: HTTP engines of the brokers of json (default: the broker's choice) and streams (both)
  --fill-ahead SIZE        slots filled before a window opens, in all (default: 2GiB)
  --budget SIZE            journal budget of sustained and cleaning (default: the broker's own; a smaller one is quicker)
  --budgets N              journal budgets that sustained and cleaning write in all (default: 4)
  --gigabytes LIST         data of recovery (default: 1,10)
  --starts N               starts of recovery per line of its table (default: 5)
  --megabytes N            data of each load of kafka (default: 500)
  --fetch-bytes SIZE       max_bytes of a consume (default: 1MiB)
  --limit-bytes SIZE       bytes per sync of the first bare loop (default: what the broker reports, else an estimate)
  --data-dir DIR           where data directories are made (default: the current folder); must be on a disk
  --broker HTTP[,ES01]     measure a running broker instead, e.g. 127.0.0.1:9000,127.0.0.1:9001
  --json FILE              write everything as JSON
  --html FILE              write a report with charts
  --help

Examples:
  npm run bench -- --scenario limit,produce --rounds 5 --html bench-report.html
  npm run bench -- --scenario latency --rate 500 --seconds 10
  npm run bench -- --scenario produce --shards 1,2 --protocol es01,http
  npm run bench -- --scenario limit,sustained,cleaning --budget 1GiB --rounds 3
  npm run bench -- --scenario recovery --gigabytes 1,10,30
  npm run bench -- --scenario json --engine uws,node
  npm run bench -- --scenario streams --rounds 1 --seconds 10
  npm run bench -- --scenario connections --rounds 5 --seconds 10
  npm run bench -- --scenario kafka --rounds 3 --json bench-report.json
`

/** Scenarios that need a fresh directory, a setting or a restart. */
const ownBrokerOnly: ReadonlySet<Scenario> = new Set<Scenario>([
  'sustained',
  'cleaning',
  'recovery',
  'many',
  'scrape',
  'groups',
  'streams',
  'connections',
  'kafka',
  'json'
])

/** Every fault of a command line, one per line. */
export class OptionsError extends Error {
  override readonly name = 'OptionsError'
}

const text = { type: 'string' } as const
const flag = { type: 'boolean', default: false } as const

/** @param args without node and script. @throws OptionsError naming every fault. */
export function parseOptions(args: readonly string[]): BenchOptions {
  const values = parseFlags(args)
  const faults: string[] = []
  const read = new OptionReader(values, faults)
  const options: BenchOptions = {
    scenarios: read.choices('scenario', scenarios, ['limit', 'produce', 'partitions', 'latency']),
    protocols: read.choices('protocol', protocols, ['es01']),
    rounds: read.integer('rounds', 5, 1, 1000),
    windowMs: read.seconds('seconds', 3, 0.1, 3600),
    warmUpMs: read.seconds('warm-up', 0.5, 0, 600),
    connections: read.integer('connections', 8, 1, 1000),
    inFlight: read.integer('in-flight', 4, 1, ES01_SLOTS_MAX),
    records: read.integer('records', 500, 1, 100_000),
    valueBytes: read.bytes('bytes', 256),
    partitions: read.integer('partitions', 12, 1, 10_000),
    partitionCounts: values['partition-counts'] === undefined ? null : read.integers('partition-counts', [], 1, 10_000),
    keyed: values['keyed'] === true,
    rate: values['rate'] === undefined ? null : read.integer('rate', 1, 1, 10_000_000),
    shards: values['shards'] === undefined ? [null] : read.integers('shards', [], 1, 1024),
    engines: values['engine'] === undefined ? [null] : read.choices('engine', httpEngines, []),
    fillAheadBytes: read.bytes('fill-ahead', 2 * 1024 ** 3),
    budgetBytes: values['budget'] === undefined ? null : read.bytes('budget', 0),
    budgets: read.integer('budgets', 4, 1, 1000),
    gigabytes: read.integers('gigabytes', [1, 10], 1, 1000),
    starts: read.integer('starts', 5, 1, 1000),
    megabytes: read.integer('megabytes', 500, 1, 100_000),
    fetchBytes: read.bytes('fetch-bytes', 1024 ** 2),
    limitBytes: values['limit-bytes'] === undefined ? null : read.bytes('limit-bytes', 0),
    jsonPath: read.text('json'),
    htmlPath: read.text('html'),
    dataDir: read.text('data-dir'),
    broker: read.broker(),
    help: values['help'] === true
  }
  if (options.broker !== null && values['shards'] !== undefined) {
    faults.push('--shards is for brokers started here: it cannot change the one named by --broker')
  }
  const needsOwn = options.scenarios.filter(name => ownBrokerOnly.has(name))
  if (options.broker !== null && needsOwn.length > 0) {
    faults.push(
      `--scenario: ${needsOwn.join(', ')} starts and stops brokers of its own, so it does not go with --broker`
    )
  }
  if (options.gigabytes.some((size, index, all) => index > 0 && size <= (all[index - 1] ?? 0))) {
    faults.push('--gigabytes: the sizes must rise, because one directory grows from each to the next')
  }
  if (faults.length > 0) throw new OptionsError(faults.join('\n'))
  return options
}

type FlagValues = Readonly<Record<string, string | boolean | undefined>>

function parseFlags(args: readonly string[]): FlagValues {
  const names = ['scenario', 'protocol', 'rounds', 'seconds', 'warm-up', 'connections', 'in-flight', 'records', 'bytes']
  names.push('partitions', 'partition-counts', 'rate', 'shards', 'engine', 'fill-ahead', 'fetch-bytes', 'limit-bytes')
  names.push('budget', 'budgets', 'gigabytes', 'starts', 'megabytes', 'json', 'html', 'data-dir', 'broker')
  const options = Object.fromEntries(names.map(name => [name, text]))
  try {
    return parseArgs({ args: [...args], options: { ...options, keyed: flag, help: flag }, strict: true }).values
  } catch (error) {
    if (error instanceof Error && 'code' in error) throw new OptionsError(`${error.message} (--help lists all options)`)
    throw error
  }
}

/** Reads one value at a time and gathers the faults. A faulty value reads as its default. */
class OptionReader {
  readonly #values: FlagValues
  readonly #faults: string[]

  constructor(values: FlagValues, faults: string[]) {
    this.#values = values
    this.#faults = faults
  }

  text(name: string): string | null {
    const value = this.#values[name]
    return typeof value === 'string' ? value : null
  }

  integer(name: string, fallback: number, min: number, max: number): number {
    const value = this.text(name)
    return value === null ? fallback : this.#number(name, value, { min, max, whole: true })
  }

  integers(name: string, fallback: readonly number[], min: number, max: number): readonly number[] {
    const value = this.text(name)
    if (value === null) return fallback
    return value.split(',').map(part => this.#number(name, part, { min, max, whole: true }))
  }

  /** Seconds as milliseconds. */
  seconds(name: string, fallback: number, min: number, max: number): number {
    const value = this.text(name)
    return 1000 * (value === null ? fallback : this.#number(name, value, { min, max, whole: false }))
  }

  bytes(name: string, fallback: number): number {
    const value = this.text(name)
    if (value === null) return fallback
    return this.#attempt(name, fallback, () => parseBytes(value))
  }

  choices<T extends string>(name: string, allowed: readonly T[], fallback: readonly T[]): readonly T[] {
    const value = this.text(name)
    if (value === null) return fallback
    const chosen: T[] = []
    for (const part of value.split(',')) {
      const found = allowed.find(one => one === part.trim())
      if (found === undefined) this.#faults.push(`--${name}: '${part}' is not one of ${allowed.join(', ')}`)
      else chosen.push(found)
    }
    return chosen
  }

  broker(): BrokerAddresses | null {
    const value = this.text('broker')
    if (value === null) return null
    return this.#attempt('broker', null, () => {
      const [http, es01] = value.split(',')
      return { http: parseAddress(http ?? ''), es01: es01 === undefined ? null : parseAddress(es01) }
    })
  }

  #number(
    name: string,
    value: string,
    rule: { readonly min: number; readonly max: number; readonly whole: boolean }
  ): number {
    const number = value.trim() === '' ? Number.NaN : Number(value)
    if (number >= rule.min && number <= rule.max && (!rule.whole || Number.isInteger(number))) return number
    this.#faults.push(
      `--${name}: '${value}' is not a ${rule.whole ? 'whole ' : ''}number from ${rule.min} to ${rule.max}`
    )
    return rule.min
  }

  #attempt<T>(name: string, fallback: T, read: () => T): T {
    try {
      return read()
    } catch (error) {
      this.#faults.push(`--${name}: ${error instanceof Error ? error.message : String(error)}`)
      return fallback
    }
  }
}
