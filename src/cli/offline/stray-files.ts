/**
 * Files of settled data that nothing speaks of, and those that wait to be removed: for `verify` to mention. Neither is
 * wrong: a job that was killed leaves the first, and a broker removes the second in its time. Reads directories only.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Manifest } from '../../log/manifest.ts'
import { segmentFileKinds, segmentPath } from '../../log/segment-files.ts'
import type { Findings } from './findings.ts'
import { filesOf } from './settled-check.ts'

const FOLDERS = ['topics', 'packs', 'quarantine']

/** @param manifests of all shards. */
export function noteFiles(path: string, manifests: readonly Manifest[], findings: Findings): void {
  const named = new Set<string>()
  for (const manifest of manifests) {
    for (const file of filesOf(manifest)) named.add(file)
    for (const partition of manifest.partitions.values()) {
      for (const segment of partition.segments) {
        if (segment.cold !== undefined) continue
        for (const kind of segmentFileKinds) named.add(segmentPath(partition.directory, segment, kind))
      }
    }
    noteRemovals(path, manifest, named, findings)
  }
  for (const folder of FOLDERS) {
    if (!existsSync(join(path, folder))) continue
    for (const entry of readdirSync(join(path, folder), { recursive: true, withFileTypes: true })) {
      const file = `${entry.parentPath.slice(path.length + 1)}/${entry.name}`
      if (entry.isDirectory() || named.has(file)) continue
      findings.addNote({ file, problem: 'kept, not named by any manifest', meaning: 'the broker does not look at it' })
    }
  }
}

function noteRemovals(path: string, { removals }: Manifest, named: Set<string>, findings: Findings): void {
  for (const { path: file, dueMs, isCold } of removals) {
    if (isCold) continue
    named.add(file)
    if (!existsSync(join(path, file))) continue
    const meaning = `the broker removes it from ${new Date(dueMs).toISOString()} on`
    findings.addNote({ file, problem: 'nothing in it counts any more', meaning })
  }
}
