/**
 * The tables of the specification's page on the API, as lines of cells. The page stands beside the repository and is no
 * part of it: where it is not there, what is held against it is held by its authors alone.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from './repository.ts'

const PAGE = join(repository, '../shared/spec/broker-api.md')

/** A section: its whole text, and the rows of its tables without their heads. */
export interface SpecifiedSection {
  readonly text: string
  readonly rows: readonly (readonly string[])[]
}

/** The section of that number, up to the next one; null: the page is not there. */
export function readSection(number: number): SpecifiedSection | null {
  if (!existsSync(PAGE)) return null
  const page = readFileSync(PAGE, 'utf8')
  const text = new RegExp(`^## ${number}\\. .*?(?=^## |(?![\\s\\S]))`, 'ms').exec(page)?.[0] ?? ''
  const tables = text.matchAll(/^\|(?:-+\|)+\n((?:\|.*\n)+)/gm)
  return { text, rows: [...tables].flatMap(([, rows = '']) => rows.trimEnd().split('\n').map(cellsOf)) }
}

/** A bar within a cell is written with a backslash. */
function cellsOf(row: string): string[] {
  return row
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map(cell => cell.trim().replaceAll('\\|', '|'))
}
