/**
 * The jobs of cold storage: segments on their way there, copies on their way back, objects that go. Background thread, which
 * keeps the store open from job to job. What a disk or a store refuses is an answer; only bugs are thrown.
 */
import type {
  ColdPlace,
  ColdResult,
  FetchSegmentValue,
  RemoveObjectsResult,
  RemoveObjectsValue,
  SweepColdValue,
  TierSegmentsResult,
  TierSegmentsValue
} from '../../src/background/cold.ts'
import { ColdError, type ObjectStore } from '../../src/cold/object-store.ts'
import { openColdStore } from '../../src/cold/open-store.ts'
import { DiskError, type Disk } from '../../src/disk/disk.ts'
import { parseFaultPlan } from '../../src/disk/fault-plan.ts'
import { createRealDisk } from '../../src/disk/real-disk.ts'
import { prepareColdSegment, removeOutgoing, type OutgoingSegment } from '../../src/log/cold-files.ts'
import { DamagedSegment } from '../../src/log/compaction/segment-source.ts'
import type { ManifestPartition, ManifestSegment } from '../../src/log/manifest.ts'
import { SettleMemory } from '../../src/log/settle/settle-memory.ts'
import { packMessage, unpackMessage } from '../../src/wire/msgpack.ts'
import { COLD_CACHE_DIRECTORY, cachedPath } from '../../src/wire/shard/cold.ts'

/** What a thread has of cold storage. */
interface Opened {
  readonly key: string
  readonly disk: Disk
  readonly store: ObjectStore
}

let opened: Opened | null = null
let memory: SettleMemory | null = null

async function open(place: ColdPlace): Promise<Opened> {
  const key = JSON.stringify(place)
  if (opened?.key === key) return opened
  opened?.store.close()
  opened = null
  const disk = createRealDisk(place.faults === null ? undefined : parseFaultPlan(place.faults))
  const store = await openColdStore(place, disk)
  if (store === null) throw new ColdError('refused', 'no cold storage is configured')
  opened = { key, disk, store }
  return opened
}

/** What is in the way, in words. @throws what is a bug. */
function problemOf(error: unknown): string {
  const isKnown = error instanceof DiskError || error instanceof ColdError || error instanceof DamagedSegment
  if (!isKnown) throw error
  return error.message
}

/** Stores segments, reads them back, and says what takes their place in the manifest. One that fails stays as it is. */
export async function tierSegments(value: TierSegmentsValue): Promise<TierSegmentsResult> {
  const bytes = Buffer.from(value.partition)
  const partition = unpackMessage(bytes, 0, bytes.length) as ManifestPartition
  const wanted = new Set(value.baseOffsets)
  const isWanted = ({ baseOffset }: ManifestSegment): boolean => wanted.has(baseOffset)
  // Neighbours, also those between them that stay as they are.
  const { segments } = partition
  const inputs = segments.slice(segments.findIndex(isWanted), segments.findLastIndex(isWanted) + 1)
  const outputs: ManifestSegment[] = []
  const failures: { problem: string; isUnavailable: boolean }[] = []
  const keys: string[] = []
  const stored = { segments: 0, bytes: 0, keys }
  for (const segment of inputs) {
    if (!isWanted(segment) || failures.some(({ isUnavailable }) => isUnavailable)) {
      outputs.push(segment)
      continue
    }
    try {
      const { segment: cold, files } = await tierOne(value, partition, segment)
      outputs.push(cold)
      keys.push(...files.map(({ key }) => key))
      stored.segments++
      stored.bytes += segment.bytes
    } catch (error) {
      failures.push({ problem: problemOf(error), isUnavailable: error instanceof ColdError })
      outputs.push(segment)
    }
  }
  const replacement =
    stored.segments > 0 ? packMessage({ handle: partition.handle, inputs, outputs, directory: null }) : null
  const problem = failures[0]?.problem ?? null
  return { replacement, ...stored, problem, isUnavailable: failures.some(({ isUnavailable }) => isUnavailable) }
}

async function tierOne(
  { place, shard, placementEpoch }: TierSegmentsValue,
  partition: ManifestPartition,
  segment: ManifestSegment
): Promise<OutgoingSegment> {
  const { disk, store } = await open(place)
  memory ??= new SettleMemory()
  const at = { disk, dataDirectory: place.dataDirectory, memory }
  const steps = prepareColdSegment(at, { shard, placementEpoch }, partition, segment)
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  try {
    for (const { key, path, bytes, checksum } of step.value.files) {
      await store.put(key, path, bytes, checksum)
      await store.verify(key, bytes, checksum)
    }
  } finally {
    removeOutgoing(at, step.value)
  }
  return step.value
}

/** Brings a copy of a cold segment; it has its name only once all of it is there and is what it should be. */
export async function fetchSegment({ place, segment, evict }: FetchSegmentValue): Promise<ColdResult> {
  try {
    const { disk, store } = await open(place)
    const absolute = (name: string, kind: '.log' | '.blocks'): string =>
      `${place.dataDirectory}/${cachedPath(name, kind)}`
    for (const name of [...evict, segment.name]) {
      removeIfThere(disk, absolute(name, '.log'))
      removeIfThere(disk, absolute(name, '.blocks'))
    }
    const directory = `${place.dataDirectory}/${COLD_CACHE_DIRECTORY}`
    if (!disk.exists(directory)) makeDirectory(disk, directory)
    const { logKey, blocksKey, logBytes, blocksBytes, logChecksum, blocksChecksum } = segment
    // The log last: what has one has all.
    await fetchOne(disk, store, absolute(segment.name, '.blocks'), {
      key: blocksKey,
      bytes: blocksBytes,
      checksum: blocksChecksum
    })
    await fetchOne(disk, store, absolute(segment.name, '.log'), {
      key: logKey,
      bytes: logBytes,
      checksum: logChecksum
    })
    return { problem: null }
  } catch (error) {
    return { problem: problemOf(error) }
  }
}

async function fetchOne(
  disk: Disk,
  store: ObjectStore,
  path: string,
  expected: { readonly key: string; readonly bytes: number; readonly checksum: number }
): Promise<void> {
  const { key, bytes, checksum } = expected
  const unfinished = `${path}.new`
  removeIfThere(disk, unfinished)
  const read = await store.fetch(key, unfinished, bytes)
  if (read.bytes !== bytes || read.crc32c !== checksum) {
    disk.remove('segment.remove', unfinished)
    throw new ColdError('damaged', `object ${key} is not what was stored there`)
  }
  disk.rename('segment.rename', unfinished, path)
}

function removeIfThere(disk: Disk, path: string): void {
  if (disk.exists(path)) disk.remove('segment.remove', path)
}

function makeDirectory(disk: Disk, path: string): void {
  try {
    disk.makeDirectory('segment.directory', path)
  } catch (error) {
    // Another thread brought the first copy at the same time.
    if (!(error instanceof DiskError) || error.code !== 'EEXIST') throw error
  }
}

/** Takes objects away, as many as the store lets. */
export async function removeObjects({ place, keys }: RemoveObjectsValue): Promise<RemoveObjectsResult> {
  const removed: string[] = []
  try {
    const { store } = await open(place)
    for (const key of keys) {
      await store.remove(key)
      removed.push(key)
    }
    return { removed, problem: null }
  } catch (error) {
    return { removed, problem: problemOf(error) }
  }
}

/** Takes away what puts of the last run left in the store. */
export async function sweepCold({ place }: SweepColdValue): Promise<ColdResult> {
  try {
    const { store } = await open(place)
    await store.sweep()
    return { problem: null }
  } catch (error) {
    return { problem: problemOf(error) }
  }
}
