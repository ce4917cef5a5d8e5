/**
 * What holds in every manifest, whatever its bytes look like. Pure; the settler checks it before it writes a partition,
 * and whoever reads a manifest after it (house rule 20): a manifest that this version writes is one that it reads.
 *
 * Each rule is one that serving, settling or removing files builds upon. What is merely usual is no rule: a manifest
 * that is refused keeps its shard from starting.
 */
import type {
  DamagedRange,
  Extent,
  Manifest,
  ManifestPartition,
  ManifestProducer,
  ManifestSegment
} from './manifest.ts'

const U32_END = 0x1_0000_0000
const I32_END = 0x8000_0000
const PATH_BYTES_MAX = 4096
/** Names that this broker gives to files and directories: those of topics and `~`. */
const pathPattern = /^[A-Za-z0-9._~-]+(\/[A-Za-z0-9._~-]+)*$/

/** @returns what is wrong with the manifest itself, its partitions aside; null: nothing. */
export function headProblem(manifest: Manifest): string | null {
  if (!isU32(manifest.shard) || !isU32(manifest.placementEpoch)) return 'shard or placement epoch is no 32-bit number'
  for (const field of ['commit', 'settledSequence', 'settledGroup', 'receiveMsMax'] as const) {
    if (!isCount(manifest[field])) return `${field} is no whole number from 0`
  }
  if (!isCount(manifest.nextPack) || manifest.nextPack === 0) return 'nextPack is no whole number from 1'
  for (const { path, dueMs } of manifest.removals) {
    if (!isPath(path)) return 'a file to remove is not named by a path below the data directory'
    if (!isCount(dueMs)) return `the time to remove ${path} is no whole number from 0`
  }
  return null
}

/**
 * @param nextPack of the manifest: pack files from that number on do not exist.
 * @returns what is wrong with a partition; null: nothing.
 */
export function partitionProblem(partition: ManifestPartition, nextPack: number): string | null {
  if (!isU32(partition.handle)) return 'its handle is no 32-bit number'
  if (!isPath(partition.directory)) return 'its directory is not named by a path below the data directory'
  for (const field of ['generation', 'startOffset', 'nextOffset'] as const) {
    if (!isCount(partition[field])) return `${field} is no whole number from 0`
  }
  return (
    epochsProblem(partition) ??
    producersProblem(partition) ??
    segmentsProblem(partition, nextPack) ??
    damagedProblem(partition.damaged, partition.nextOffset)
  )
}

function epochsProblem({ epochs }: ManifestPartition): string | null {
  let epochBefore = 0
  let startBefore = 0
  for (const { epoch, startOffset } of epochs) {
    if (!isCount(epoch) || epoch >= I32_END || !isCount(startOffset)) return 'a leader epoch is out of range'
    if (epoch <= epochBefore || startOffset < startBefore) return `leader epoch ${epoch} is not behind the one before`
    epochBefore = epoch
    startBefore = startOffset
  }
  return null
}

function producersProblem({ producers, nextOffset }: ManifestPartition): string | null {
  const numbers = new Set<number>()
  for (const producer of producers) {
    const problem = producerProblem(producer, nextOffset)
    if (problem !== null) return `producer ${producer.number}: ${problem}`
    if (numbers.has(producer.number)) return `producer ${producer.number} stands there twice`
    numbers.add(producer.number)
  }
  return null
}

/** Runs of a window: sequences without a hole, and offsets that rise with them (producer-sequences.ts). */
function producerProblem(producer: ManifestProducer, nextOffset: number): string | null {
  const { number, originHigh, originLow, next, firsts, bases, usedMs } = producer
  if (!isCount(number) || number === 0) return 'its number is no whole number from 1'
  if (!isI32(originHigh) || !isU32(originLow)) return 'its first sequence is out of range'
  if (!isCount(next) || !isCount(usedMs)) return 'next or usedMs is no whole number from 0'
  if (firsts.length === 0 || firsts.length !== bases.length) return 'its runs are incomplete'
  for (let run = 0; run < firsts.length; run++) {
    const first = firsts[run] ?? NaN
    const base = bases[run] ?? NaN
    if (!isCount(first) || !isCount(base)) return `run ${run} is out of range`
    const end = firsts[run + 1] ?? next
    const offsetsEnd = bases[run + 1] ?? nextOffset
    if (end <= first) return `run ${run} holds no sequence`
    if (base + end - first > offsetsEnd) return `run ${run} reaches beyond the offsets that it may have`
  }
  return null
}

function segmentsProblem({ segments, nextOffset }: ManifestPartition, nextPack: number): string | null {
  let previous: ManifestSegment | null = null
  for (const segment of segments) {
    const problem = segmentProblem(segment, previous) ?? extentsProblem(segment, nextPack) ?? coldProblem(segment)
    if (problem !== null) return `segment of offset ${segment.baseOffset}: ${problem}`
    previous = segment
  }
  if (previous !== null && previous.nextOffset > nextOffset) return 'its segments reach beyond its next offset'
  return null
}

function segmentProblem(segment: ManifestSegment, previous: ManifestSegment | null): string | null {
  const { baseOffset, nextOffset, bytes, receiveMsMax, firstReceiveMs, compaction } = segment
  if (!isCount(baseOffset) || !isCount(nextOffset)) return 'its offsets are out of range'
  if (nextOffset <= baseOffset) return 'it holds no offset'
  if (nextOffset - baseOffset > U32_END) return 'it holds more offsets than a block entry can tell apart'
  if (!isCount(bytes) || !isCount(compaction)) return 'bytes or compaction is no whole number from 0'
  if (!isCount(receiveMsMax) || !isCount(firstReceiveMs)) return 'a receive time is no whole number from 0'
  if (firstReceiveMs > receiveMsMax) return 'it began after its newest record'
  if (previous === null) return null
  if (baseOffset < previous.nextOffset) return 'it overlaps the one before'
  return previous.isSealed ? null : 'the one before is not sealed'
}

/** Its objects are whole files: one `.log`, one `.blocks`. */
function coldProblem({ cold, isSealed, extents }: ManifestSegment): string | null {
  if (cold === undefined) return null
  if (!isU32(cold.checksum) || !isU32(cold.blocksChecksum) || !Number.isSafeInteger(cold.timestampMax))
    return 'what is known of its objects is out of range'
  const [extent] = extents
  if (!isSealed || extent === undefined || extents.length > 1) return 'it is cold, but not one whole file'
  const isWhole = extent.pack === 0 && extent.position === 0 && extent.blocksPack === 0 && extent.blocksPosition === 0
  return isWhole ? null : 'it is cold, but does not lie in files of its own'
}

function extentsProblem(segment: ManifestSegment, nextPack: number): string | null {
  let offset = segment.baseOffset
  let logEnd = 0
  for (const extent of segment.extents) {
    const problem = extentProblem(extent, nextPack)
    if (problem !== null) return `extent of offset ${extent.baseOffset}: ${problem}`
    if (extent.baseOffset < offset) return `extent of offset ${extent.baseOffset} overlaps what is before it`
    if (extent.nextOffset > segment.nextOffset)
      return `extent of offset ${extent.baseOffset} reaches beyond its segment`
    offset = extent.nextOffset
    if (extent.pack !== 0) continue
    if (extent.position < logEnd) return `extent of offset ${extent.baseOffset} overlaps another in the .log`
    logEnd = extent.position + extent.bytes
    if (logEnd >= U32_END) return 'its .log is larger than a block entry can tell'
  }
  return null
}

function extentProblem(extent: Extent, nextPack: number): string | null {
  const { pack, position, bytes, baseOffset, nextOffset, blockCount, blocksPack, blocksPosition } = extent
  if (!isCount(baseOffset) || !isCount(nextOffset) || nextOffset <= baseOffset) return 'it holds no offset'
  if (!isCount(pack) || !isCount(blocksPack)) return 'the number of a pack file is out of range'
  if (pack >= nextPack || blocksPack >= nextPack) return 'it lies in a pack file that was never made'
  if (!isCount(position) || !isCount(blocksPosition)) return 'a position is out of range'
  if (!isU32(bytes) || bytes === 0) return 'its length is out of range'
  if (!isU32(blockCount) || blockCount === 0) return 'its number of blocks is out of range'
  return null
}

function damagedProblem(damaged: readonly DamagedRange[], partitionNextOffset: number): string | null {
  let offset = 0
  for (const { firstOffset, nextOffset, path } of damaged) {
    if (!isCount(firstOffset) || !isCount(nextOffset) || nextOffset <= firstOffset) return 'a damaged range is empty'
    if (firstOffset < offset) return `the damaged range of offset ${firstOffset} overlaps the one before`
    if (nextOffset > partitionNextOffset)
      return `the damaged range of offset ${firstOffset} reaches beyond the next offset`
    if (path !== null && !isPath(path))
      return `the bytes of the damaged range of offset ${firstOffset} have no valid path`
    offset = nextOffset
  }
  return null
}

/** True for a path that leads nowhere but below the directory it is counted from. */
function isPath(path: string): boolean {
  if (path.length > PATH_BYTES_MAX || !pathPattern.test(path)) return false
  return !path.split('/').some(name => name === '.' || name === '..')
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

function isU32(value: number): boolean {
  return isCount(value) && value < U32_END
}

function isI32(value: number): boolean {
  return Number.isInteger(value) && value >= -I32_END && value < I32_END
}
