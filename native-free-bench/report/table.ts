/**
 * The report as text for a terminal: one line per case with the medians, the rounds below it, then the ratios.
 * Pure.
 */
import { medianOf } from '../results.ts'
import type { BenchReport, CaseResult, Cell, StudyResult } from '../results.ts'
import { formatBytes, formatCount, formatMs } from '../../src/base/amounts.ts'

const columns = [
  'case',
  'requests/s',
  'records/s',
  'bytes/s',
  'p50 ms',
  'p90',
  'p99',
  'p99.9',
  'max',
  'client',
  'broker'
]

/** The whole report, lines ended by newlines. */
export function renderTable(report: BenchReport): string {
  const { machine } = report
  const lines = [
    `machine     ${machine.cpu}, ${machine.cores} cores, ${formatBytes(machine.memoryBytes)}, Linux ${machine.kernel}`,
    `disk        ${machine.fileSystem}`,
    `node        ${machine.node}`,
    `durability  ${report.durability}`,
    `command     ${report.command}`,
    '',
    ...(report.cases.length === 0 ? [] : caseLines(report)),
    ...report.studies.flatMap(studyLines)
  ]
  if (report.comparisons.length > 0) {
    lines.push('Ratios (each within its round, then the median):')
    for (const { name, median, perRound } of report.comparisons) {
      lines.push(`  ${median.toFixed(2)}  ${name}   [${perRound.map(value => value.toFixed(2)).join(' ')}]`)
    }
    lines.push('')
  }
  const notes = allNotes(report)
  if (notes.length > 0) lines.push('Notes:', ...notes.map(note => `  ${note}`), '')
  return lines.join('\n')
}

function caseLines(report: BenchReport): string[] {
  return [
    'Medians of the rounds; client and broker in cores. Bytes are keys and values, without framing.',
    '',
    ...alignRows([columns, ...report.cases.map(medianRow)]),
    '',
    'Rounds (records/s; a bare loop counts a write + sync as one record):',
    ...report.cases.flatMap(roundLines),
    ''
  ]
}

function studyLines({ title, table, failure }: StudyResult): string[] {
  if (table === null) return [`${title}: failed`, `  ${failure ?? ''}`, '']
  return [`${title}:`, ...alignRows([table.columns, ...table.rows.map(row => row.map(cellText))]).map(indent), '']
}

/** As a person reads it; the JSON keeps the number. */
export function cellText(cell: Cell): string {
  if (cell === null) return '–'
  if (typeof cell === 'string') return cell
  return Number.isInteger(cell) ? cell.toLocaleString('en') : formatMs(cell)
}

function indent(line: string): string {
  return `  ${line}`
}

/** Notes of the run and of its rounds and studies, each text once with the cases it holds for. */
export function allNotes(report: BenchReport): string[] {
  const cases = new Map<string, Set<string>>()
  for (const result of report.cases) {
    const texts = [...result.failures, ...result.rounds.flatMap(round => round?.notes ?? [])]
    for (const note of texts) cases.set(note, (cases.get(note) ?? new Set()).add(result.case.id))
  }
  for (const { id, table } of report.studies) {
    for (const note of table?.notes ?? []) cases.set(note, (cases.get(note) ?? new Set()).add(id))
  }
  return [...report.notes, ...[...cases].map(([note, ids]) => `${[...ids].join(', ')}: ${note}`)]
}

function medianRow(result: CaseResult): string[] {
  if (result.rounds.every(round => round === null)) return [result.case.id, 'failed']
  const cores = (pick: 'clientCores' | 'brokerCores'): string => {
    const value = medianOf(result, round => round[pick] ?? Number.NaN)
    return Number.isNaN(value) ? '–' : value.toFixed(2)
  }
  return [
    result.case.id,
    formatCount(medianOf(result, round => round.requestsPerSecond)),
    formatCount(medianOf(result, round => round.recordsPerSecond)),
    formatBytes(medianOf(result, round => round.bytesPerSecond)),
    formatMs(medianOf(result, round => round.latency.p50Ms)),
    formatMs(medianOf(result, round => round.latency.p90Ms)),
    formatMs(medianOf(result, round => round.latency.p99Ms)),
    formatMs(medianOf(result, round => round.latency.p999Ms)),
    formatMs(medianOf(result, round => round.latency.maxMs)),
    cores('clientCores'),
    cores('brokerCores')
  ]
}

function roundLines(result: CaseResult): string[] {
  const rounds = result.rounds.map(round => (round === null ? 'failed' : formatCount(round.recordsPerSecond)))
  const lines = [`  ${result.case.id}: ${rounds.join(' · ')}`]
  const names = new Set(result.rounds.flatMap(round => (round === null ? [] : Object.keys(round.extras))))
  for (const name of names) {
    const values = result.rounds.map(round => round?.extras[name])
    lines.push(`    ${name}: ${values.map(value => (value === undefined ? '–' : formatMs(value))).join(' · ')}`)
  }
  return lines
}

/** First column left, the others right. */
export function alignRows(rows: readonly (readonly string[])[]): string[] {
  const columnCount = Math.max(0, ...rows.map(row => row.length))
  const widths = Array.from({ length: columnCount }, (_, index) =>
    Math.max(...rows.map(row => (row[index] ?? '').length))
  )
  return rows.map(row =>
    row
      .map((cell, index) => (index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0)))
      .join('  ')
      .trimEnd()
  )
}
