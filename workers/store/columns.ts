/** Values of columns, checked: the file may hold what no version of this code wrote. Store thread, and offline tools. */
import type { SQLOutputValue } from 'node:sqlite'
import { StoreOpenError } from '../../src/store/store-open-error.ts'

/** A row as SQLite gives it. */
export type Row = Readonly<Record<string, SQLOutputValue>>

/** @throws StoreOpenError damaged, as all of these */
export function integerOf(row: Row, column: string): number {
  const value = row[column]
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw wrongValue(column, value)
}

/** null, or a whole number from 0. */
export function countOf(row: Row, column: string): number | null {
  return row[column] === null ? null : integerOf(row, column)
}

/** Text. */
export function textOf(row: Row, column: string): string {
  const value = row[column]
  if (typeof value === 'string') return value
  throw wrongValue(column, value)
}

/** Bytes. */
export function bytesOf(row: Row, column: string): Uint8Array {
  const value = row[column]
  if (value instanceof Uint8Array) return value
  throw wrongValue(column, value)
}

/** What is said of a value that must not be there. */
export function wrongValue(column: string, value: unknown): StoreOpenError {
  return new StoreOpenError('damaged', `the store holds ${String(value)} in column ${column}`)
}

/** One of a few texts. */
export function choiceOf<T extends string>(row: Row, column: string, choices: readonly T[]): T {
  const text = textOf(row, column)
  const choice = choices.find(known => known === text)
  if (choice === undefined) throw wrongValue(column, text)
  return choice
}
