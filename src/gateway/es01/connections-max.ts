/** How many ES01 connections this process may hold: half of its file descriptors, within bounds. */
import { readFileSync } from 'node:fs'
import { limits } from '../../model/limits.ts'

/** The soft limit that most systems give a process where none can be read. */
const DESCRIPTORS_DEFAULT = 1024

/** @returns the soft limit of open files in the text of /proc/self/limits; Infinity for unlimited. */
export function parseDescriptorLimit(text: string): number {
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(text)?.[1]
  if (soft === undefined) return DESCRIPTORS_DEFAULT
  return soft === 'unlimited' ? Infinity : Number(soft)
}

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
