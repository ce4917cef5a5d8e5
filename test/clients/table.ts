/** The pass table of a run, as it stands in docs/kafka.md: a row a check, a column a client, and what the dashes mean. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { checkNames, type CheckName } from './client.ts'

const document = new URL('../../docs/kafka.md', import.meta.url)
const begin = '<!-- clients: npm run test:clients -- --all --write -->'
const end = '<!-- /clients -->'

/** What came of one client. */
export interface Column {
  readonly name: string
  readonly version: string
  /** In the order of the checks. */
  readonly cells: readonly string[]
  readonly lacks: Partial<Record<CheckName, string>>
}

/** The lines between the two marks. Versions and reasons stand below, so that the columns of eight clients fit. */
export function tableOf(columns: readonly Column[]): string {
  const head = `| | ${columns.map(({ name }) => name).join(' | ')} |`
  const rule = `|---|${columns.map(() => '---').join('|')}|`
  const rows = checkNames.map((name, i) => `| ${name} | ${columns.map(({ cells }) => cells[i] ?? '').join(' | ')} |`)
  const versions = columns.map(({ name, version }) => `${name} ${version}`).join('; ')
  return [head, rule, ...rows, '', `Versions: ${versions}.`, ...reasonsOf(columns)].join('\n')
}

/** A line for each client that lacks something: the checks that one reason stands for, and the reason. */
function reasonsOf(columns: readonly Column[]): string[] {
  const lines = columns.flatMap(({ name, lacks }) => {
    const checksByReason = Map.groupBy(Object.entries(lacks), ([, reason]) => reason)
    const parts = [...checksByReason].map(
      ([reason, checks]) => `${checks.map(([check]) => check).join(', ')}: ${reason}`
    )
    return parts.length === 0 ? [] : [`- ${name}: ${parts.join('; ')}.`]
  })
  return lines.length === 0 ? [] : ['', 'What a client has not:', '', ...lines]
}

/** Puts the table between the marks of the document. */
export function writeTable(columns: readonly Column[]): void {
  const text = readFileSync(document, 'utf8')
  const [start, stop] = [text.indexOf(begin), text.indexOf(end)]
  assert.ok(start >= 0 && stop > start, 'the document has both marks')
  writeFileSync(document, `${text.slice(0, start)}${begin}\n\n${tableOf(columns)}\n\n${text.slice(stop)}`)
}
