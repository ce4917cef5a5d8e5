/**
 * `npm test`: runs every *.test.ts under test/ with node:test, all of them from one list, and ends with its exit code.
 * `--long` (npm run test:long) sets MILLRACE_LONG=1: the same suites with their long counts.
 * Further arguments select files by a part of their path.
 */
import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A test that hangs fails by name instead of stopping everything; the long counts take their time. */
const TEST_TIMEOUT_MS = process.argv.includes('--long') ? 3_600_000 : 180_000

const root = fileURLToPath(new URL('../..', import.meta.url))
const wanted = process.argv.slice(2).filter(argument => !argument.startsWith('--'))
const isLong = process.argv.includes('--long')
const files = globSync('test/**/*.test.ts', { cwd: root })
  .filter(file => wanted.length === 0 || wanted.some(part => file.includes(part)))
  .sort()
if (files.length === 0) {
  console.error(`no test file matches ${wanted.join(', ')}`)
  process.exit(1)
}
// Hundreds of processes load the same modules: what one of them has compiled the next takes over.
const compileCache = { NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache') }
// Two at once: the suites start brokers and measure nothing, but each broker has threads of its own.
const child = spawn(
  process.execPath,
  ['--test', '--test-concurrency=2', `--test-timeout=${TEST_TIMEOUT_MS}`, ...files],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...compileCache, ...process.env, ...(isLong ? { MILLRACE_LONG: '1' } : {}) }
  }
)
child.on('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 1))
