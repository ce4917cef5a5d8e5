/** How many processors the control groups of this process allow. The reader of files is the caller's, so this is pure. */
import { dirname, join } from 'node:path'

const ROOT = '/sys/fs/cgroup'

/** @param read text of a file, or null. @returns processors, the least of all groups above this process; null: no limit. */
export function readCpuQuota(read: (path: string) => string | null): number | null {
  const own = unifiedPath(read('/proc/self/cgroup') ?? '')
  if (own === null) return readOldQuota(read)
  let least: number | null = null
  // In a container the path may be the host's, which is not below our root: then only the root is seen.
  for (let path = own; ; path = dirname(path)) {
    const quota = parseCpuMax(read(join(ROOT, path, 'cpu.max')) ?? '')
    if (quota !== null && (least === null || quota < least)) least = quota
    if (path === '/' || path === '.') return least
  }
}

/** Of the line `0::/path`, as version 2 has it. */
function unifiedPath(text: string): string | null {
  return /^0::(\/.*)$/m.exec(text)?.[1] ?? null
}

/** `200000 100000` is 2 processors, `max 100000` no limit. */
export function parseCpuMax(text: string): number | null {
  const match = /^(\d+) (\d+)/.exec(text)
  if (match === null) return null
  const [quotaUs, periodUs] = [Number(match[1]), Number(match[2])]
  return periodUs > 0 ? quotaUs / periodUs : null
}

/** Version 1, seen from inside a container: the group's own two files. */
function readOldQuota(read: (path: string) => string | null): number | null {
  const quotaUs = Number(read(`${ROOT}/cpu/cpu.cfs_quota_us`) ?? -1)
  const periodUs = Number(read(`${ROOT}/cpu/cpu.cfs_period_us`) ?? 0)
  return quotaUs > 0 && periodUs > 0 ? quotaUs / periodUs : null
}
