/** The machine that a load runs on, as figures name it. Any thread. */
import { availableParallelism, cpus, release, totalmem } from 'node:os'

export interface Host {
  readonly cpu: string
  readonly cores: number
  readonly memoryBytes: number
  readonly kernel: string
  readonly node: string
}

export function describeHost(): Host {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    kernel: release(),
    node: process.version
  }
}
