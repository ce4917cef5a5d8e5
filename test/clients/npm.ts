/** Packages that are no dependencies of the project: a run installs them into a folder of its own. */
import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const INSTALL_TIMEOUT_MS = 120_000
/** What npm says where it cannot reach its registry. */
const UNREACHABLE = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH/

/** @param packages with their versions. @returns `require` as from that folder; null: the registry cannot be reached. */
export async function installPackages(folder: string, packages: readonly string[]): Promise<NodeJS.Require | null> {
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline', '--fetch-retries=1']
  try {
    await run('npm', ['install', ...options, '--prefix', folder, ...packages], { timeout: INSTALL_TIMEOUT_MS })
  } catch (error) {
    if (error instanceof Error && UNREACHABLE.test(error.message)) return null
    throw error
  }
  return createRequire(join(folder, 'package.json'))
}
