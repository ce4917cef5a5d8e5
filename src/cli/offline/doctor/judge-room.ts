/**
 * Whether there is room for what the settings allow: disk, memory, processors, open files. Pure: facts in, findings out.
 */
import { formatBytes, formatCount } from '../../../base/amounts.ts'
import { budgetBytes, httpConnectionsMax, openFilesMax, reserveBytes } from '../../../config/auto-sizes.ts'
import { memoryBudget } from '../../../config/memory-budget.ts'
import type { Settings } from '../../../config/settings.ts'
import type { MachineFacts, SpaceFacts } from './facts.ts'
import { bad, ok, warn, type Finding } from './finding.ts'

/** Node itself, and each of its threads: as `config explain` says. */
const NODE_BYTES = 45 * 1024 ** 2
const THREAD_BYTES = 15 * 1024 ** 2
/** Below it a busy broker turns connections away. */
const DESCRIPTORS_WANTED = 4096
/** For what is neither a data file nor an HTTP connection: slots, the store, the threads' own. */
const OTHER_DESCRIPTORS = 64
/** A partition that is settled has about four files. */
const INODES_WANTED = 10_000

/** Free bytes against the journal's budget and the reserve below which produce is refused. */
export function judgeSpace(settings: Settings, space: SpaceFacts, machine: MachineFacts, shards: number): Finding {
  const name = 'free space'
  const memoryBytes = machine.limitBytes ?? machine.totalBytes
  const journalBytes = budgetBytes(settings, { memoryBytes, diskBytes: space.diskBytes }, shards)
  const reserved = reserveBytes(settings, journalBytes)
  const toGrow = Math.max(0, journalBytes - space.journalBytes)
  const seen =
    `${formatBytes(space.freeBytes)} free; the journal may take ${formatBytes(journalBytes)} ` +
    `(has ${formatBytes(space.journalBytes)}), and below ${formatBytes(reserved)} produce is refused`
  if (space.freeBytes < reserved) {
    return bad(name, seen, 'Make room, or set a smaller --journal-budget-bytes: produce is refused as it is.')
  }
  if (space.freeBytes < reserved + toGrow) {
    return warn(
      name,
      seen,
      'Make room, or set a smaller --journal-budget-bytes: a full journal leaves less than the reserve.'
    )
  }
  return ok(name, seen)
}

/** Files that can still be made. */
export function judgeInodes({ inodes, freeInodes }: SpaceFacts): Finding {
  const name = 'inodes'
  if (inodes === 0) return ok(name, 'the file system has no fixed number')
  const seen = `${formatCount(freeInodes)} of ${formatCount(inodes)} free`
  if (freeInodes >= INODES_WANTED) return ok(name, seen)
  const change = 'Remove small files from this file system, or make it with more inodes: segments are files.'
  return freeInodes < INODES_WANTED / 10 ? bad(name, seen, change) : warn(name, seen, change)
}

/** What the budget table allows, against what there is. */
export function judgeMemory(settings: Settings, machine: MachineFacts, shards: number): Finding {
  const name = 'memory'
  const { rows, totalBytes } = memoryBudget(settings, shards)
  const ofNode = NODE_BYTES + THREAD_BYTES * (shards + 1)
  const fixed = rows.filter(({ held }) => held === 'fixed').reduce((sum, row) => sum + row.totalBytes, 0) + ofNode
  const most = totalBytes + ofNode
  const { limitBytes, totalBytes: machineBytes } = machine
  const available = Math.min(limitBytes ?? machineBytes, machineBytes)
  const where = limitBytes !== null && limitBytes < machineBytes ? 'limit of this control group' : 'of this machine'
  const seen = `${formatBytes(available)} (${where}); the broker takes ${formatBytes(fixed)} at start, ${formatBytes(most)} at most`
  if (fixed > available) {
    return bad(
      name,
      seen,
      'Give it more memory, or set fewer --shards and smaller rings (config explain has the table).'
    )
  }
  if (most > available) {
    return warn(name, seen, 'Give it more memory, or set --request-memory-bytes and --reply-memory-bytes lower.')
  }
  return ok(name, seen)
}

/** Threads that want a processor each, against those that there are. */
export function judgeProcessors({ processors, quota }: MachineFacts, shards: number): Finding {
  const name = 'processors'
  const usable = Math.min(processors, quota ?? processors)
  const limited = quota === null ? '' : `, of which a control group allows ${quota}`
  const seen = `${processors}${limited}; ${shards} shard(s) and the main thread`
  if (usable < 1)
    return warn(name, seen, 'Allow a whole processor at least: below it every answer waits for its share.')
  if (shards > Math.max(1, Math.floor(usable))) {
    return warn(name, seen, `Set --shards ${Math.max(1, Math.floor(usable) - 1)}, or allow more processors.`)
  }
  return ok(name, seen)
}

/** Node takes the hard limit for its soft one when it starts, so the hard one counts. */
export function judgeDescriptors(settings: Settings, { descriptors }: MachineFacts): Finding {
  const name = 'open files'
  const { soft, hard } = descriptors
  const dataFiles = openFilesMax(settings, soft)
  const connections = httpConnectionsMax(settings, soft)
  const seen =
    `soft limit ${showLimit(soft)}, hard ${showLimit(hard)}; ` +
    `up to ${formatCount(dataFiles)} data files and ${formatCount(connections)} HTTP connections`
  const change =
    'Raise the hard limit to 65536: LimitNOFILE of a systemd unit, --ulimit nofile of a container, ulimit -n.'
  if (dataFiles + connections + OTHER_DESCRIPTORS > soft) {
    return bad(name, `${seen}: more than the limit`, `${change} Or lower --max-open-files and --http-max-connections.`)
  }
  return soft < DESCRIPTORS_WANTED ? warn(name, seen, change) : ok(name, seen)
}

function showLimit(limit: number): string {
  return Number.isFinite(limit) ? String(limit) : 'none'
}
