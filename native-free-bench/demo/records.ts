/**
 * The real data that the demo replays, read from the package vega-datasets: records with the key and the text they
 * are sent with, and the partition each must land in. Pure but for reading the two files. Main thread.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** A record as it is sent: its value is its JSON text. */
export interface DemoRecord {
  readonly key: string
  readonly value: string
}

export interface DataSet {
  readonly name: string
  /** The field that is the key. */
  readonly keyField: string
  readonly partitions: number
  /** Records per request, at most. */
  readonly batchRecords: number
  readonly records: readonly DemoRecord[]
}

/** 231,083 flights (key: distance) and 1,707 earthquakes (key: net). @throws Error when the package is not installed. */
export function readDataSets(): readonly DataSet[] {
  return [
    {
      name: 'flights',
      keyField: 'distance',
      partitions: 12,
      batchRecords: 500,
      records: asArray(readJson('flights-200k.json')).map(flight => toRecord(flight, field(flight, 'distance')))
    },
    {
      name: 'earthquakes',
      keyField: 'net',
      partitions: 3,
      // Small requests, so that 1,707 records are enough of them to be cut in half by a kill.
      batchRecords: 50,
      records: asArray(field(readJson('earthquakes.json'), 'features')).map(feature =>
        toRecord(feature, field(field(feature, 'properties'), 'net'))
      )
    }
  ]
}

/**
 * The partition of a key: FNV-1a 64 modulo the count, in big integers straight from the definition. Written apart from
 * the broker's own hash on purpose: the demo checks the broker with it.
 */
export function partitionOfKey(key: string, partitions: number): number {
  let hash = 0xcbf29ce484222325n
  for (const byte of Buffer.from(key)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return Number(hash % BigInt(partitions))
}

function readJson(file: string): unknown {
  const require = createRequire(import.meta.url)
  // The package exports no data files, but its manifest's folder is where they lie.
  const folder = dirname(findPackage(require))
  const value: unknown = JSON.parse(readFileSync(join(folder, 'data', file), 'utf8'))
  return value
}

function findPackage(require: NodeJS.Require): string {
  for (const folder of require.resolve.paths('vega-datasets') ?? []) {
    const manifest = join(folder, 'vega-datasets', 'package.json')
    try {
      readFileSync(manifest)
      return manifest
    } catch (error) {
      // Not in this node_modules: the next one up is asked.
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    }
  }
  throw new Error('the package vega-datasets is not installed: run `npm ci` (it is a development dependency)')
}

function toRecord(value: unknown, key: unknown): DemoRecord {
  if (typeof key !== 'string' && typeof key !== 'number') throw new Error('a record of the data set has no key')
  return { key: String(key), value: JSON.stringify(value) }
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) throw new Error(`the data set is not as expected: no ${name}`)
  return Object.entries(value).find(([key]) => key === name)?.[1]
}

function asArray(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error('the data set is not as expected: no list')
  return value
}
