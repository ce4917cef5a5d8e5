/**
 * `dump.json`, the first file of an archive: what is in the rest of it, to the byte. Shapes, bytes and rules; pure.
 *
 * Invariants: an archive holds exactly the files that it lists, in its order. A list that is not what this version may
 * have written is refused as a whole: the paths in it become paths on a disk (restore), whoever wrote it.
 */
import type { Whole } from '../../client/http/http-client.ts'
import { DumpRefusal } from './dump-refusal.ts'

/** Name of the list in the archive. */
export const DUMP_NAME = 'dump.json'
/** Raised with every change that an older restore would misread. */
export const DUMP_VERSION = 1
/** Of dump.json: some 500,000 files. It is in memory whole. */
export const DUMP_BYTES_MAX = 64 * 1024 * 1024
const FORMAT_NAME = 'millrace-dump'
const PATH_BYTES_MAX = 1024
/** Last moment that a Date can name. */
const DATE_MS_MAX = 8.64e15

/** One file of the archive. */
export interface ListedFile {
  /** Relative to the data directory, with slashes. */
  readonly path: string
  readonly bytes: number
  readonly crc32c: number
  /** Id of the only topic that has something in it; null: it is not about a topic, or about one that nobody knows. */
  readonly topic: number | null
}

export interface ListedTopic {
  readonly id: number
  readonly name: string
  readonly partitions: number
  /** In files of this archive. */
  readonly bytes: number
  readonly config: Readonly<Record<string, string | Whole | boolean | null>>
}

export interface DumpList {
  readonly createdMs: number
  readonly brokerVersion: string
  readonly directoryId: string
  readonly shards: number
  readonly placementEpoch: number
  readonly includesKeys: boolean
  /** False: topics were left out. */
  readonly isWhole: boolean
  readonly topics: readonly ListedTopic[]
  readonly files: readonly ListedFile[]
}

/** Bytes of all listed files. */
export function listedBytes(files: readonly ListedFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** @throws DumpRefusal if it is larger than a restore takes. */
export function encodeList(list: DumpList): Buffer {
  const topics = list.topics.map(({ config, ...topic }) => ({ ...topic, config: exactConfig(config) }))
  const value = {
    format: FORMAT_NAME,
    version: DUMP_VERSION,
    created_at_ms: list.createdMs,
    broker_version: list.brokerVersion,
    directory_id: list.directoryId,
    shards: list.shards,
    placement_epoch: list.placementEpoch,
    includes_keys: list.includesKeys,
    is_whole: list.isWhole,
    file_count: list.files.length,
    total_bytes: listedBytes(list.files),
    topics,
    files: list.files
  }
  const bytes = Buffer.from(`${JSON.stringify(value, null, 1)}\n`)
  if (bytes.length <= DUMP_BYTES_MAX) return bytes
  throw new DumpRefusal(`${list.files.length} files are more than one archive can list: dump fewer topics at once`)
}

/** Numbers beyond 2^53 are exact as text; JSON.stringify takes no bigint. */
function exactConfig(config: ListedTopic['config']): object {
  return Object.fromEntries(
    Object.entries(config).map(([field, value]) => [field, typeof value === 'bigint' ? String(value) : value])
  )
}

type Fields = Readonly<Record<string, unknown>>

/** @throws DumpRefusal for anything that this version would not have written; a newer version is named as such. */
export function decodeList(bytes: Buffer): DumpList {
  const fields = fieldsOf(parse(bytes), 'it')
  if (fields['format'] !== FORMAT_NAME) throw refused(`format is not ${FORMAT_NAME}`)
  const version = wholeField(fields, 'version')
  if (version > DUMP_VERSION) {
    throw new DumpRefusal(
      `the archive has dump format ${version}, of a newer version; this one reads up to ${DUMP_VERSION}`
    )
  }
  const files = listField(fields, 'files').map(fileOf)
  const list: DumpList = {
    createdMs: wholeField(fields, 'created_at_ms'),
    brokerVersion: textField(fields, 'broker_version'),
    directoryId: textField(fields, 'directory_id'),
    shards: wholeField(fields, 'shards'),
    placementEpoch: wholeField(fields, 'placement_epoch'),
    includesKeys: fields['includes_keys'] === true,
    isWhole: fields['is_whole'] === true,
    topics: listField(fields, 'topics').map(topicOf),
    files
  }
  if (list.createdMs > DATE_MS_MAX) throw refused('created_at_ms is no date')
  const paths = new Set(files.map(({ path }) => path))
  if (paths.size < files.length) throw refused('a file is listed twice')
  if (files[0]?.path !== 'store.db') throw refused('store.db is not the first file')
  if (wholeField(fields, 'file_count') !== files.length) throw refused('file_count is not the number of files')
  if (wholeField(fields, 'total_bytes') !== listedBytes(files)) throw refused('total_bytes is not the sum of the files')
  return list
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    if (error instanceof SyntaxError) throw refused('it is not JSON')
    throw error
  }
}

function fileOf(value: unknown): ListedFile {
  const fields = fieldsOf(value, 'a file')
  const path = textField(fields, 'path')
  if (!isArchivePath(path)) throw refused(`${JSON.stringify(path.slice(0, 200))} is no path of a data directory`)
  const topic = fields['topic'] === null ? null : wholeField(fields, 'topic')
  const crc32c = wholeField(fields, 'crc32c')
  if (crc32c > 0xffff_ffff) throw refused('a checksum has more than 32 bits')
  return { path, bytes: wholeField(fields, 'bytes'), crc32c, topic }
}

function topicOf(value: unknown): ListedTopic {
  const fields = fieldsOf(value, 'a topic')
  const name = textField(fields, 'name')
  // It is shown on a terminal.
  if (!/^[A-Za-z0-9._-]{1,200}$/.test(name)) throw refused('a topic has a name that no topic can have')
  return {
    id: wholeField(fields, 'id'),
    name,
    partitions: wholeField(fields, 'partitions'),
    bytes: wholeField(fields, 'bytes'),
    // For whoever reads the list; the store has what counts.
    config: {}
  }
}

/** What a data directory may have: relative, no `.` or `..`, known places, known kinds of names. */
const archivePaths = [
  /^store\.db$/,
  /^journal\/([A-Za-z0-9]+\/)?\d{3,5}\/manifest$/,
  /^packs\/([A-Za-z0-9]+\/)?\d{3,5}\/\d{8,16}\.pack$/,
  /^topics\/[A-Za-z0-9._-]+~[A-Za-z0-9]+\/\d{1,10}\/(c\d{1,16}\/)?\d{20}\.(log|blocks|index|timeindex)$/,
  /^quarantine\/[A-Za-z0-9_-]+\.bytes$/
] as const

/** True for the path of a file that a dump may hold: it leads nowhere but below the data directory. */
export function isArchivePath(path: string): boolean {
  return path.length <= PATH_BYTES_MAX && archivePaths.some(pattern => pattern.test(path))
}

function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refused(`${what} is not an object`)
  return Object.fromEntries(Object.entries(value))
}

function listField(fields: Fields, name: string): readonly unknown[] {
  const value = fields[name]
  if (!Array.isArray(value)) throw refused(`${name} is not a list`)
  return value
}

function textField(fields: Fields, name: string): string {
  const value = fields[name]
  if (typeof value !== 'string') throw refused(`${name} is not a text`)
  return value
}

function wholeField(fields: Fields, name: string): number {
  const value = fields[name]
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw refused(`${name} is no whole number from 0`)
  }
  return value
}

function refused(problem: string): DumpRefusal {
  return new DumpRefusal(`the archive is refused: its ${DUMP_NAME} is not what a dump writes: ${problem}`)
}
