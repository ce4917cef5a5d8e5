/**
 * What node:sqlite throws, told apart by SQLite's primary result code. Any thread, pure.
 * Codes: https://www.sqlite.org/rescode.html (an extended code holds the primary one in its low byte).
 */
export const SQLITE_BUSY = 5
export const SQLITE_LOCKED = 6
export const SQLITE_READONLY = 8
export const SQLITE_IOERR = 10
export const SQLITE_CORRUPT = 11
export const SQLITE_FULL = 13
export const SQLITE_CANTOPEN = 14
export const SQLITE_NOTADB = 26

/** The primary result code of an error of node:sqlite; null for every other error. */
export function sqliteCodeOf(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error)) return null
  return typeof error.errcode === 'number' ? error.errcode & 0xff : null
}
