/** Packages that are no dependencies of the project: a run installs them into a folder of its own. */
import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const INSTALL_TIMEOUT_MS = 120_000
/**
 * Who has npm has what it installs: a registry that cannot be reached is a failure, or the clients would be missing unseen.
 *
 * @param packages with their versions. @returns `require` as from that folder.
 */
export async function installPackages(folder: string, packages: readonly string[]): Promise<NodeJS.Require> {
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline', '--fetch-retries=1']
  await run('npm', ['install', ...options, '--prefix', folder, ...packages], { timeout: INSTALL_TIMEOUT_MS })
  return createRequire(join(folder, 'package.json'))
}
