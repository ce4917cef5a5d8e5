/** `millrace doctor` on this machine: without a broker, beside one, and interrupted. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, watch, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startBroker } from '../support/broker.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { run } from '../unit/cli/terminal.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

interface Report {
  readonly findings: readonly { level: string; name: string; seen: string; change: string | null }[]
  readonly counts: Readonly<Record<string, number>>
  readonly disk: { readonly writtenBytes: number; readonly syncs: readonly { bytes: number; count: number }[] } | null
}

async function examine(words: readonly string[]): Promise<{ code: number; report: Report }> {
  const { code, stdout } = await run(['doctor', '--json', ...words])
  return { code, report: JSON.parse(stdout) as Report }
}

function levelOf({ findings }: Report, name: string): string {
  return findings.find(one => one.name === name)?.level ?? 'absent'
}

describe('millrace doctor', () => {
  test('puts the disk to work, tells it in every size, and leaves nothing behind', async t => {
    const folder = temporaryDirectory(t)
    const { code, report } = await examine(['--data-dir', join(folder, 'not/yet'), '--bind', '127.0.0.1:0'])
    assert.ok(report.disk !== null && report.disk.writtenBytes > 0)
    assert.deepEqual(
      report.disk.syncs.map(({ bytes }) => bytes),
      [4096, 262_144, 1_048_576]
    )
    assert.equal(levelOf(report, 'data directory'), 'ok')
    assert.equal(levelOf(report, 'HTTP port'), 'ok')
    assert.equal(code, report.counts['bad'] === 0 ? 0 : 1)
    assert.deepEqual(readdirSync(folder), [])
  })

  test('says that a broker runs, leaves its disk alone, and takes its ports for what they are', async t => {
    const broker = await startBroker(t)
    const address = broker.server.httpAddress
    const before = readdirSync(broker.dataDir).toSorted()
    const { report } = await examine(['--data-dir', broker.dataDir, '--bind', address])
    const running = report.findings.find(({ name }) => name === 'broker')
    assert.equal(running?.level, 'ok')
    assert.match(running.seen, /runs: .*in use/)
    assert.equal(report.disk, null)
    assert.equal(levelOf(report, 'disk speed'), 'unknown')
    assert.equal(levelOf(report, 'HTTP port'), 'ok')
    assert.deepEqual(readdirSync(broker.dataDir).toSorted(), before)
    const forced = await examine(['--data-dir', broker.dataDir, '--bind', address, '--force'])
    assert.ok(forced.report.disk !== null)
    const answer = await fetch(`${broker.url}/readyz`)
    assert.equal(answer.status, 200)
    await broker.stop()
    const stopped = await examine(['--data-dir', broker.dataDir, '--bind', address])
    assert.match(stopped.report.findings.find(({ name }) => name === 'broker')?.seen ?? '', /none runs; .* 1 shard/)
  })

  test('says of a directory that cannot be made what serve would say, and leaves nothing beside it', async t => {
    const folder = temporaryDirectory(t)
    const link = join(folder, 'link')
    symlinkSync(join(folder, 'nowhere'), link)
    for (const [path, seen] of [
      [link, `${link} is a link that leads nowhere`],
      [join(link, 'below'), `${link} is a link that leads nowhere`],
      [join(main, 'below'), `${main} is not a directory`],
      ['/proc/millrace', 'data directory /proc/millrace cannot be used: it does not exist']
    ] as const) {
      const { code, report } = await examine(['--data-dir', path, '--bind', '127.0.0.1:0'])
      const found = report.findings.find(({ name }) => name === 'data directory')
      assert.deepEqual([code, found?.level, found?.seen, report.disk], [1, 'bad', seen, null])
    }
    assert.deepEqual(readdirSync(folder), ['link'])
  })

  test('ends with 1 for a port that another process has, and for faults, and names all of them', async t => {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => new Promise(resolve => server.close(resolve)))
    const address = server.address()
    assert.ok(address !== null && typeof address === 'object')
    const folder = temporaryDirectory(t)
    const taken = await examine(['--data-dir', folder, '--bind', `127.0.0.1:${address.port}`])
    assert.deepEqual([taken.code, levelOf(taken.report, 'HTTP port')], [1, 'bad'])

    const file = join(folder, 'wrong.toml')
    writeFileSync(file, 'shards = 0\nretention = 5\n')
    const { code, stdout } = await run(['doctor', '--data-dir', folder, '--config', file])
    assert.equal(code, 1)
    assert.match(stdout, /^bad +configuration +unknown key .*retention; shards = 0 .*out of range/)
    assert.match(stdout, /→ Correct it/)
  })

  test('warns of a directory that others can read', async t => {
    const folder = join(temporaryDirectory(t), 'data')
    mkdirSync(folder)
    chmodSync(folder, 0o755)
    const { report } = await examine(['--data-dir', folder, '--bind', '127.0.0.1:0'])
    assert.equal(levelOf(report, 'data directory'), 'warn')
    assert.equal(statSync(folder).mode & 0o777, 0o755)
  })

  test('an interrupt while the disk works leaves no file and ends the process by that signal', async t => {
    const folder = temporaryDirectory(t)
    const began = new Promise<void>(resolve => {
      const watcher = watch(folder, (_, name) => {
        if (name?.startsWith('doctor-') === true) resolve()
      })
      t.after(() => watcher.close())
    })
    const child = spawn(process.execPath, [main, 'doctor', '--data-dir', folder], { stdio: 'ignore' })
    const ended = once(child, 'exit')
    await began
    child.kill('SIGINT')
    assert.deepEqual(await ended, [null, 'SIGINT'])
    assert.deepEqual(readdirSync(folder), [])
  })
})
