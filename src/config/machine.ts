/**
 * Measures the machine for the settings that depend on it. Main thread, at start; short synchronous calls.
 */
import { readFileSync, statfsSync } from 'node:fs'
import { totalmem } from 'node:os'
import { DESCRIPTORS_DEFAULT, parseDescriptorLimit } from '../base/descriptor-limit.ts'
import type { MachineSizes } from './auto-sizes.ts'

/** Memory that this process may take by a limit below what the machine has; null: there is none. */
export function memoryLimit(): number | null {
  const constrained = process.constrainedMemory()
  // 0, or more than there is: no limit is set.
  return constrained > 0 && constrained < totalmem() ? constrained : null
}

/** @param directory exists. */
export function measureMachine(directory: string): MachineSizes {
  const memoryBytes = memoryLimit() ?? totalmem()
  const { blocks, bsize } = statfsSync(directory)
  return { memoryBytes, diskBytes: blocks * bsize }
}

/** Soft limit of file descriptors of this process; where it cannot be read, the common default. */
export function descriptorLimit(): number {
  try {
    return parseDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'))
  } catch {
    // No /proc, or none that may be read: not Linux, or a tight sandbox. The common default is safe there.
    return DESCRIPTORS_DEFAULT
  }
}
