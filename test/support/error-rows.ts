/**
 * The table of errors as docs/protocols.md has it, made from the one in the source. Run by itself it puts the rows there:
 * `node test/support/error-rows.ts`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { errorTable, type ErrorCode } from '../../src/model/errors.ts'
import { repository } from './repository.ts'

const isRow = (line: string): boolean => /^\| `[A-Z_]+` \| \d/.test(line)

/** One row for each error, in the order of the source. */
export function errorRows(): string[] {
  return (Object.keys(errorTable) as ErrorCode[]).map(code => {
    const { wire, http, es01, kafka, retry, written, text } = errorTable[code]
    return `| \`${code}\` | ${wire} | ${http} | ${es01} | ${kafka} | ${retry} | ${written} | ${text} |`
  })
}

/** The rows that a text has. */
export function rowsOf(document: string): string[] {
  return document.split('\n').filter(isRow)
}

function withRows(document: string): string {
  const lines = document.split('\n')
  const first = lines.findIndex(isRow)
  const others = lines.filter(line => !isRow(line))
  return [...others.slice(0, first), ...errorRows(), ...others.slice(first)].join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = join(repository, 'docs/protocols.md')
  writeFileSync(path, withRows(readFileSync(path, 'utf8')))
}
