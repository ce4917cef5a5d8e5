/**
 * The manifest of a shard on disk: read when its log opens, replaced whole at each commit (durability, S1). The settler
 * thread alone commits; who loads must know that it does not.
 *
 *   commit   manifest.new: create, write, sync ─▶ rename over manifest ─▶ sync of the directory
 *
 *   | power cut                          | found by the next start                                  |
 *   |------------------------------------|----------------------------------------------------------|
 *   | up to the sync of manifest.new     | the old manifest; perhaps a manifest.new, which is removed |
 *   | up to the sync of the directory    | the old or the new one, whole: the rename is atomic        |
 *   | after it                           | the new one                                              |
 *
 * Invariants: `manifest` is never written to, only replaced by a file whose bytes are synced; a manifest that was
 * returned by loadManifest is durable, so slots that it frees may be used again. It never removes `manifest`.
 */
import { assert } from '../base/assert.ts'
import type { Disk, DiskFile } from '../disk/disk.ts'
import { removeUnfinished, replaceFile, type ReplacePoints } from '../disk/replace-file.ts'
import { BrokerError } from '../model/errors.ts'
import {
  MANIFEST_PREFIX_BYTES,
  MANIFEST_VERSION,
  decodeManifest,
  encodeManifest,
  prefixProblem,
  type ManifestVerdict
} from './manifest-format.ts'
import { emptyManifest, type Manifest } from './manifest.ts'

const MANIFEST_NAME = 'manifest'
/** `manifest.new`, being written, means nothing to any reader. */
export const manifestPoints: ReplacePoints = {
  remove: 'manifest.write',
  create: 'manifest.write',
  write: 'manifest.write',
  sync: 'manifest.sync',
  rename: 'manifest.rename',
  directorySync: 'manifest.directory-sync'
}

/** Where the manifest of a journal directory is. */
export function manifestPath(directory: string): string {
  return `${directory}/${MANIFEST_NAME}`
}

/**
 * For a shard that got its manifest with its directory.
 * @throws BrokerError NOT_READY: it is gone, and with it what the shard holds.
 */
export function requireManifest(disk: Disk, directory: string): void {
  const path = manifestPath(directory)
  if (disk.exists(path)) return
  throw new BrokerError('NOT_READY', { problem: `the manifest ${path} is missing: bring it back from a backup` })
}

/** @throws BrokerError NOT_READY: it is of another placement, brought here by mistake. */
export function checkPlacement(manifest: Manifest, directory: string, placementEpoch: number): void {
  if (manifest.placementEpoch === placementEpoch) return
  const problem = `the manifest ${manifestPath(directory)} is of placement epoch ${manifest.placementEpoch}, not of ${placementEpoch}`
  throw new BrokerError('NOT_READY', { problem })
}

/**
 * Reads the manifest as it stands and changes nothing: for the offline tools too.
 * @param directory of the shard's journal.
 * @returns null: there is none.
 * @throws DiskError if the disk refuses.
 */
export function readManifest(disk: Disk, directory: string): ManifestVerdict | null {
  const path = manifestPath(directory)
  if (!disk.exists(path)) return null
  const file = disk.open('manifest.read', path)
  try {
    const fileBytes = file.sizeBytes()
    const prefix = readStart(file, Math.min(fileBytes, MANIFEST_PREFIX_BYTES))
    const problem = prefixProblem(prefix, fileBytes)
    if (problem !== null) return { kind: 'damaged', problem }
    return decodeManifest(readStart(file, fileBytes))
  } finally {
    file.close()
  }
}

/** Less only if the file ends before. */
function readStart(file: DiskFile, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, file.read('manifest.read', bytes, 0, length, 0))
}

/**
 * The manifest that a shard starts with; on return it is durable, also if the process that committed it was killed
 * before its last sync. What a commit left unfinished is removed.
 *
 * @param directory of the shard's journal, which is there. @param placementEpoch for a shard that has no manifest; one
 * that is found keeps its own, and the caller compares.
 * @throws BrokerError NOT_READY if the manifest is damaged, of a newer version or of another shard: then nothing was
 * changed on disk. DiskError if the disk refuses.
 */
export function loadManifest(disk: Disk, directory: string, shard: number, placementEpoch: number): Manifest {
  const verdict = readManifest(disk, directory)
  const manifest = verdict === null ? emptyManifest(shard, placementEpoch) : accepted(verdict, directory, shard)
  removeUnfinished(disk, manifestPath(directory), manifestPoints)
  // A manifest whose rename is only in memory must not free a slot: the power cut that takes it back would find the
  // slot written over.
  disk.syncDirectory('manifest.directory-sync', directory)
  return manifest
}

function accepted(verdict: ManifestVerdict, directory: string, shard: number): Manifest {
  const path = manifestPath(directory)
  if (verdict.kind === 'newer') {
    throw new BrokerError('NOT_READY', {
      problem: `manifest format ${verdict.version} was written by a newer version; this one reads up to ${MANIFEST_VERSION}`
    })
  }
  if (verdict.kind === 'damaged') {
    throw new BrokerError('NOT_READY', {
      problem: `the manifest ${path} is damaged: ${verdict.problem}; an operator must decide`
    })
  }
  if (verdict.manifest.shard !== shard) {
    throw new BrokerError('NOT_READY', {
      problem: `the manifest ${path} of shard ${shard} says it belongs to shard ${verdict.manifest.shard}`
    })
  }
  return verdict.manifest
}

/**
 * Puts a manifest in the place of the one before; on return it is durable.
 *
 * @param manifest with its new commit number.
 * @throws DiskError. At any point but `manifest.directory-sync` the old manifest stands and nothing was changed; a
 * leftover is removed by the next commit or start. At `manifest.directory-sync` it is not known which of the two a
 * power cut leaves: nothing may be done that either of them forbids.
 */
export function commitManifest(disk: Disk, directory: string, manifest: Manifest): void {
  assert(manifest.commit > 0, 'a commit has a number')
  replaceFile(disk, manifestPath(directory), encodeManifest(manifest), manifestPoints)
}
