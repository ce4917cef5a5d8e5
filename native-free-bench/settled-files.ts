/** Whether a broker has settled anything yet, by what lies in its data directory. Any thread. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Settling writes segment files and packs, and nothing else does. */
export function hasSettledFiles(dataDir: string): boolean {
  return ['packs', 'topics'].some(name => {
    try {
      return readdirSync(join(dataDir, name)).length > 0
    } catch (error) {
      // Before the first job neither folder is there.
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
      throw error
    }
  })
}
