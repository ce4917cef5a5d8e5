/**
 * The report as one HTML file: no script, nothing loaded, light and dark. Well-formed as XML too, which a test checks.
 * Pure. All text passes escapeText.
 */
import { percentileFields, percentileNames } from '../latency.ts'
import { medianOf, typicalRound } from '../results.ts'
import type { BenchReport, CaseResult, StudyResult } from '../results.ts'
import { formatBytes, formatCount, formatMs } from '../../src/base/amounts.ts'
import { escapeText, percentileChart, throughputChart } from './charts.ts'
import { allNotes, cellText } from './table.ts'

const style = `
:root { color-scheme: light dark; --text: #1c2024; --soft: #60646c; --back: #ffffff; --card: #f5f6f8; --line: #d9dce1;
  --c0: #1f6feb; --c1: #bf5b04; --c2: #1a7f37; --c3: #8250df; --c4: #cf222e; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8eaed; --soft: #a3a9b3; --back: #14171b; --card: #1d2126; --line: #363c45;
    --c0: #6cb0ff; --c1: #f5a55a; --c2: #5fd07c; --c3: #c3a2ff; --c4: #ff8a8a; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 72rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin: 0 0 .4rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { color: var(--soft); } dd { margin: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(22rem, 1fr)); gap: 1rem; }
.card { background: var(--card); border-radius: .6rem; padding: .9rem; } svg { width: 100%; height: auto; }
.soft, .axis { color: var(--soft); fill: var(--soft); } .axis, .label { font-size: 11px; } .label { fill: var(--text); }
.grid { stroke: var(--line); } .range { stroke: var(--soft); stroke-width: 2; } .line { fill: none; stroke-width: 1.6; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); } .c3 { stroke: var(--c3); } .c4 { stroke: var(--c4); }
.dot { stroke: none; } .dot.c0 { fill: var(--c0); } .dot.c1 { fill: var(--c1); } .dot.c2 { fill: var(--c2); }
.dot.c3 { fill: var(--c3); } .dot.c4 { fill: var(--c4); } code { overflow-wrap: anywhere; }
`

/** The whole page. */
export function renderHtml(report: BenchReport): string {
  const { machine } = report
  const facts: readonly (readonly [string, string])[] = [
    ['Machine', `${machine.cpu}, ${machine.cores} cores, ${formatBytes(machine.memoryBytes)}`],
    ['Kernel', `Linux ${machine.kernel}`],
    ['Disk', machine.fileSystem],
    ['Node.js', machine.node],
    ['Durability', report.durability],
    ['Started', report.startedAt]
  ]
  const notes = allNotes(report)
  return [
    '<!DOCTYPE html>',
    '<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>',
    `<title>Millrace: load report</title><style>${style}</style></head><body>`,
    '<h1>Millrace: load report</h1>',
    `<dl>${facts.map(([name, value]) => `<dt>${name}</dt><dd>${escapeText(value)}</dd>`).join('')}`,
    `<dt>Command</dt><dd><code>${escapeText(report.command)}</code></dd></dl>`,
    ...(report.cases.length === 0 ? [] : caseParts(report)),
    ...report.studies.map(studyPart),
    notes.length === 0 ? '' : `<h2>Notes</h2><ul>${notes.map(note => `<li>${escapeText(note)}</li>`).join('')}</ul>`,
    '</body></html>',
    ''
  ].join('\n')
}

/** Tables and charts of what was measured in rounds. */
function caseParts(report: BenchReport): string[] {
  return [
    '<h2>Medians of the rounds</h2>',
    '<p class="soft">Bytes are keys and values, without framing. Client and broker share the machine; their CPU is in cores.</p>',
    mediansTable(report),
    comparisonsTable(report),
    '<h2>Throughput over time</h2>',
    `<div class="charts">${report.cases.map(chartCard).join('')}</div>`,
    '<h2>Latency</h2>',
    `<p class="soft">Dots: ${percentileFields.map(field => percentileNames[field]).join(', ')} of the round nearest the median.</p>`,
    percentileChart(
      report.cases.flatMap(result => {
        const round = typicalRound(result)
        return round === null ? [] : [{ name: result.case.id, latency: round.latency }]
      })
    )
  ]
}

function studyPart({ title, table: found, failure }: StudyResult): string {
  const head = `<h2>${escapeText(title)}</h2>`
  if (found === null) return `${head}<p>failed: ${escapeText(failure ?? '')}</p>`
  const rows = found.rows.map(cells => row(cells.map(cell => escapeText(cellText(cell)))))
  return `${head}${table(found.columns, rows)}`
}

function mediansTable(report: BenchReport): string {
  const heads = ['Case', 'requests/s', 'records/s', 'bytes/s']
  heads.push(...percentileFields.map(field => `${percentileNames[field]} ms`), 'client', 'broker', 'records/s by round')
  const rows = report.cases.map(result => {
    const cells = [
      formatCount(medianOf(result, round => round.requestsPerSecond)),
      formatCount(medianOf(result, round => round.recordsPerSecond)),
      formatBytes(medianOf(result, round => round.bytesPerSecond)),
      ...percentileFields.map(field => formatMs(medianOf(result, round => round.latency[field]))),
      coresText(medianOf(result, round => round.clientCores ?? Number.NaN)),
      coresText(medianOf(result, round => round.brokerCores ?? Number.NaN)),
      result.rounds.map(round => (round === null ? 'failed' : formatCount(round.recordsPerSecond))).join(' · ')
    ]
    return row([`<span title="${escapeText(result.case.title)}">${escapeText(result.case.id)}</span>`, ...cells])
  })
  return table(heads, rows)
}

function comparisonsTable(report: BenchReport): string {
  if (report.comparisons.length === 0) return ''
  const rows = report.comparisons.map(({ name, median, perRound }) =>
    row([escapeText(name), median.toFixed(2), perRound.map(value => value.toFixed(2)).join(' · ')])
  )
  return `<h2>Ratios</h2>${table(['Each within its round', 'median', 'by round'], rows)}`
}

function chartCard(result: CaseResult): string {
  const rounds = result.rounds.map(round => round?.slices ?? [])
  return `<div class="card"><h3>${escapeText(result.case.title)}</h3>${throughputChart(result.case.id, rounds)}</div>`
}

function coresText(value: number): string {
  return Number.isNaN(value) ? '–' : value.toFixed(2)
}

function row(cells: readonly string[]): string {
  return `<tr>${cells.map(cell => `<td>${cell}</td>`).join('')}</tr>`
}

function table(heads: readonly string[], rows: readonly string[]): string {
  const head = heads.map(text => `<th scope="col">${escapeText(text)}</th>`).join('')
  return `<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`
}
