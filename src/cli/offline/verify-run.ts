/** Runs `verify` and prints its report, with a progress bar on a terminal for long work. */
import type { OptionTexts } from '../common-options.ts'
import { exitCodes, print, type CliIo, type ExitCode } from '../io.ts'
import { openProgress } from '../progress.ts'
import type { DataDirectory } from './data-directory.ts'
import { withDataDirectory } from './offline-run.ts'
import { planVerification, type Plan, type Verification } from './verification.ts'
import { formatVerification, verificationJson } from './verify-report.ts'

/** Less is checked before anyone looks. */
const PROGRESS_BYTES = 64 * 1024 * 1024

/** @returns ok, refused if damage was found, unreachable if the directory cannot be opened. */
export function runVerify(options: OptionTexts, io: CliIo): Promise<ExitCode> {
  const repairs = options['repair'] === true
  const verify = async (directory: DataDirectory): Promise<ExitCode> => {
    const startedMs = performance.now()
    const verification = await runWithProgress(planVerification(directory, repairs), io)
    const seconds = (performance.now() - startedMs) / 1000
    const format = options['json'] === true ? verificationJson : formatVerification
    await print(io.stdout, format(verification, seconds))
    return verification.findings.damageCount === 0 ? exitCodes.ok : exitCodes.refused
  }
  return withDataDirectory(options, io, verify, repairs)
}

async function runWithProgress(plan: Plan, io: CliIo): Promise<Verification> {
  const isLong = plan.totalBytes >= PROGRESS_BYTES && io.stderr.isTTY === true
  const progress = isLong ? await openProgress(io.stderr, plan.totalBytes) : null
  try {
    return plan.run((doneBytes, recordCount) => progress?.update(doneBytes, recordCount))
  } finally {
    progress?.close()
  }
}
