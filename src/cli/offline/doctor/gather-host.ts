/** Gathers what node:process and node:os know of this machine, and how the HTTP engine loads. Main thread. */
import { availableParallelism, release, totalmem } from 'node:os'
import { parseDescriptorLimits } from '../../../base/descriptor-limit.ts'
import { memoryLimit } from '../../../config/machine.ts'
import { loadUws } from '../../../gateway/http/engines/uws-loader.ts'
import type { Settings } from '../../../config/settings.ts'
import type { EngineFacts, HostFacts, MachineFacts } from './facts.ts'
import { readCpuQuota } from './gather-cgroup.ts'
import { readOptional } from './read-optional.ts'

export function gatherHost(): HostFacts {
  return {
    platform: process.platform,
    architecture: process.arch,
    kernel: release(),
    glibc: glibcVersion(),
    nodeVersion: process.version,
    nodePath: process.execPath
  }
}

/** Of the report that Node writes of itself. */
function glibcVersion(): string | null {
  // It would look up the names of all peers otherwise. The types do not know the property yet.
  Object.assign(process.report, { excludeNetwork: true })
  const report: unknown = process.report.getReport()
  if (typeof report !== 'object' || report === null || !('header' in report)) return null
  const { header } = report
  if (typeof header !== 'object' || header === null || !('glibcVersionRuntime' in header)) return null
  return typeof header.glibcVersionRuntime === 'string' ? header.glibcVersionRuntime : null
}

/** Loads the engine as `serve` would. */
export function gatherEngine(wanted: Settings['httpEngine']): EngineFacts {
  if (wanted === 'node') return { state: 'not-tried' }
  const loaded = loadUws()
  if (loaded.uws === null) return { state: 'fallback', reason: loaded.reason }
  return { state: 'native', patchedPath: loaded.patchedPath }
}

export function gatherMachine(): MachineFacts {
  return {
    totalBytes: totalmem(),
    limitBytes: memoryLimit(),
    processors: availableParallelism(),
    quota: readCpuQuota(path => readOptional(path)),
    descriptors: parseDescriptorLimits(readLimits())
  }
}

function readLimits(): string {
  return readOptional('/proc/self/limits') ?? ''
}
