/**
 * Loads uWebSockets.js, on systems with an older glibc by way of a patched copy (elf-patch.ts). Main thread, at start-up.
 *
 *   as shipped ──loads──▶ done
 *       │ fails for GLIBC_2.38
 *       ▼
 *   checksum of the binary is a pinned one? ──no──▶ reason
 *       │ yes
 *       ▼
 *   copy in the user's cache, named by the checksums, written once by atomic rename ──loads──▶ done
 *
 * It must never patch or load bytes that it does not know, never change the installed package, and never throw: where
 * uWebSockets.js cannot be had, the caller serves the same routes on node:http and says why.
 */
import { createHash, randomBytes } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir, tmpdir, userInfo } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { limits } from '../../../model/limits.ts'
import { withClassicLibcNames } from './elf-patch.ts'
import type { Uws } from './uws-shape.ts'

/** Either the library and how it came, or why there is none. */
export type UwsLoad =
  { readonly uws: Uws; readonly patchedPath: string | null } | { readonly uws: null; readonly reason: string }

/** SHA-256 of the Linux binaries in uWebSockets.js 20.57.0 as this project's lockfile pins it, by file name. */
export const pinnedChecksums: ReadonlyMap<string, string> = new Map([
  ['uws_linux_x64_137.node', '98128405dba2fb608448e921a979530f70c946a2cc9889c15f2fa70c2d00ab05'],
  ['uws_linux_arm64_137.node', '88618b30ddf6b2b62310db89f40a701616676352aac5e0f6184dd8ef876199ce'],
  ['uws_linux_x64_141.node', '813d788b347c6fd76b779d8932311ec05a044e612b4b83af220f16e6ea789683'],
  ['uws_linux_arm64_141.node', '81d0186dd1549ed6a7f47e68e323573fc27d69d2920527654ce2dd993af2b0ec']
])

/** Changes whenever withClassicLibcNames makes other bytes: a cached copy is named by it. */
const PATCH_VERSION = 1

const require = createRequire(import.meta.url)

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function isUws(value: unknown): value is Uws {
  return typeof value === 'object' && value !== null && 'App' in value && 'LIBUS_LISTEN_EXCLUSIVE_PORT' in value
}

/** The library reads this once, when its binary is loaded; its own default of 4 KiB is below what browsers send. */
function setHeaderLimit(): void {
  process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(limits.httpHeaderBytesMax)
}

/** Folders for the copy, the best first: XDG_CACHE_HOME, ~/.cache, the temporary folder (with the user's id in the name). */
export function cacheFolders(environment: NodeJS.ProcessEnv): string[] {
  const xdg = environment['XDG_CACHE_HOME']
  const home = environment['HOME'] ?? homedir()
  const folders = [join(tmpdir(), `millrace-${userInfo().uid}`)]
  if (isAbsolute(home)) folders.unshift(join(home, '.cache', 'millrace'))
  if (xdg !== undefined && isAbsolute(xdg)) folders.unshift(join(xdg, 'millrace'))
  return folders
}

/** Makes the folder, 0700, and insists that it is a real folder of this user which no one else can write. */
function openFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const status = lstatSync(folder)
  const { uid } = userInfo()
  if (!status.isDirectory() || status.uid !== uid || (status.mode & 0o022) !== 0) {
    throw new Error(`${folder} is not a private folder of this user`)
  }
}

/** True if the file is there, ours, and holds exactly these bytes. */
function holds(path: string, bytes: Buffer): boolean {
  try {
    const status = lstatSync(path)
    return status.isFile() && status.uid === userInfo().uid && readFileSync(path).equals(bytes)
  } catch (error) {
    // Not there (the usual first start) or not readable: both mean that it must be written.
    if (error instanceof Error) return false
    throw error
  }
}

/**
 * Puts `patched` into `folder` under a name made of the checksum; does nothing if it is there already.
 * @returns its path. @throws if the folder cannot be used.
 */
export function storePatched(folder: string, patched: Buffer, checksum: string): string {
  openFolder(folder)
  const path = join(folder, `uws-${checksum.slice(0, 32)}-${PATCH_VERSION}.node`)
  if (holds(path, patched)) return path
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    writeFileSync(temporary, patched, { mode: 0o600, flag: 'wx' })
    renameSync(temporary, path)
  } finally {
    rmSync(temporary, { force: true })
  }
  return path
}

function loadPatched(packageFolder: string, environment: NodeJS.ProcessEnv): UwsLoad {
  const name = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`
  const original = readFileSync(join(packageFolder, name))
  const checksum = createHash('sha256').update(original).digest('hex')
  if (pinnedChecksums.get(name) !== checksum) {
    return { uws: null, reason: `${name} needs a newer glibc and is not the pinned binary: it is left alone` }
  }
  const patched = withClassicLibcNames(original)
  const faults: string[] = []
  for (const folder of cacheFolders(environment)) {
    try {
      const path = storePatched(folder, patched, checksum)
      const loaded: unknown = require(path)
      if (isUws(loaded)) return { uws: loaded, patchedPath: path }
      faults.push(`${path} is not uWebSockets.js`)
    } catch (error) {
      // A read-only or noexec cache: the next folder may do. All faults are told if none does.
      faults.push(textOf(error))
    }
  }
  return { uws: null, reason: faults.join('; ') }
}

/** Loads the library as this system allows. Never throws. Call on the main thread only: it sets an environment variable. */
export function loadUws(environment: NodeJS.ProcessEnv = process.env): UwsLoad {
  setHeaderLimit()
  try {
    const loaded: unknown = require('uWebSockets.js')
    if (isUws(loaded)) return { uws: loaded, patchedPath: null }
    return { uws: null, reason: 'the package uWebSockets.js does not have the expected functions' }
  } catch (error) {
    const reason = textOf(error).split('\n').filter(Boolean).at(-1) ?? 'unknown'
    if (process.platform !== 'linux' || !reason.includes('GLIBC_2.38')) return { uws: null, reason }
  }
  try {
    return loadPatched(dirname(require.resolve('uWebSockets.js')), environment)
  } catch (error) {
    return { uws: null, reason: textOf(error) }
  }
}
