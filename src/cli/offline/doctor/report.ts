/** Findings as people read them. Pure. */
import type { Finding, Level } from './finding.ts'

const levels: readonly Level[] = ['ok', 'warn', 'bad', 'unknown']

/** How many findings there are of each level. */
export function countLevels(findings: readonly Finding[]): Readonly<Record<Level, number>> {
  const counts = { ok: 0, warn: 0, bad: 0, unknown: 0 }
  for (const { level } of findings) counts[level]++
  return counts
}

/** A line for each finding, what to change below it, and the counts. */
export function formatFindings(findings: readonly Finding[]): string {
  const levelWidth = Math.max(...levels.map(level => level.length))
  const nameWidth = Math.max(...findings.map(({ name }) => name.length))
  const lines = findings.flatMap(({ level, name, seen, change }) => {
    const line = `${level.padEnd(levelWidth)}  ${name.padEnd(nameWidth)}  ${seen}`
    return change === null ? [line] : [line, `${' '.repeat(levelWidth + nameWidth + 4)}→ ${change}`]
  })
  const counts = countLevels(findings)
  const summary = levels.map(level => `${counts[level]} ${level}`).join(', ')
  return `${[...lines, '', summary].join('\n')}\n`
}
