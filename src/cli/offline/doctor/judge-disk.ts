/**
 * What the disk below a data directory promises, and whether it can be believed. Pure: facts in, findings out.
 */
import { formatBytes, formatMs } from '../../../base/amounts.ts'
import type { DeviceFacts, DiskFacts, DiskProbe, MountFacts, SyncTimes } from './facts.ts'
import { bad, ok, unknown, warn, type Finding } from './finding.ts'

/** Files there are gone with the machine, or with the container. */
const memoryTypes: ReadonlySet<string> = new Set(['tmpfs', 'ramfs'])
/** Names as /proc shows them; fuse has many with a suffix. */
const networkTypes = /^(nfs4?|cifs|smb3?|smbfs|9p|ceph|glusterfs|lustre|afs|beegfs|virtiofs|fuse(\..+)?)$/
/** Options under which a sync does not wait for the device. */
const unsafeOptions: ReadonlySet<string> = new Set(['nobarrier', 'barrier=0', 'eatmydata'])

/**
 * A write and a sync of one page in less has not been to any device: the way through the kernel and a bus alone takes
 * about as long.
 */
const HONEST_SYNC_MS = 0.02
/** From here on one produce after another is slow, though many at once share a sync. */
const SLOW_SYNC_MS = 20
/** Now and then much slower than mostly: clients see it as their p99. */
const SLOW_SYNC_P99_MS = 250
/** Settling and retention write everything about twice more. */
const SLOW_WRITE_BYTES_PER_SECOND = 20 * 1024 ** 2

/** Whether what lies there stays there. */
export function judgeFileSystem(mount: MountFacts | null): Finding {
  const name = 'file system'
  if (mount === null) return unknown(name, 'the mount of the data directory cannot be told')
  const { type, source, mountPoint, options } = mount
  const seen = `${type} on ${source}, mounted at ${mountPoint}`
  if (memoryTypes.has(type))
    return bad(name, `${seen}: in memory`, 'Move --data-dir to a disk: this is lost with power.')
  if (options.includes('ro')) return bad(name, `${seen}: read-only`, 'Mount it writable, or move --data-dir.')
  const unsafe = options.find(option => unsafeOptions.has(option))
  if (unsafe !== undefined) {
    return bad(name, `${seen}, with ${unsafe}`, `Mount it without ${unsafe}: a sync does not reach the device with it.`)
  }
  if (type === 'overlay') {
    return warn(
      name,
      `${seen}: the layer of a container`,
      'Mount a volume at --data-dir: this goes with the container.'
    )
  }
  if (networkTypes.test(type)) {
    return warn(
      name,
      `${seen}: not a disk of this machine`,
      'Use a local disk, or make sure that its syncs and locks hold when the other side fails.'
    )
  }
  return ok(name, seen)
}

/** Whether the device keeps writes in a cache of its own. */
export function judgeWriteCache(device: DeviceFacts | null): Finding {
  const name = 'write cache'
  if (device === null) return unknown(name, 'no block device of its own: what is below cannot be told')
  const { name: deviceName, writeCache, isRotational } = device
  const kind = isRotational === null ? '' : isRotational ? ', rotating' : ', not rotating'
  if (writeCache === null) return unknown(name, `${deviceName}${kind}: the kernel does not say`)
  const words =
    writeCache === 'write back'
      ? 'has a cache, which each sync empties'
      : 'has none, or one that survives power, as it tells the kernel: a sync sends no flush'
  return ok(name, `${deviceName}${kind}: ${words}`)
}

/** Sync honesty and speed. Nothing can be said of a disk that was not put to work. */
export function judgeDisk(disk: DiskFacts, mount: MountFacts | null, device: DeviceFacts | null): Finding[] {
  if ('skipped' in disk) return [unknown('disk speed', `not measured: ${disk.skipped}`)]
  return [judgeHonesty(disk.probe, mount, device), judgeSyncSpeed(disk.probe.syncs), judgeWriteSpeed(disk.probe)]
}

function judgeHonesty({ syncs }: DiskProbe, mount: MountFacts | null, device: DeviceFacts | null): Finding {
  const name = 'sync honesty'
  const [smallest] = syncs
  if (smallest === undefined) return unknown(name, 'no sync was measured')
  const seen = `${formatBytes(smallest.bytes)} are reported durable in ${formatMs(smallest.p50Ms)} ms`
  if (mount !== null && memoryTypes.has(mount.type)) return unknown(name, `${seen}: memory, where a sync means nothing`)
  if (smallest.p50Ms >= HONEST_SYNC_MS) return ok(name, seen)
  const change =
    'Find what answers for the disk: a virtual disk in an unsafe cache mode, or a sync that is switched off; ' +
    'acknowledged records may be lost with power.'
  // A device without a volatile cache may be that fast: memory with a battery behind it is.
  const finding = device?.writeCache === 'write through' ? warn : bad
  return finding(name, `${seen}: faster than a device can be`, change)
}

function judgeSyncSpeed(syncs: readonly SyncTimes[]): Finding {
  const name = 'sync speed'
  const [smallest] = syncs
  if (smallest === undefined) return unknown(name, 'no sync was measured')
  const seen = syncs
    .map(({ bytes, p50Ms, p99Ms }) => `${formatBytes(bytes)} p50 ${formatMs(p50Ms)} p99 ${formatMs(p99Ms)} ms`)
    .join(', ')
  if (smallest.p50Ms > SLOW_SYNC_MS) {
    return warn(
      name,
      seen,
      'Use a disk with faster syncs, an SSD or one with a protected cache: each produce waits for one.'
    )
  }
  if (smallest.p99Ms > SLOW_SYNC_P99_MS) {
    return warn(name, seen, 'Look for what else writes to this disk: some syncs are far slower than most.')
  }
  return ok(name, seen)
}

function judgeWriteSpeed({ writtenBytes, writeBytesPerSecond }: DiskProbe): Finding {
  const seen = `${formatBytes(writeBytesPerSecond)}/s over ${formatBytes(writtenBytes)}`
  if (writeBytesPerSecond >= SLOW_WRITE_BYTES_PER_SECOND) return ok('write speed', seen)
  return warn('write speed', seen, 'Use a faster disk, or expect produce to be slowed to a third of this.')
}
