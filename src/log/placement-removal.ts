/**
 * Takes the files of a placement away: of one that was left, or of one that never came to count. Only files that a shard
 * makes in its own two directories go; anything else is kept, and with it its directory: so are slot files that an
 * operator gave up, which no start reads but somebody may mend (V2). Files of topics belong to no placement. Doing it
 * again is harmless. Runs where the directory's lock is held and no shard of that placement is open.
 */
import { DiskError, type Disk } from '../disk/disk.ts'
import type { FaultPoint } from '../disk/faults.ts'
import { decisionFileNames, readDecisions } from './decisions.ts'
import { epochDirectory, journalPath, packDirectory, shardOfName, type ShardFolder } from './shard-place.ts'
import { decodeSlotHeader } from './slot-format.ts'
import { readHeaderBlocks } from './slot-scan.ts'

const namesOf: Readonly<Record<ShardFolder, RegExp>> = {
  journal: /^(\d+\.(slot|filling)|manifest|manifest\.new)$/,
  packs: /^\d+\.pack$/
}
const pointOf: Readonly<Record<ShardFolder, FaultPoint>> = { journal: 'journal.remove', packs: 'pack.remove' }

/**
 * @param shardCount of the placement: directories of other numbers stay; absent: whatever numbers there are.
 * @throws DiskError, or BrokerError NOT_READY if what was given up cannot be read: some of it is left. On return it is gone durably.
 */
export function removeEpoch(
  disk: Disk,
  dataDirectory: string,
  placementEpoch: number,
  shardCount = Number.POSITIVE_INFINITY
): void {
  for (const folder of ['journal', 'packs'] as const) {
    const parent = `${dataDirectory}/${epochDirectory(folder, placementEpoch)}`
    if (!disk.exists(parent)) continue
    const directoryOf = folder === 'journal' ? journalPath : packDirectory
    for (const name of disk.list(parent)) {
      const shard = shardOfName(name)
      if (shard === null || shard >= shardCount) continue
      removeShard(disk, `${dataDirectory}/${directoryOf({ shard, placementEpoch })}`, folder)
    }
    disk.syncDirectory('journal.directory-sync', parent)
    if (placementEpoch <= 1) continue
    removeIfEmpty(disk, pointOf[folder], parent)
    disk.syncDirectory('journal.directory-sync', `${dataDirectory}/${folder}`)
  }
}

function removeShard(disk: Disk, directory: string, folder: ShardFolder): void {
  const givenUp = folder === 'journal' ? slotsGivenUp(disk, directory) : []
  for (const name of disk.list(directory)) {
    const isDecision = folder === 'journal' && decisionFileNames.includes(name)
    const goes = isDecision ? givenUp.length === 0 : namesOf[folder].test(name) && !givenUp.includes(name)
    if (goes) disk.remove(pointOf[folder], `${directory}/${name}`)
  }
  disk.syncDirectory('journal.directory-sync', directory)
  removeIfEmpty(disk, pointOf[folder], directory)
}

/** Names of the slot files that decisions name, or slots that they name are in. */
function slotsGivenUp(disk: Disk, directory: string): string[] {
  const decisions = readDecisions(disk, directory)
  if (decisions.all.length === 0) return []
  return disk.list(directory).filter(name => {
    if (!name.endsWith('.slot')) return false
    if (decisions.skipsFile(name)) return true
    const file = disk.open('slot.open', `${directory}/${name}`)
    try {
      const verdict = decodeSlotHeader(readHeaderBlocks(file))
      return verdict.kind === 'header' && decisions.skipsSlot(verdict.header.sequence)
    } finally {
      file.close()
    }
  })
}

function removeIfEmpty(disk: Disk, point: FaultPoint, directory: string): void {
  try {
    disk.removeDirectory(point, directory)
  } catch (error) {
    // Something in it is not ours.
    if (!(error instanceof DiskError) || error.code !== 'ENOTEMPTY') throw error
  }
}
