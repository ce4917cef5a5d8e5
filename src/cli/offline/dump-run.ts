/**
 * Runs `dump`: settles, lists, writes. Main thread; the directory's lock is held from beginning to end.
 *
 *   settle all shards ─▶ copy and cut the store ─▶ plan ─▶ (verify) ─▶ checksum every file ─▶ write: list first
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import type { StoreImage } from '../../control/store-image.ts'
import type { Disk } from '../../disk/disk.ts'
import { createRealDisk } from '../../disk/real-disk.ts'
import { SegmentFiles } from '../../log/segment-files.ts'
import type { Topic } from '../../model/topic.ts'
import { requiredText, textOf, type OptionTexts } from '../common-options.ts'
import { exitCodes, print, UsageError, type CliIo, type ExitCode } from '../io.ts'
import { readVersion } from '../version.ts'
import type { DataDirectory } from './data-directory.ts'
import { writeArchive, type ArchiveEntry } from './dump-archive.ts'
import { DUMP_NAME, encodeList, listedBytes, type DumpList, type ListedFile } from './dump-format.ts'
import { bytesOfFile, checksumOf, piecesOf, type DumpFile } from './dump-pieces.ts'
import { planFiles } from './dump-plan.ts'
import { inStage } from './dump-progress.ts'
import { DumpRefusal } from './dump-refusal.ts'
import { settleShards } from './dump-settle.ts'
import { copyStore } from './dump-store.ts'
import { withDataDirectory } from './offline-run.ts'
import { PartitionNames } from './partition-names.ts'
import { planVerification } from './verification.ts'

/** Handles kept while files are read. */
const OPEN_FILES_MAX = 64

export interface DumpRequest {
  /** Absolute. */
  readonly output: string
  readonly isGzip: boolean
  readonly force: boolean
  /** null: all. */
  readonly topics: readonly string[] | null
  readonly includesKeys: boolean
  readonly verifies: boolean
}

/** @returns ok, refused if there is damage or the output is there, unreachable if the disk refuses. @throws UsageError */
export function runDump(options: OptionTexts, io: CliIo): Promise<ExitCode> {
  const request = requestOf(options)
  return withDataDirectory(options, io, async directory => {
    try {
      const { list, bytes } = await dumpDirectory(createRealDisk(), directory, request, io)
      await print(io.stdout, options['json'] === true ? listJson(list, request, bytes) : listText(list, request, bytes))
      const left = request.includesKeys ? 0 : imageOf(directory).keys.length
      if (left > 0)
        await print(io.stderr, `millrace: without its ${left} API key(s): --include-keys takes them along\n`)
      return exitCodes.ok
    } catch (error) {
      if (!(error instanceof DumpRefusal)) throw error
      await print(io.stderr, `millrace: ${error.message}\n`)
      return exitCodes.refused
    }
  })
}

function requestOf(options: OptionTexts): DumpRequest {
  const output = requiredText(options, 'output', '--output')
  const isGzip = /\.(tar\.gz|tgz)$/.test(output)
  if (!isGzip && !output.endsWith('.tar')) {
    throw new UsageError(`--output '${output}' must end in .tar, or in .tar.gz or .tgz to compress it`)
  }
  return {
    output: resolve(output),
    isGzip,
    force: options['force'] === true,
    topics: topicNamesOf(options),
    includesKeys: options['includeKeys'] === true,
    verifies: options['verify'] === true
  }
}

/** --topics, or null. @throws UsageError */
export function topicNamesOf(options: OptionTexts): readonly string[] | null {
  const text = textOf(options['topics'])
  if (text === null) return null
  const names = [...new Set(text.split(',').map(name => name.trim()))]
  if (names.includes('')) throw new UsageError(`--topics '${text}' has an empty name: write orders,payments`)
  return names
}

/**
 * Writes the archive of a locked directory.
 * @throws DumpRefusal, UsageError, StoreOpenError, DiskError: then there is no archive, and nothing is lost of the directory.
 */
export async function dumpDirectory(
  disk: Disk,
  directory: DataDirectory,
  request: DumpRequest,
  io: CliIo
): Promise<{ list: DumpList; bytes: number }> {
  checkOutput(request)
  const image = imageOf(directory)
  const chosen = chosenTopics(image, request.topics)
  const shards = await settle(disk, directory, image, io)
  if (request.verifies) await verify(directory, io)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-dump-'))
  try {
    const copy = join(folder, 'store.db')
    const { includesKeys, topics: names } = request
    const ids = names === null ? null : chosen.map(({ id }) => id)
    copyStore(join(directory.path, 'store.db'), copy, { topics: ids, includesKeys })
    const store: DumpFile = { path: 'store.db', topic: null, parts: [{ kind: 'made', bytes: readFileSync(copy) }] }
    const topicOf = topicIdsOf(chosen, names === null)
    const files = [store, ...planFiles(disk, directory.path, shards, topicOf)]
    return await write(disk, directory, { files, image, chosen, request }, io)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function checkOutput({ output, force }: DumpRequest): void {
  if (existsSync(output)) {
    if (!statSync(output).isFile()) throw new DumpRefusal(`--output ${output} is there and is not a file`)
    if (!force) throw new DumpRefusal(`--output ${output} is there already: name another, or add --force to replace it`)
  }
  if (!existsSync(dirname(output))) throw new DumpRefusal(`--output ${output}: its directory does not exist`)
}

function imageOf({ store }: DataDirectory): StoreImage {
  const [problem] = store.problems
  if (store.image !== null && problem === undefined) return store.image
  throw new DumpRefusal(`the store is damaged, and nothing can be dumped without it: ${problem ?? 'it cannot be read'}`)
}

function chosenTopics(image: StoreImage, names: readonly string[] | null): readonly Topic[] {
  if (names === null) return image.topics
  const known = new Map(image.topics.map(topic => [topic.name, topic]))
  return names.map(name => {
    const topic = known.get(name)
    if (topic === undefined) {
      throw new UsageError(`--topics: there is no topic '${name}': 'millrace inspect topics' lists all`)
    }
    return topic
  })
}

/** Of a whole dump, also what no topic has is kept (V4). */
function topicIdsOf(chosen: readonly Topic[], isWhole: boolean): (handle: number) => number | null | 'left out' {
  const ids = new Map(chosen.map(({ name, id }) => [name, id]))
  const names = new PartitionNames({ topics: chosen, tombstones: [] })
  return handle => ids.get(names.nameOf(handle).topic ?? '') ?? (isWhole ? null : 'left out')
}

function settle(
  disk: Disk,
  directory: DataDirectory,
  image: StoreImage,
  io: CliIo
): Promise<ReturnType<typeof settleShards>> {
  const journalBytes = directory.journals
    .flatMap(journal => disk.list(journal.directory).map(name => `${journal.directory}/${name}`))
    .filter(path => path.endsWith('.slot'))
    .reduce((sum, path) => sum + disk.sizeOf(path), 0)
  return inStage(io, journalBytes, 'steps', stage => {
    let told = 0
    return settleShards(disk, directory, image, doneBytes => {
      stage.count()
      // Each shard counts from the beginning.
      stage.add(doneBytes < told ? doneBytes : doneBytes - told)
      told = doneBytes
    })
  })
}

async function verify(directory: DataDirectory, io: CliIo): Promise<void> {
  const plan = planVerification(directory)
  const { findings } = await inStage(io, plan.totalBytes, 'records', stage => {
    let told = 0
    return plan.run(doneBytes => {
      stage.add(doneBytes - told)
      told = doneBytes
    })
  })
  if (findings.damageCount === 0) return
  throw new DumpRefusal(
    `${findings.damageCount} damaged range(s) were found, so nothing was dumped: 'millrace verify' names them; ` +
      'without --verify they are dumped as they are'
  )
}

interface Contents {
  readonly files: readonly DumpFile[]
  readonly image: StoreImage
  readonly chosen: readonly Topic[]
  readonly request: DumpRequest
}

async function write(
  disk: Disk,
  directory: DataDirectory,
  { files, image, chosen, request }: Contents,
  io: CliIo
): Promise<{ list: DumpList; bytes: number }> {
  const open = new SegmentFiles(disk, directory.path, OPEN_FILES_MAX)
  try {
    const totalBytes = files.reduce((sum, file) => sum + bytesOfFile(file), 0)
    const listed = await inStage(io, totalBytes, 'files read', stage =>
      files.map((file): ListedFile => {
        const crc32c = checksumOf(file, open, bytes => stage.add(bytes))
        stage.count()
        return { path: file.path, bytes: bytesOfFile(file), crc32c, topic: file.topic }
      })
    )
    const createdMs = systemClock.nowMs()
    const list: DumpList = {
      createdMs,
      brokerVersion: readVersion(),
      directoryId: image.directoryId,
      shards: image.shardCount ?? 0,
      placementEpoch: image.placementEpoch,
      includesKeys: request.includesKeys,
      isWhole: request.topics === null,
      topics: listedTopics(chosen, listed),
      files: listed
    }
    const listBytes = encodeList(list)
    const { output: path, isGzip } = request
    const bytes = await inStage(io, totalBytes, 'files written', stage => {
      const entries = files.map(file => entryOf(file, open, stage))
      const first = { name: DUMP_NAME, bytes: listBytes.length, pieces: () => [listBytes] }
      return writeArchive({ disk, path, isGzip, createdMs }, [first, ...entries])
    })
    return { list, bytes }
  } finally {
    open.closeAll()
  }
}

function listedTopics(topics: readonly Topic[], files: readonly ListedFile[]): DumpList['topics'] {
  const bytesByTopic = new Map<number | null, number>()
  for (const { topic, bytes } of files) bytesByTopic.set(topic, (bytesByTopic.get(topic) ?? 0) + bytes)
  return topics.map(({ id, name, partitionCount, config }) => {
    return { id, name, partitions: partitionCount, bytes: bytesByTopic.get(id) ?? 0, config: { ...config } }
  })
}

function entryOf(file: DumpFile, open: SegmentFiles, stage: { add(bytes: number): void; count(): void }): ArchiveEntry {
  return {
    name: file.path,
    bytes: bytesOfFile(file),
    *pieces() {
      for (const piece of piecesOf(file, open)) {
        stage.add(piece.length)
        yield piece
      }
      stage.count()
    }
  }
}

function listText({ topics, files }: DumpList, { output }: DumpRequest, archiveBytes: number): string {
  const bytes = listedBytes(files)
  return `dumped ${topics.length} topic(s), ${bytes} bytes in ${files.length} file(s), to ${output} (${archiveBytes} bytes)\n`
}

function listJson(list: DumpList, { output }: DumpRequest, archiveBytes: number): string {
  const answer = {
    output,
    archive_bytes: archiveBytes,
    topics: list.topics.map(({ name }) => name),
    file_count: list.files.length,
    total_bytes: listedBytes(list.files),
    includes_keys: list.includesKeys
  }
  return `${JSON.stringify(answer)}\n`
}
