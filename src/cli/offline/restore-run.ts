/**
 * Runs `restore`: reads the archive into a directory of its own, cuts it to the wanted topics, verifies it as
 * `millrace verify` does, and puts it in its place. Main thread.
 */
import { existsSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DiskError, type Disk } from '../../disk/disk.ts'
import { createRealDisk } from '../../disk/real-disk.ts'
import { commitManifest, readManifest } from '../../log/manifest-file.ts'
import type { ManifestVerdict } from '../../log/manifest-format.ts'
import type { Manifest } from '../../log/manifest.ts'
import { StoreOpenError } from '../../store/store-open-error.ts'
import { requiredText, type OptionTexts } from '../common-options.ts'
import { exitCodes, print, UsageError, type CliIo, type ExitCode } from '../io.ts'
import { openDataDirectory, type ShardJournal } from './data-directory.ts'
import { listedBytes, type DumpList, type ListedFile } from './dump-format.ts'
import { inStage } from './dump-progress.ts'
import { DumpRefusal } from './dump-refusal.ts'
import { topicNamesOf } from './dump-run.ts'
import { cutStore } from './dump-store.ts'
import { namedDirectory } from './named-directory.ts'
import { PartitionNames } from './partition-names.ts'
import { readArchive } from './restore-archive.ts'
import { checkTarget, makeStaging, removeStaging, syncNames, takePlace } from './restore-directory.ts'
import { planVerification } from './verification.ts'

export interface RestoreRequest {
  /** Absolute, both. */
  readonly input: string
  readonly dataDir: string
  /** null: all that the archive has. */
  readonly topics: readonly string[] | null
  readonly force: boolean
  readonly acceptsDamage: boolean
}

export interface Restored {
  readonly list: DumpList
  /** Where the directory that was in the way is now; null: there was none. */
  readonly kept: string | null
  readonly damageCount: number
}

/** @returns ok, refused if the archive or the place is, unreachable if the disk refuses. @throws UsageError */
export async function runRestore(options: OptionTexts, io: CliIo): Promise<ExitCode> {
  const request = requestOf(options, io)
  try {
    const restored = await restoreDirectory(createRealDisk(), request, io)
    await print(io.stdout, options['json'] === true ? restoredJson(restored, request) : restoredText(restored, request))
    return exitCodes.ok
  } catch (error) {
    const code = exitCodeOf(error)
    if (code === null || !(error instanceof Error)) throw error
    await print(io.stderr, `millrace: ${error.message.replaceAll('\n', ' ')}\n`)
    return code
  }
}

/** null: it is a bug. */
function exitCodeOf(error: unknown): ExitCode | null {
  if (error instanceof DumpRefusal) return exitCodes.refused
  const isOfSystem = error instanceof Error && 'syscall' in error
  return error instanceof StoreOpenError || error instanceof DiskError || isOfSystem ? exitCodes.unreachable : null
}

function requestOf(options: OptionTexts, io: CliIo): RestoreRequest {
  return {
    input: resolve(requiredText(options, 'input', '--input')),
    dataDir: resolve(namedDirectory(options, io)),
    topics: topicNamesOf(options),
    force: options['force'] === true,
    acceptsDamage: options['acceptDamage'] === true
  }
}

/** @throws DumpRefusal, UsageError, StoreOpenError, DiskError: then what was in the place is there as it was. */
export async function restoreDirectory(disk: Disk, request: RestoreRequest, io: CliIo): Promise<Restored> {
  const { input, dataDir, force } = request
  if (!existsSync(input) || !statSync(input).isFile()) throw new DumpRefusal(`--input ${input} is not a file`)
  checkTarget(dataDir, force)
  const staging = makeStaging(disk, dataDir)
  try {
    const list = await extractArchive(disk, staging, request, io)
    if (request.topics !== null) cutTopics(disk, staging, request.topics, list)
    const damageCount = await verify(disk, staging, io)
    if (damageCount > 0 && !request.acceptsDamage) throw damaged(damageCount)
    syncNames(disk, staging)
    return { list, kept: takePlace(disk, staging, dataDir, force), damageCount }
  } catch (error) {
    removeStaging(staging)
    throw error
  }
}

function damaged(count: number): DumpRefusal {
  return new DumpRefusal(
    `the archive is as it was written, but ${count} damaged range(s) were dumped with it, so nothing was restored: ` +
      'with --accept-damage the rest is restored with them'
  )
}

/** The whole archive is read, and its checksums compared, also where only some topics are wanted. */
function extractArchive(disk: Disk, staging: string, request: RestoreRequest, io: CliIo): Promise<DumpList> {
  const archiveBytes = statSync(request.input).size
  return inStage(io, archiveBytes, 'files', stage =>
    readArchive(request.input, {
      disk,
      directory: staging,
      isWanted: (file, list) => isWanted(file, request.topics, list),
      onList(list) {
        checkTopics(request.topics, list)
        stage.total(listedBytes(list.files))
        checkRoom(disk, request, list)
      },
      onBytes: bytes => stage.add(bytes),
      onFile: () => stage.count()
    })
  )
}

function checkTopics(names: readonly string[] | null, { topics }: DumpList): void {
  const known = new Set(topics.map(({ name }) => name))
  const unknown = names?.find(name => !known.has(name))
  if (unknown === undefined) return
  throw new UsageError(`--topics: the archive has no topic '${unknown}': it has ${[...known].join(', ') || '(none)'}`)
}

function checkRoom(disk: Disk, { dataDir, topics }: RestoreRequest, list: DumpList): void {
  const needed = listedBytes(list.files.filter(file => isWanted(file, topics, list)))
  const free = disk.freeBytes(dirname(dataDir))
  if (needed <= free) return
  throw new DumpRefusal(`${dirname(dataDir)} has room for ${free} bytes, and ${needed} are to be restored`)
}

function isWanted({ path, topic }: ListedFile, names: readonly string[] | null, { topics }: DumpList): boolean {
  if (names === null || path === 'store.db' || path.endsWith('/manifest')) return true
  const known = topics.find(({ id }) => id === topic)
  return known !== undefined && names.includes(known.name)
}

/** Takes the topics that are not wanted out of the store and the manifests; their files were never written. */
function cutTopics(disk: Disk, staging: string, names: readonly string[], list: DumpList): void {
  const topics = list.topics.filter(({ name }) => names.includes(name)).map(({ id }) => id)
  const path = join(staging, 'store.db')
  cutStore(path, { topics, includesKeys: list.includesKeys })
  const directory = openDataDirectory(staging)
  try {
    const known = new PartitionNames(directory.store.image)
    for (const journal of directory.journals) {
      const manifest = manifestOf(disk, journal)
      const partitions = new Map([...manifest.partitions].filter(([handle]) => known.nameOf(handle).topic !== null))
      commitManifest(disk, journal.directory, { ...manifest, commit: manifest.commit + 1, partitions })
    }
  } finally {
    directory.close()
  }
  const store = disk.open('restore.write', path)
  try {
    store.sync('restore.sync')
  } finally {
    store.close()
  }
}

/** @throws DumpRefusal: no start would take it. */
function manifestOf(disk: Disk, { shard, directory, label }: ShardJournal): Manifest {
  const verdict = readManifest(disk, directory)
  if (verdict?.kind === 'manifest' && verdict.manifest.shard === shard) return verdict.manifest
  throw new DumpRefusal(`the archive is refused: its ${label}/manifest ${manifestProblem(verdict)}`)
}

function manifestProblem(verdict: ManifestVerdict | null): string {
  switch (verdict?.kind) {
    case undefined:
      return 'is missing'
    case 'newer':
      return `has format ${verdict.version}, of a newer version`
    case 'damaged':
      return `is damaged: ${verdict.problem}`
    case 'manifest':
      return `is of shard ${verdict.manifest.shard}`
  }
}

async function verify(disk: Disk, staging: string, io: CliIo): Promise<number> {
  const directory = openDataDirectory(staging)
  try {
    if (directory.store.image === null) {
      throw new DumpRefusal(`the archive is refused: ${directory.store.problems[0] ?? 'its store cannot be read'}`)
    }
    for (const journal of directory.journals) manifestOf(disk, journal)
    const plan = planVerification(directory)
    const { findings } = await inStage(io, plan.totalBytes, 'records', stage => {
      let told = 0
      return plan.run(doneBytes => {
        stage.add(doneBytes - told)
        told = doneBytes
      })
    })
    return findings.damageCount
  } finally {
    directory.close()
    // Made by the look into the directory; the broker makes its own.
    rmSync(join(staging, 'lock.db'), { force: true })
  }
}

function restoredText({ list, kept, damageCount }: Restored, { dataDir, topics }: RestoreRequest): string {
  const count = topics?.length ?? list.topics.length
  const lines = [`restored ${count} topic(s), dumped ${new Date(list.createdMs).toISOString()}, to ${dataDir}`]
  if (kept !== null) lines.push(`the directory that was there is kept as ${kept}`)
  if (damageCount > 0) lines.push(`it holds ${damageCount} damaged range(s): 'millrace verify' names them`)
  return `${lines.join('\n')}\n`
}

function restoredJson({ list, kept, damageCount }: Restored, { dataDir, topics }: RestoreRequest): string {
  const names = topics ?? list.topics.map(({ name }) => name)
  const answer = {
    data_dir: dataDir,
    topics: names,
    created_at_ms: list.createdMs,
    kept_as: kept,
    damage_count: damageCount
  }
  return `${JSON.stringify(answer)}\n`
}
