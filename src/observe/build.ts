/** Which build runs: the package.json nearest above this module, which differs between sources and dist. Read once. */
import { readFileSync } from 'node:fs'

export interface Build {
  readonly version: string
  /** Of the repository that it was packed from; 'unknown': nobody wrote it down (`gitHead` of package.json). */
  readonly commit: string
}

/** @throws the error of the file system if the installation is incomplete. */
export function readBuild(): Build {
  for (let folder = new URL('..', import.meta.url); ; folder = new URL('..', folder)) {
    const content = readIfThere(new URL('package.json', folder))
    if (content !== null) return { version: fieldOf(content, 'version'), commit: fieldOf(content, 'gitHead') }
    if (folder.pathname === '/') throw new Error('no package.json above the broker: the installation is incomplete')
  }
}

function readIfThere(file: URL): object | null {
  try {
    const content: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return typeof content === 'object' ? content : null
  } catch (error) {
    // Not this folder: the caller looks one higher.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

function fieldOf(content: object, name: string): string {
  const value = Object.entries(content).find(([key]) => key === name)?.[1] as unknown
  return typeof value === 'string' ? value : 'unknown'
}
