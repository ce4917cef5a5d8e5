/** The repository as files: for tests that compare its parts with each other. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Absolute, with a slash at its end. */
export const repository = fileURLToPath(new URL('../..', import.meta.url))

/** The text of a file, by its path from the root. */
export function readText(path: string): string {
  return readFileSync(join(repository, path), 'utf8')
}

/** Paths from the root, sorted. */
export function listFiles(pattern: string): string[] {
  return globSync(pattern, { cwd: repository }).sort()
}

/** Runs a script of a package with this Node to its end. */
export async function runTool(
  script: string,
  args: readonly string[],
  options: { cwd?: string } = {}
): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [join(repository, 'node_modules', script), ...args], {
    cwd: options.cwd ?? repository,
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(child, 'close')
  return { code: child.exitCode, output: Buffer.concat(chunks).toString() }
}
