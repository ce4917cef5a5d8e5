/** What the rows on the command line run against: a broker that asks for keys, and the built command as people start it. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startGuarded, type TestKey } from '../support/access.ts'
import { repository } from '../support/repository.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

export interface CliStage {
  readonly url: string
  readonly admin: TestKey
  /** For files that commands read. */
  readonly folder: string
  /** The same environment as `run` gives. */
  readonly env: Readonly<Record<string, string>>
}

export interface CliOutcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The topic `orders` of three partitions; `cold` with segments in cold storage; the files lines.txt and key.txt. */
export async function startCliStage(t: TestContext): Promise<CliStage> {
  const folder = temporaryDirectory(t)
  const flags = { '--cold-storage-dir': temporaryDirectory(t), '--segment-delete-grace': '10ms' }
  const { broker, admin } = await startGuarded(t, { flags })
  await admin.api.createTopic('cold', 1, { segment_bytes: 100_000, retention_bytes: 50_000 })
  for (let i = 0; i < 40; i++) await admin.api.produce('cold', [{ value: 'x'.repeat(20_000), partition: 0 }])
  assert.equal((await admin.api.post('/admin/run-retention', '')).status, 204)
  writeFileSync(join(folder, 'lines.txt'), '{"a": 1}\n\n  two words  \nlast')
  writeFileSync(join(folder, 'schema.json'), '{"type":"object"}')
  writeFileSync(join(folder, 'key.txt'), ` ${admin.secret} \nsecond line\n`)
  return { url: broker.url, admin, folder, env: { ES_BROKER: broker.url, ES_AUTH: admin.secret } }
}

/** Runs src/bin.js with these words, parted by blanks; a word in single quotes may have blanks. */
export async function run(
  { env, folder }: Pick<CliStage, 'env' | 'folder'>,
  line: string,
  further: Readonly<Record<string, string>> = {}
): Promise<CliOutcome> {
  const words = (line.match(/'[^']*'|\S+/g) ?? []).map(word => word.replace(/^'(.*)'$/, '$1'))
  const { MILLRACE_BROKER: _b, MILLRACE_KEY: _k, ...inherited } = process.env
  const child = spawn(process.execPath, [join(repository, 'src/bin.js'), ...words], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited, ...env, ...further }
  })
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  await once(child, 'close')
  return { code: child.exitCode, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }
}
