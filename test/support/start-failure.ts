/** Starts the built broker where it cannot start, and looks at how it says so. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { atEnd } from './clean-up.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A broker that starts after all is ended by the test's clean-up, and fails the test by its missing exit code. */
const START_MS_MAX = 20_000

/** Flags of a small broker on free ports. */
export function smallFlags(dataDir: string, flags: Readonly<Record<string, string>> = {}): string[] {
  const all = {
    '--data-dir': dataDir,
    '--bind': '127.0.0.1:0',
    '--bind-binary': '127.0.0.1:0',
    '--journal-slot-bytes': '64MiB',
    '--journal-first-slot-bytes': '1MiB',
    '--journal-fill-ahead-bytes': '0',
    ...flags
  }
  return Object.entries(all).flat()
}

/**
 * Runs `millrace serve` to its end and insists on one line for the user and a code other than 0.
 * Lines of the log, which are JSON, may stand before it; a stack trace outside of them is a second line.
 * @returns the line, without its end.
 */
export async function failToStart(
  t: TestContext,
  args: readonly string[],
  { code = 1, env = {} }: { readonly code?: number; readonly env?: Readonly<Record<string, string>> } = {}
): Promise<string> {
  const child = spawn(process.execPath, [`${root}dist/src/main.js`, 'serve', ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env }
  })
  atEnd(t, () => child.kill('SIGKILL'))
  const timer = setTimeout(() => child.kill('SIGKILL'), START_MS_MAX)
  const chunks: Buffer[] = []
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(child, 'close')
  clearTimeout(timer)
  const text = Buffer.concat(chunks).toString()
  assert.equal(child.exitCode, code, text)
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('{'))
  assert.equal(lines.length, 1, text)
  const [line = ''] = lines
  assert.match(line, /^millrace: /)
  return line
}
