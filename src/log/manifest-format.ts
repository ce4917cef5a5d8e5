/**
 * The bytes of a manifest, versions 1 and 2 (docs/formats.md draws them). Pure; the settler thread writes them, shards and
 * the offline tools read them. Version 2 knows cold storage; what has nothing there is written as version 1, byte for byte.
 *
 *   0    magic 8 · 8 u32 version · 12 u64 bytes of the file · 20 u32 crc32c of all other bytes
 *   24   u32 length, head               msgpack
 *        u32 length, a partition        msgpack, one for each, handles ascending
 *        …
 *
 * Offsets and times within a partition are written as differences, which are small: so a partition of three segments is
 * some 200 bytes. A partition object never changes, so its bytes are kept and a commit encodes only what is new.
 *
 * Invariants: the first 24 bytes keep their meaning in every version, so a newer file is told from a damaged one; what
 * is encoded passes the rules of manifest-rules.ts, and nothing is returned that does not.
 */
import { BugError, assert } from '../base/assert.ts'
import { crc32c } from '../base/crc32c.ts'
import { packMessage } from '../wire/msgpack.ts'
import { readU64, write64 } from '../wire/primitives/u64.ts'
import { Fields, unpackPlain, type Faults } from './manifest-fields.ts'
import { headProblem, partitionProblem } from './manifest-rules.ts'
import type {
  ColdCopy,
  Extent,
  FileRemoval,
  Manifest,
  ManifestPartition,
  ManifestProducer,
  ManifestSegment
} from './manifest.ts'

/** The newest version that is read. */
export const MANIFEST_VERSION = 2
/** Of a manifest that names nothing in cold storage. */
const LOCAL_VERSION = 1
/** What every version begins with. */
export const MANIFEST_PREFIX_BYTES = 24
const MAGIC = Buffer.from('MILLMANI', 'latin1')
const VERSION_AT = 8
const BYTES_AT = 12
const CHECKSUM_AT = 20
const LENGTH_BYTES = 4
/** What one call to the file system takes: a thousand times the manifest of 10,000 partitions. */
const MANIFEST_BYTES_MAX = 2 ** 31 - 1

/** Encoded partitions. Each has memory of its own: a part of shared memory would keep all of that alive. */
const encodedPartitions = new WeakMap<ManifestPartition, Uint8Array>()

/**
 * The bytes of a manifest file; a fresh buffer, the caller's.
 * @throws BugError if it breaks a rule (manifest-rules.ts): it could never be read again.
 * @cost copies and checksums the whole file; encodes the partitions that no call has seen before.
 */
export function encodeManifest(manifest: Manifest): Buffer {
  refuse(headProblem(manifest))
  const partitions = [...manifest.partitions.values()].sort((a, b) => a.handle - b.handle)
  const chunks: Uint8Array[] = [packMessage(headValues(manifest))]
  for (const partition of partitions) {
    assert(manifest.partitions.get(partition.handle) === partition, 'a partition stands under its handle')
    chunks.push(encodePartition(partition, manifest.nextPack))
  }
  const total = chunks.reduce((sum, chunk) => sum + LENGTH_BYTES + chunk.length, MANIFEST_PREFIX_BYTES)
  assert(total <= MANIFEST_BYTES_MAX, 'a manifest is written in one call')
  const bytes = Buffer.allocUnsafe(total)
  MAGIC.copy(bytes)
  bytes.writeUInt32BE(namesCold(manifest) ? MANIFEST_VERSION : LOCAL_VERSION, VERSION_AT)
  write64(bytes, BYTES_AT, total)
  let at = MANIFEST_PREFIX_BYTES
  for (const chunk of chunks) {
    at = bytes.writeUInt32BE(chunk.length, at)
    bytes.set(chunk, at)
    at += chunk.length
  }
  bytes.writeUInt32BE(checksumOf(bytes), CHECKSUM_AT)
  return bytes
}

function namesCold({ partitions, removals }: Manifest): boolean {
  if (removals.some(({ isCold }) => isCold)) return true
  for (const { segments } of partitions.values()) if (segments.some(({ cold }) => cold !== undefined)) return true
  return false
}

function encodePartition(partition: ManifestPartition, nextPack: number): Uint8Array {
  const known = encodedPartitions.get(partition)
  if (known !== undefined) return known
  refuse(partitionProblem(partition, nextPack))
  const encoded = new Uint8Array(packMessage(partitionValues(partition)))
  encodedPartitions.set(partition, encoded)
  return encoded
}

function refuse(problem: string | null): void {
  if (problem !== null) throw new BugError(`a manifest that must not be written: ${problem}`)
}

function headValues(manifest: Manifest): unknown[] {
  const { shard, placementEpoch, commit, settledSequence, settledGroup, receiveMsMax, nextPack } = manifest
  const values: unknown[] = [shard, placementEpoch, commit, settledSequence, settledGroup, receiveMsMax, nextPack]
  const cold = manifest.removals.filter(({ isCold }) => isCold)
  values.push(manifest.partitions.size)
  pushRemovals(
    values,
    manifest.removals.filter(({ isCold }) => !isCold)
  )
  if (cold.length > 0) pushRemovals(values, cold)
  return values
}

function pushRemovals(values: unknown[], removals: readonly FileRemoval[]): void {
  values.push(removals.length)
  for (const { path, dueMs } of removals) values.push(path, dueMs)
}

/** One flat list: arrays within arrays cost three times as much to make and to pack. */
function partitionValues(partition: ManifestPartition): unknown[] {
  const { handle, directory, generation, startOffset, nextOffset, epochs, producers, segments, damaged } = partition
  const values: unknown[] = [handle, directory, generation, startOffset, nextOffset]
  values.push(epochs.length)
  for (const { epoch, startOffset: epochStart } of epochs) values.push(epoch, epochStart)
  values.push(producers.length)
  for (const producer of producers) pushProducer(values, producer)
  values.push(segments.length)
  let offset = 0
  for (const segment of segments) {
    pushSegment(values, segment, offset)
    offset = segment.nextOffset
  }
  values.push(damaged.length)
  for (const range of damaged) values.push(range.firstOffset, range.nextOffset, range.path)
  pushCold(values, segments)
  return values
}

/** The last list of a partition, left out where it would be empty: which segments are cold, by index. */
function pushCold(values: unknown[], segments: readonly ManifestSegment[]): void {
  const count = segments.reduce((sum, { cold }) => sum + (cold === undefined ? 0 : 1), 0)
  if (count === 0) return
  values.push(count)
  segments.forEach(({ cold }, index) => {
    if (cold !== undefined) values.push(index, cold.checksum, cold.blocksChecksum, cold.timestampMax)
  })
}

function pushProducer(values: unknown[], producer: ManifestProducer): void {
  const { number, originHigh, originLow, next, usedMs, firsts, bases } = producer
  values.push(number, originHigh, originLow, next, usedMs, firsts.length)
  for (let run = 0; run < firsts.length; run++) values.push(firsts[run], bases[run])
}

/** @param offset behind the segment before. */
function pushSegment(values: unknown[], segment: ManifestSegment, offset: number): void {
  const { baseOffset, nextOffset, bytes, receiveMsMax, firstReceiveMs, isSealed, compaction, extents } = segment
  values.push(baseOffset - offset, nextOffset - baseOffset, bytes, receiveMsMax, receiveMsMax - firstReceiveMs)
  values.push(isSealed, compaction, extents.length)
  let extentOffset = baseOffset
  for (const extent of extents) {
    values.push(extent.pack, extent.position, extent.bytes)
    values.push(extent.baseOffset - extentOffset, extent.nextOffset - extent.baseOffset)
    values.push(extent.blockCount, extent.blocksPack, extent.blocksPosition)
    extentOffset = extent.nextOffset
  }
}

export type ManifestVerdict =
  | { readonly kind: 'manifest'; readonly manifest: Manifest }
  | { readonly kind: 'newer'; readonly version: number }
  /** `problem` is a part of a sentence for an operator: what of the file is wrong. */
  | { readonly kind: 'damaged'; readonly problem: string }

/**
 * What the first MANIFEST_PREFIX_BYTES of a file of `fileBytes` say against it being a whole manifest; null: nothing,
 * and then the file has the length that it says.
 */
export function prefixProblem(prefix: Buffer, fileBytes: number): string | null {
  if (prefix.length < MANIFEST_PREFIX_BYTES) return `it has ${fileBytes} bytes, less than its first fields`
  if (!prefix.subarray(0, MAGIC.length).equals(MAGIC)) return 'it does not begin like a manifest'
  if (fileBytes > MANIFEST_BYTES_MAX) return `it has ${fileBytes} bytes, more than any manifest`
  const said = readU64(prefix, BYTES_AT)
  if (said === fileBytes) return null
  return `it has ${fileBytes} bytes and says that it has ${said < 0 ? 'more than any file' : said}`
}

/** Reads a whole file. Any bytes give a verdict; nothing of them is kept. */
export function decodeManifest(bytes: Buffer): ManifestVerdict {
  const problem = prefixProblem(bytes.subarray(0, MANIFEST_PREFIX_BYTES), bytes.length)
  if (problem !== null) return { kind: 'damaged', problem }
  if (bytes.readUInt32BE(CHECKSUM_AT) !== checksumOf(bytes)) {
    return { kind: 'damaged', problem: 'its checksum does not match its bytes' }
  }
  const version = bytes.readUInt32BE(VERSION_AT)
  if (version > MANIFEST_VERSION) return { kind: 'newer', version }
  if (version < LOCAL_VERSION) return { kind: 'damaged', problem: `there is no version ${version}` }
  return decodeBody(bytes, version >= MANIFEST_VERSION)
}

/** @param knowsCold lists of what is in cold storage may stand at the ends. */
function decodeBody(bytes: Buffer, knowsCold: boolean): ManifestVerdict {
  const faults: Faults = { problem: null }
  const damaged = (problem: string): ManifestVerdict => ({ kind: 'damaged', problem })
  let at = MANIFEST_PREFIX_BYTES
  let head: { manifest: Manifest; partitionCount: number } | null = null
  let handleBefore = -1
  while (at < bytes.length) {
    const what = head === null ? 'its head' : `the part at byte ${at}`
    if (at + LENGTH_BYTES > bytes.length) return damaged(`${what} is cut`)
    const end = at + LENGTH_BYTES + bytes.readUInt32BE(at)
    if (end > bytes.length) return damaged(`${what} is longer than the file`)
    const value = unpackPlain(bytes, at + LENGTH_BYTES, end)
    if (value === undefined) return damaged(`${what} is not made of plain values`)
    at = end
    if (head === null) {
      head = decodeHead(value, faults, knowsCold)
      const problem = faults.problem ?? headProblem(head.manifest)
      if (problem !== null) return damaged(`${what}: ${problem}`)
      continue
    }
    const partition = decodePartition(value, faults, knowsCold)
    const problem = faults.problem ?? partitionProblem(partition, head.manifest.nextPack)
    if (problem !== null) return damaged(`${what}, partition handle ${partition.handle}: ${problem}`)
    if (partition.handle <= handleBefore) return damaged(`partition handle ${partition.handle} is out of order`)
    handleBefore = partition.handle
    head.manifest.partitions.set(partition.handle, partition)
  }
  if (head === null) return damaged('it has no head')
  const { manifest, partitionCount } = head
  if (manifest.partitions.size === partitionCount) return { kind: 'manifest', manifest }
  return damaged(`it holds ${manifest.partitions.size} partitions and says that it holds ${partitionCount}`)
}

function decodeHead(
  value: unknown,
  faults: Faults,
  knowsCold: boolean
): { manifest: Manifest; partitionCount: number } {
  const fields = new Fields(value, faults)
  const numbers = {
    shard: fields.integer('shard'),
    placementEpoch: fields.integer('placement epoch'),
    commit: fields.integer('commit'),
    settledSequence: fields.integer('settled sequence'),
    settledGroup: fields.integer('settled group'),
    receiveMsMax: fields.integer('greatest receive time'),
    nextPack: fields.integer('next pack')
  }
  const partitionCount = fields.integer('partition count')
  const local = decodeRemovals(fields)
  const cold =
    knowsCold && fields.hasMore ? decodeRemovals(fields).map(removal => ({ ...removal, isCold: true as const })) : []
  fields.end()
  return { manifest: { ...numbers, partitions: new Map(), removals: [...local, ...cold] }, partitionCount }
}

function decodeRemovals(fields: Fields): FileRemoval[] {
  return fields.items('removals', () => ({ path: fields.text('path'), dueMs: fields.integer('due time') }))
}

function decodePartition(value: unknown, faults: Faults, knowsCold: boolean): ManifestPartition {
  const fields = new Fields(value, faults)
  const partition = {
    handle: fields.integer('handle'),
    directory: fields.text('directory'),
    generation: fields.integer('generation'),
    startOffset: fields.integer('start offset'),
    nextOffset: fields.integer('next offset'),
    epochs: fields.items('leader epochs', () => ({
      epoch: fields.integer('leader epoch'),
      startOffset: fields.integer('start of a leader epoch')
    })),
    producers: fields.items('producers', () => decodeProducer(fields)),
    segments: decodeSegments(fields),
    damaged: fields.items('damaged ranges', () => ({
      firstOffset: fields.integer('first offset of a damaged range'),
      nextOffset: fields.integer('next offset of a damaged range'),
      path: fields.textOrNull('path of a damaged range')
    }))
  }
  const segments = knowsCold && fields.hasMore ? withCold(fields, partition.segments) : partition.segments
  fields.end()
  return { ...partition, segments }
}

/** The segments with what the list at the end of the partition says of them. */
function withCold(fields: Fields, segments: readonly ManifestSegment[]): ManifestSegment[] {
  const copies = new Map<number, ColdCopy>()
  fields.items('cold segments', () => {
    const index = fields.integer('index of a cold segment')
    copies.set(index, {
      checksum: fields.integer('checksum of a cold segment'),
      blocksChecksum: fields.integer('checksum of cold blocks'),
      timestampMax: fields.integer('greatest timestamp of a cold segment')
    })
  })
  return segments.map((segment, index) => {
    const cold = copies.get(index)
    return cold === undefined ? segment : { ...segment, cold }
  })
}

function decodeProducer(fields: Fields): ManifestProducer {
  const numbers = {
    number: fields.integer('producer number'),
    originHigh: fields.integer('high half of a first sequence'),
    originLow: fields.integer('low half of a first sequence'),
    next: fields.integer('sequences of a producer'),
    usedMs: fields.integer('time of use')
  }
  const firsts: number[] = []
  const bases: number[] = []
  for (let left = fields.count('runs of a producer'); left > 0; left--) {
    firsts.push(fields.integer('first sequence of a run'))
    bases.push(fields.integer('offset of a run'))
  }
  return { ...numbers, firsts, bases }
}

function decodeSegments(fields: Fields): ManifestSegment[] {
  let offset = 0
  return fields.items('segments', () => {
    const baseOffset = offset + fields.integer('gap before a segment')
    const nextOffset = baseOffset + fields.integer('offsets of a segment')
    offset = nextOffset
    const bytes = fields.integer('bytes of a segment')
    const receiveMsMax = fields.integer('greatest receive time of a segment')
    const firstReceiveMs = receiveMsMax - fields.integer('time span of a segment')
    const isSealed = fields.boolean('sealed')
    const compaction = fields.integer('compaction')
    const extents = decodeExtents(fields, baseOffset)
    return { baseOffset, nextOffset, bytes, receiveMsMax, firstReceiveMs, isSealed, compaction, extents }
  })
}

function decodeExtents(fields: Fields, segmentBase: number): Extent[] {
  let offset = segmentBase
  return fields.items('extents', () => {
    const pack = fields.integer('pack of an extent')
    const position = fields.integer('position of an extent')
    const bytes = fields.integer('bytes of an extent')
    const baseOffset = offset + fields.integer('gap before an extent')
    const nextOffset = baseOffset + fields.integer('offsets of an extent')
    offset = nextOffset
    const blockCount = fields.integer('blocks of an extent')
    const blocksPack = fields.integer('pack of block entries')
    const blocksPosition = fields.integer('position of block entries')
    return { pack, position, bytes, baseOffset, nextOffset, blockCount, blocksPack, blocksPosition }
  })
}

/** Of all bytes but the checksum's own. */
function checksumOf(bytes: Buffer): number {
  return crc32c(bytes, MANIFEST_PREFIX_BYTES, bytes.length, crc32c(bytes, 0, CHECKSUM_AT))
}
