/** The version in package.json: the nearest one above this module, which differs between sources and dist. */
import { readFileSync } from 'node:fs'

/** @throws the error of the file system if the installation is incomplete. */
export function readVersion(): string {
  for (let folder = new URL('..', import.meta.url); ; folder = new URL('..', folder)) {
    try {
      const content: unknown = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'))
      if (typeof content === 'object' && content !== null && 'version' in content) return String(content.version)
    } catch (error) {
      // Not this folder: look one higher, until there is none.
      if (folder.pathname === '/' || !(error instanceof Error && 'code' in error && error.code === 'ENOENT'))
        throw error
    }
  }
}
