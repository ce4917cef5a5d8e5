/** franz-go: newest versions of every API, from Go. Needs Go, which fetches its modules. The checks are in programs/franz-go. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkNames, type KafkaClientUnderTest } from './client.ts'
import { programChecks } from './program.ts'

const run = promisify(execFile)
/** A first build fetches the modules. */
const BUILD_TIMEOUT_MS = 600_000
const sources = fileURLToPath(new URL('programs/franz-go', import.meta.url))

/** The checks begin when it is prepared, and find the command then. */
export function franzGoClient(): KafkaClientUnderTest {
  const command: [string, ...string[]] = ['']
  return {
    name: 'franz-go',
    isExtra: true,
    async prepare(folder) {
      const program = join(folder, 'checks')
      try {
        await run('go', ['build', '-o', program, '.'], { cwd: sources, timeout: BUILD_TIMEOUT_MS })
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
        throw error
      }
      command[0] = program
      return /franz-go v(\S+)/.exec(readFileSync(join(sources, 'go.mod'), 'utf8'))?.[1] ?? 'of an unknown version'
    },
    checks: programChecks(command, checkNames)
  }
}
