/** How many connections of ES01 and Kafka this process may hold: half of its file descriptors, within bounds. */
import { readFileSync } from 'node:fs'
import { DESCRIPTORS_DEFAULT, parseDescriptorLimit } from '../../base/descriptor-limit.ts'
import { limits } from '../../model/limits.ts'

/** @returns the bound for that many file descriptors. */
export function connectionsFor(descriptors: number): number {
  return Math.min(limits.binaryConnectionsMax, Math.max(limits.binaryConnectionsMin, Math.floor(descriptors / 2)))
}

/** @returns the bound for this process. Where /proc does not exist, that of 1024 descriptors. */
export function readConnectionsMax(): number {
  try {
    return connectionsFor(parseDescriptorLimit(readFileSync('/proc/self/limits', 'utf8')))
  } catch {
    // No /proc, or none that may be read: not Linux, or a tight sandbox. The common default is safe there.
    return connectionsFor(DESCRIPTORS_DEFAULT)
  }
}
