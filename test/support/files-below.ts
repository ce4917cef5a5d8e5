/** What files a directory has, while others may make and remove some. */
import { readdirSync, type Dirent } from 'node:fs'
import { join } from 'node:path'

/** Files below a directory, by their path in it. One that is not there, or goes at this moment, has none. */
export function filesBelow(directory: string, prefix = ''): string[] {
  let entries: Dirent[]
  try {
    entries = readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  return entries
    .flatMap(entry =>
      entry.isDirectory()
        ? filesBelow(join(directory, entry.name), `${prefix}${entry.name}/`)
        : [`${prefix}${entry.name}`]
    )
    .sort()
}

/** Bytes of what the broker has here of topics, packs and copies. */
export function localLogs(dataDir: string): string[] {
  return [...filesBelow(join(dataDir, 'topics')), ...filesBelow(join(dataDir, 'packs'))].filter(
    name => name.endsWith('.log') || name.endsWith('.pack')
  )
}
