/** What the operating system and Node say of this process. Main thread. */
import { readdir } from 'node:fs/promises'
import type { LoopDelay } from './loop-delay.ts'
import { one, type ProcessReaders, type Sample } from './process-page.ts'
import { readBuild } from './build.ts'

type Owned = Extract<
  keyof ProcessReaders,
  `millrace_process_${string}` | 'millrace_build_info' | 'millrace_event_loop_delay_seconds'
>

/** @param descriptorsMax Infinity: there is no limit. */
export function processReaders(delay: LoopDelay, descriptorsMax: number): Pick<ProcessReaders, Owned> {
  const startSeconds = performance.timeOrigin / 1000
  const { version, commit } = readBuild()
  return {
    millrace_build_info: () => [{ labels: { version, node: process.version, commit }, value: 1 }],
    millrace_process_start_time_seconds: () => one(startSeconds),
    millrace_process_cpu_seconds_total: () => {
      const { user, system } = process.cpuUsage()
      return kinds('mode', { user: user / 1e6, system: system / 1e6 })
    },
    millrace_process_resident_memory_bytes: () => one(process.memoryUsage.rss()),
    millrace_process_heap_bytes: () => {
      const { heapUsed: used, heapTotal: total } = process.memoryUsage()
      return kinds('kind', { used, total })
    },
    millrace_process_external_memory_bytes: () => {
      const { external, arrayBuffers } = process.memoryUsage()
      return kinds('kind', { external, array_buffers: arrayBuffers })
    },
    millrace_process_open_fds: async () => {
      const count = await openDescriptors()
      return count === null ? [] : one(count)
    },
    millrace_process_max_fds: () => one(descriptorsMax),
    millrace_event_loop_delay_seconds: () =>
      delay.read().map(({ quantile, seconds }) => ({ labels: { thread: 'main', quantile }, value: seconds }))
  }
}

function kinds(label: string, values: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(values).map(([kind, value]) => ({ labels: { [label]: kind }, value }))
}

/** @returns null where there is no /proc, or none that may be read. */
async function openDescriptors(): Promise<number | null> {
  try {
    // Not the one that reads the directory.
    return (await readdir('/proc/self/fd')).length - 1
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'EACCES')) return null
    throw error
  }
}
