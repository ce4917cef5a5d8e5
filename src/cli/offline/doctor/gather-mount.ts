/** Finds the mount of a folder and the block device below it, from /proc and /sys. Main thread; the parser is pure. */
import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { DeviceFacts, MountFacts } from './facts.ts'
import { readOptional } from './read-optional.ts'

/** @param folder exists. */
export function gatherMount(folder: string): MountFacts | null {
  const text = readOptional('/proc/self/mountinfo')
  return text === null ? null : findMount(realpathSync(folder), text)
}

/** The mount with the longest path that holds `path`; a later one on the same point hides the earlier. */
export function findMount(path: string, mountInfo: string): MountFacts | null {
  let found: MountFacts | null = null
  for (const line of mountInfo.split('\n')) {
    const mount = parseMountLine(line)
    if (mount === null) continue
    const prefix = mount.mountPoint === '/' ? '/' : `${mount.mountPoint}/`
    if (`${path}/`.startsWith(prefix) && mount.mountPoint.length >= (found?.mountPoint.length ?? 0)) found = mount
  }
  return found
}

/** id parent major:minor root mountPoint options [tags…] - type source superOptions */
function parseMountLine(line: string): MountFacts | null {
  const [own = '', ofFileSystem = ''] = line.split(' - ')
  const [, , device = '', , mountPoint, options = ''] = own.split(' ')
  const [type, source, superOptions = ''] = ofFileSystem.split(' ')
  const [major, minor] = device.split(':').map(Number)
  if (mountPoint === undefined || type === undefined || source === undefined) return null
  if (major === undefined || minor === undefined) return null
  const all = new Set([...options.split(','), ...superOptions.split(',')])
  return {
    type,
    source: unescape(source),
    mountPoint: unescape(mountPoint),
    major,
    minor,
    options: [...all]
  }
}

/** The kernel writes a blank as \040. */
function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}

/** The device of a mount; null where it has none that the kernel describes. */
export function gatherDevice(mount: MountFacts | null): DeviceFacts | null {
  if (mount === null) return null
  const folder = deviceFolder(mount)
  if (folder === null) return null
  const cache = readOptional(join(folder, 'queue/write_cache'))?.trim()
  const rotational = readOptional(join(folder, 'queue/rotational'))?.trim()
  return {
    name: basename(folder),
    writeCache: cache === 'write back' || cache === 'write through' ? cache : null,
    isRotational: rotational === undefined ? null : rotational === '1'
  }
}

/** A partition has no queue of its own: its disk, the folder above, has it. */
function deviceFolder({ major, minor, source }: MountFacts): string | null {
  const candidates = [`/sys/dev/block/${major}:${minor}`]
  // Some file systems (btrfs) have a number of their own and name the device as their source.
  if (source.startsWith('/dev/') && existsSync(source)) {
    candidates.push(`/sys/class/block/${basename(realpathSync(source))}`)
  }
  const link = candidates.find(path => existsSync(path))
  if (link === undefined) return null
  const folder = realpathSync(link)
  return existsSync(join(folder, 'queue')) ? folder : dirname(folder)
}
