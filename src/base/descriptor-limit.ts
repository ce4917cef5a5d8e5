/** How many file descriptors this process may have, from what the system says of it. Pure. */

/** Of a process of which nothing is known: the common soft limit. */
export const DESCRIPTORS_DEFAULT = 1024

/** @returns the soft limit of open files in the text of /proc/self/limits; Infinity for unlimited. */
export function parseDescriptorLimit(text: string): number {
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(text)?.[1]
  if (soft === undefined) return DESCRIPTORS_DEFAULT
  return soft === 'unlimited' ? Infinity : Number(soft)
}

/** The soft and the hard limit of open files in that text; Infinity for unlimited. */
export function parseDescriptorLimits(text: string): { readonly soft: number; readonly hard: number } {
  const hard = /^Max open files\s+\S+\s+(\d+|unlimited)/m.exec(text)?.[1]
  const soft = parseDescriptorLimit(text)
  if (hard === undefined) return { soft, hard: soft }
  return { soft, hard: hard === 'unlimited' ? Infinity : Number(hard) }
}
