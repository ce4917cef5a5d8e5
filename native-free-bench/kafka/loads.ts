/** The loads of the scenario kafka, its sides, and what is concluded from what they gave. Pure; any thread. */
import type { Cell } from '../results.ts'
import { pairedRatio } from '../statistics.ts'
import type { ProducerRun } from './perf-tools.ts'

/** A broker as it is set up for a comparison. */
export interface Side {
  readonly name: string
  readonly isOurs: boolean
  /** Of the topics. */
  readonly configs: Readonly<Record<string, string>>
  /** How many times its records/s ours should have; null: it is ours. */
  readonly wanted: number | null
  /** Of the records of each load: who syncs each batch of each partition needs minutes for what takes others seconds. */
  readonly share: number
  /** Syncing makes no difference to who reads. */
  readonly isRead: boolean
}

/** Ours syncs before each acknowledgement in any case, so it stands against Kafka as it comes, and against one that syncs. */
export const sides: readonly [Side, Side, Side] = [
  { name: 'Millrace', isOurs: true, configs: {}, wanted: null, share: 1, isRead: true },
  { name: 'Kafka', isOurs: false, configs: {}, wanted: 1, share: 1, isRead: true },
  {
    name: 'Kafka, flush.messages=1',
    isOurs: false,
    configs: { 'flush.messages': '1' },
    wanted: 3,
    share: 0.1,
    isRead: false
  }
]

export interface KafkaLoad extends Omit<ProducerRun, 'topic'> {
  readonly title: string
}

/** What of a load a side gets. */
export function loadOf({ share }: Side, load: KafkaLoad): KafkaLoad {
  const part = (records: number): number => Math.ceil(records * share)
  return { ...load, records: part(load.records), warmUpRecords: part(load.warmUpRecords) }
}

export interface Measurement {
  readonly load: KafkaLoad
  readonly kind: 'produce' | 'consume'
  readonly side: Side
  /** From 1 on. */
  readonly round: number
  readonly recordsPerSecond: number
  readonly mibPerSecond: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  readonly maxMs: number | null
  readonly cpuMicroseconds: number | null
}

/** A large batch is what someone sets who wants throughput; linger.ms is what Kafka 4 has anyway. */
const largeBatches = ['batch.size=131072', 'linger.ms=5']
const WARM_UP_SHARE = 0.2
const RATE = 10_000
const RATE_SECONDS = 10

/** @param megabytes of record values in each load that has no rate, without the warm-up. */
export function kafkaLoads(megabytes: number): KafkaLoad[] {
  const loads = [256, 1024].flatMap(recordBytes =>
    [[], largeBatches].map(properties => {
      const measured = Math.ceil((megabytes * 1e6) / recordBytes)
      const warmUpRecords = Math.ceil(measured * WARM_UP_SHARE)
      const title = `${recordBytes} B, ${properties.length === 0 ? 'as the client comes' : 'batches of 128 KiB'}`
      return { title, recordBytes, warmUpRecords, records: warmUpRecords + measured, rate: null, properties }
    })
  )
  const warmUpRecords = RATE * RATE_SECONDS * WARM_UP_SHARE
  const records = warmUpRecords + RATE * RATE_SECONDS
  return [
    ...loads,
    { title: `256 B, ${RATE} records/s`, recordBytes: 256, warmUpRecords, records, rate: RATE, properties: [] }
  ]
}

export function rowOf(one: Measurement): Cell[] {
  const { load, kind, side, round, recordsPerSecond, mibPerSecond, p50Ms, p99Ms, maxMs, cpuMicroseconds } = one
  const tenths = (value: number | null): number | null => (value === null ? null : Math.round(value * 10) / 10)
  const figures = [Math.round(recordsPerSecond), tenths(mibPerSecond), p50Ms, p99Ms, maxMs, tenths(cpuMicroseconds)]
  return [`${kind} ${load.title}`, side.name, round, ...figures]
}

/** Ours over each of the others, within each round, then the median. */
export function ratioNotes(loads: readonly KafkaLoad[], measured: readonly Measurement[]): string[] {
  const [ours, ...others] = sides
  return loads.flatMap(load =>
    (['produce', 'consume'] as const).flatMap(kind => {
      const of = (side: Side): Measurement[] =>
        measured.filter(one => one.load === load && one.kind === kind && one.side === side)
      return others
        .filter(other => of(other).length > 0)
        .map(other => ratioNote(`${kind} ${load.title}`, other, of(ours), of(other)))
    })
  )
}

function ratioNote(name: string, side: Side, ours: readonly Measurement[], theirs: readonly Measurement[]): string {
  const isPaced = theirs[0]?.load.rate !== null
  const rates = pairedRatio(...pairedBy(one => one.recordsPerSecond, ours, theirs))
  const late = pairedRatio(...pairedBy(one => one.p99Ms ?? undefined, ours, theirs))
  const parts: string[] = []
  if (!isPaced) parts.push(`records/s ${text(rates)}${verdict(rates.median, side.wanted)}`)
  if (late.perRound.length > 0) parts.push(`p99 ${text(late)}`)
  return `${name}, ours ÷ ${side.name}: ${parts.join('; ')}`
}

type PerRound = (number | undefined)[]

/** One value a round of each, in the order of the rounds, whatever the order in which they were measured. */
function pairedBy(
  pick: (one: Measurement) => number | undefined,
  ours: readonly Measurement[],
  theirs: readonly Measurement[]
): [PerRound, PerRound] {
  const rounds = Math.max(0, ...ours.map(({ round }) => round))
  const valuesOf = (all: readonly Measurement[]): PerRound =>
    Array.from({ length: rounds }, (_, index) => {
      const one = all.find(({ round }) => round === index + 1)
      return one === undefined ? undefined : pick(one)
    })
  return [valuesOf(ours), valuesOf(theirs)]
}

function text({ median, perRound }: ReturnType<typeof pairedRatio>): string {
  return `${median.toFixed(2)} [${perRound.map(value => value.toFixed(2)).join(' ')}]`
}

function verdict(ratio: number, wanted: number | null): string {
  return wanted === null ? '' : `, at least ${wanted} is wanted: ${ratio >= wanted ? 'met' : 'missed'}`
}
