/**
 * krafka: a client in Rust without a C library. Needs Rust, and builds for minutes, so its checks are one program. They are in
 * programs/krafka.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkNames, type KafkaClientUnderTest } from './client.ts'
import { programChecks } from './program.ts'

const run = promisify(execFile)
/** All of its crates are compiled, on two cores. */
const BUILD_TIMEOUT_MS = 1_200_000
const sources = fileURLToPath(new URL('programs/krafka', import.meta.url))

/** The checks begin when it is prepared, and find the command then. */
export function krafkaClient(): KafkaClientUnderTest {
  const command: [string, ...string[]] = ['']
  return {
    name: 'krafka',
    isExtra: true,
    async prepare(folder) {
      try {
        await run('cargo', ['build', '--locked', '--target-dir', folder], { cwd: sources, timeout: BUILD_TIMEOUT_MS })
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
        throw error
      }
      command[0] = join(folder, 'debug/checks')
      return (
        /krafka = .*"=([\d.]+)"/.exec(readFileSync(join(sources, 'Cargo.toml'), 'utf8'))?.[1] ?? 'of an unknown version'
      )
    },
    checks: programChecks(command, checkNames)
  }
}
