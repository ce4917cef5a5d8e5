/**
 * Keys of objects: `<topic>~<topic id>/<partition>/<20 digits>.log` and the like, safe as paths below a directory and
 * in a bucket. Pure, any thread.
 *
 *   key    = part *( "/" part ) name     the last part ends with an ending of `objectEndings`, no other part does
 *   part   = 1…255 of A-Z a-z 0-9 . _ - ~, and neither "." nor ".."
 *   folder = "" | *( part "/" )
 *
 * That only objects have these endings tells them from folders without asking the file system.
 */
import { ColdError } from './object-store.ts'

/** What the name of an object ends with: the files of a sealed segment. */
export const objectEndings = ['.log', '.blocks', '.index', '.timeindex'] as const

/** What file systems allow a name. */
const PART_CHARACTERS_MAX = 255
/** With a bucket's prefix (cold-settings.ts) it stays below the 1024 bytes of an S3 key. */
const KEY_CHARACTERS_MAX = 512
/** Characters of a refused key that an error repeats. */
const ECHO_CHARACTERS_MAX = 100

const partPattern = /^[A-Za-z0-9._~-]+$/

/** @throws ColdError `refused` unless it is a key. */
export function checkKey(key: string): void {
  if (!isKey(key)) throw new ColdError('refused', `'${echo(key)}' is not a key of an object`)
}

/** @throws ColdError `refused` unless it is empty or names a folder and ends with a slash. */
export function checkFolder(prefix: string): void {
  if (prefix === '') return
  const parts = prefix.split('/')
  const isFolder = parts.pop() === '' && prefix.length <= KEY_CHARACTERS_MAX && parts.every(isFolderPart)
  if (!isFolder) throw new ColdError('refused', `'${echo(prefix)}' is not a folder of objects`)
}

/** True if it has the form above. */
export function isKey(text: string): boolean {
  const parts = text.split('/')
  const name = parts.pop() ?? ''
  return text.length <= KEY_CHARACTERS_MAX && isObjectName(name) && parts.length > 0 && parts.every(isFolderPart)
}

/** True if that may be the last part of a key. */
export function isObjectName(part: string): boolean {
  return isPart(part) && hasObjectEnding(part)
}

/** True if that may be a part of a key before the last. */
export function isFolderPart(part: string): boolean {
  return isPart(part) && !hasObjectEnding(part)
}

/** True if it is 1 to 255 of the allowed characters, and no step in a path. */
export function isPart(part: string): boolean {
  return part.length <= PART_CHARACTERS_MAX && partPattern.test(part) && part !== '.' && part !== '..'
}

function hasObjectEnding(part: string): boolean {
  return objectEndings.some(ending => part.endsWith(ending) && part.length > ending.length)
}

function echo(text: string): string {
  return text.length <= ECHO_CHARACTERS_MAX ? text : `${text.slice(0, ECHO_CHARACTERS_MAX)}…`
}
