/**
 * `npm run bench`: reads the options, runs all cases round by round, prints and writes the report. Main thread; this
 * and demo.ts are the only files here that write to the terminal.
 * Must never: leave a broker or a data directory behind, also when it is interrupted.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { onInterrupt } from './interrupt.ts'
import { describeMachine, refuseMemoryFileSystem } from './machine.ts'
import { DiskCalm, prepareLimit } from './limit.ts'
import { OptionsError, helpText, parseOptions } from './options.ts'
import type { BenchOptions } from './options.ts'
import { orderOfRound, planCases } from './plan.ts'
import type { Case } from './plan.ts'
import { renderHtml } from './report/html.ts'
import { renderTable } from './report/table.ts'
import { compare } from './results.ts'
import type { BenchReport, CaseResult, RoundResult, StudyResult } from './results.ts'
import { runBrokerCase, runDiskCase } from './run-case.ts'
import type { RunContext } from './run-case.ts'
import { planStudies, runStudy } from './studies.ts'
import { runSustainedCase } from './sustained-case.ts'
import { formatBytes, formatCount, formatMs } from '../src/base/amounts.ts'

/** A data directory inside the working folder is named so that the repository ignores it. */
const WORK_PREFIX = 'bench-report-work-'

/** Runs the command line. @returns the exit code: 0 all measured, 1 a case failed, 2 wrong options. */
async function main(args: readonly string[]): Promise<number> {
  let options: BenchOptions
  try {
    options = parseOptions(args)
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error
    console.error(error.message)
    return 2
  }
  if (options.help) {
    console.log(helpText)
    return 0
  }
  const base = resolve(options.dataDir ?? '.')
  // A broker that runs elsewhere keeps its data elsewhere: only what is written here must be on a disk.
  const writesHere = options.broker === null || planCases(options).some(one => one.kind === 'disk')
  if (writesHere) refuseMemoryFileSystem(base)
  const workDir = mkdtempSync(join(base, WORK_PREFIX))
  const limitPath = join(workDir, 'limit.bin')
  const calm = new DiskCalm(limitPath)
  const context: RunContext = {
    ...{ options, workDir, limitPath, calm },
    ...{ current: null, others: new Set(), bytesPerSync: [], budgets: new Map() }
  }
  const release = onInterrupt(context.workDir, async () => {
    await Promise.all([context.current, ...context.others].map(async one => one?.kill()))
  })
  try {
    const report = await runAll(context, args)
    console.log(renderTable(report))
    if (options.jsonPath !== null) writeFileSync(options.jsonPath, `${JSON.stringify(report, null, 2)}\n`)
    if (options.htmlPath !== null) writeFileSync(options.htmlPath, renderHtml(report))
    const isWhole =
      report.cases.every(one => one.failures.length === 0) && report.studies.every(one => one.table !== null)
    return isWhole ? 0 : 1
  } finally {
    release()
    rmSync(workDir, { recursive: true, force: true })
  }
}

async function runAll(context: RunContext, args: readonly string[]): Promise<BenchReport> {
  const { options } = context
  const startedAt = new Date().toISOString()
  const cases = planCases(options)
  const rounds = new Map<string, (RoundResult | null)[]>(cases.map(one => [one.id, []]))
  const failures = new Map<string, string[]>(cases.map(one => [one.id, []]))
  const probesDisk = cases.length > 0 && (options.broker === null || cases.some(one => one.kind === 'disk'))
  if (probesDisk) await prepareLimit(context.limitPath)
  for (let round = 0; round < options.rounds; round++) {
    for (const one of orderOfRound(cases, round)) {
      progress(`round ${round + 1}/${options.rounds}  ${one.title}`)
      const result = await runCase(context, one, failures)
      rounds.get(one.id)?.push(result)
      progress(result === null ? '  failed' : `  ${roundText(result)}`)
    }
  }
  const studies: StudyResult[] = []
  for (const study of planStudies(options)) {
    progress(study.title)
    const result = await runStudy(study, context, progress)
    if (result.failure !== null) progress(`  failed: ${result.failure}`)
    studies.push(result)
  }
  const results: CaseResult[] = cases.map(one => ({
    case: one,
    rounds: rounds.get(one.id) ?? [],
    failures: failures.get(one.id) ?? []
  }))
  return {
    machine: describeMachine(context.workDir),
    command: `npm run bench -- ${args.join(' ')}`.trim(),
    durability:
      options.broker === null
        ? 'an acknowledgement follows fdatasync (--flush-every-records 1, the default)'
        : 'as the running broker is configured',
    startedAt,
    cases: results,
    comparisons: compare(results),
    studies,
    notes: []
  }
}

/** One case of one round; a failure is kept and the run goes on. */
async function runCase(
  context: RunContext,
  one: Case,
  failures: ReadonlyMap<string, string[]>
): Promise<RoundResult | null> {
  try {
    if (one.kind === 'disk') return await runDiskCase(context, one)
    const isLong = one.kind === 'sustained' || one.kind === 'cleaning'
    return isLong ? await runSustainedCase(context, one) : await runBrokerCase(context, one)
  } catch (error) {
    failures.get(one.id)?.push(error instanceof Error ? error.message : String(error))
    return null
  }
}

function roundText(result: RoundResult): string {
  const rate = `${formatCount(result.recordsPerSecond)} records/s, ${formatBytes(result.bytesPerSecond)}/s`
  return `${rate}, p50 ${formatMs(result.latency.p50Ms)} ms, p99 ${formatMs(result.latency.p99Ms)} ms`
}

/** Progress goes to stderr, so that stdout is the report alone. */
function progress(line: string): void {
  process.stderr.write(`${line}\n`)
}

process.exitCode = await main(process.argv.slice(2))
