/**
 * The offline tools on what a real broker leaves: refused while it runs, and true to every acknowledged record after a
 * kill and after a clean stop, without changing a file.
 */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runMillrace, spawnBroker } from '../support/broker.ts'
import { range } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'

interface Row {
  readonly offset: number
  readonly key: string
  readonly value: string
}

/** Path, size and time of change of everything but the lock's own two files. */
function snapshot(dataDir: string): readonly string[] {
  return readdirSync(dataDir, { recursive: true })
    .map(String)
    .filter(path => !/^lock\.(db|pid)$/.test(path))
    .sort()
    .map(path => {
      const { size, mtimeMs } = statSync(join(dataDir, path))
      return `${path} ${size} ${mtimeMs}`
    })
}

const valueOf = (i: number): string => `value ${i} ${'ü'.repeat(i % 50)}`

test('a data directory of a broker with three shards', async t => {
  const broker = await spawnBroker(t, { variant: { engine: 'node', shards: 3 } })
  const { dataDir } = broker
  const api = new HttpApi(broker.url)
  await api.createTopic('orders', 5)
  await api.createTopic('gone', 2)
  const records = range(2_000).map(i => ({ key: `key ${i}`, value: valueOf(i), partition: i % 5 }))
  for (let start = 0; start < records.length; start += 250)
    await api.produce('orders', records.slice(start, start + 250))
  await api.produce('gone', [{ value: 'soon', partition: 0 }])
  assert.equal((await api.call('DELETE', '/topics/gone')).status, 200)

  /** Verifies, and reads every record back. */
  const checks = async (): Promise<void> => {
    const before = snapshot(dataDir)
    const verified = await runMillrace(['verify', '--data-dir', dataDir])
    assert.deepEqual([verified.code, verified.stderr], [0, ''], verified.stdout)
    assert.match(verified.stdout, /\n +all .* 2001 +\d+\n/)
    for (const partition of range(5)) {
      const words = ['--topic', 'orders', '--partition', String(partition), '--limit', '1000', '--json']
      const { code, stdout, stderr } = await runMillrace(['inspect', 'records', '--data-dir', dataDir, ...words])
      assert.deepEqual([code, stderr], [0, ''])
      const rows = stdout
        .trim()
        .split('\n')
        .map(line => JSON.parse(line) as Row)
      assert.deepEqual(
        rows.map(({ offset, key, value }) => ({ offset, key, value })),
        range(400).map(offset => {
          const i = offset * 5 + partition
          return { offset, key: `key ${i}`, value: valueOf(i) }
        })
      )
    }
    assert.deepEqual(snapshot(dataDir), before)
  }

  await t.test('is refused while the broker runs, and the broker does not notice', async () => {
    for (const words of [['verify'], ['inspect', 'topics']]) {
      const { code, stdout, stderr } = await runMillrace([...words, '--data-dir', dataDir])
      assert.deepEqual([code, stdout], [3, ''])
      assert.match(
        stderr,
        new RegExp(
          `^millrace: data directory \\S+ is in use by another millrace process \\(pid ${broker.child.pid}\\)\\n$`
        )
      )
    }
    assert.equal((await api.consumeAll('orders', 0)).length, 400)
  })
  await t.test('is sound after a kill, with every acknowledged record in it', async () => {
    await broker.kill('SIGKILL')
    await checks()
  })
  await t.test('is sound after the start behind it and a clean stop', async () => {
    const again = await spawnBroker(t, { dataDir, variant: { engine: 'node', shards: 3 } })
    assert.equal((await again.kill('SIGTERM')).code, 0)
    await checks()
    const topics = await runMillrace(['inspect', 'topics', '--data-dir', dataDir])
    assert.match(topics.stdout, /^orders id=1 .*\ngone id=2 .* deleted\n$/)
  })
  await t.test('is reported damaged where a byte is turned, and a broker passes over just those offsets', async () => {
    const path = findFile(dataDir, 'key 1000')
    const bytes = readFileSync(path)
    const at = bytes.indexOf('key 1000')
    bytes.writeUInt8(bytes.readUInt8(at) ^ 4, at)
    writeFileSync(path, bytes)
    const { code, stdout } = await runMillrace(['verify', '--json', '--data-dir', dataDir])
    assert.equal(code, 1)
    const { damage } = JSON.parse(stdout) as { damage: Readonly<Record<string, number | string>>[] }
    assert.equal(damage.length, 1, stdout)
    const [found] = damage
    assert.ok(found !== undefined && Number(found['start_byte']) <= at && at < Number(found['end_byte']), stdout)
    assert.deepEqual([found['topic'], found['partition']], ['orders', 0])
    const again = await spawnBroker(t, { dataDir, variant: { engine: 'node', shards: 3 } })
    const [first, last] = [Number(found['first_offset']), Number(found['last_offset'])]
    const { records, skipped } = await new HttpApi(again.url).consume('orders', 0, `offset=${first}&max_records=1`)
    assert.deepEqual([skipped?.requested, skipped?.earliest], [first, last + 1])
    assert.ok(
      records.every(({ offset }) => offset === last + 1),
      JSON.stringify(records)
    )
  })
})

/** The slot file that has this text. */
function findFile(dataDir: string, text: string): string {
  const names = readdirSync(join(dataDir, 'journal'), { recursive: true }).map(name =>
    join(dataDir, 'journal', String(name))
  )
  const found = names.find(name => name.endsWith('.slot') && readFileSync(name).includes(text))
  return found ?? assert.fail(`no slot has '${text}'`)
}

test('a data directory that retention and compaction have worked on', async t => {
  const flags = { '--segment-delete-grace': '10ms' }
  const broker = await spawnBroker(t, { variant: { engine: 'node', shards: 3 }, flags })
  const { dataDir } = broker
  const api = new HttpApi(broker.url)
  await api.createTopic('latest', 1, { segment_bytes: 1500, cleanup_policy: 'compact' })
  await api.createTopic('events', 1, { segment_bytes: 1500, retention_bytes: 4000 })
  for (let i = 0; i < 60; i++) {
    await api.produce('latest', [{ key: `k${i % 7}`, value: `${i} `.padEnd(200, 'x'), partition: 0 }])
    await api.produce('events', [{ value: `${i} `.padEnd(200, 'x'), partition: 0 }])
  }
  assert.equal((await api.post('/admin/run-retention', '')).status, 204)
  assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
  const served = { latest: await api.consumeAll('latest', 0), events: await api.consumeAll('events', 0) }
  assert.ok(served.latest.length < 40 && served.events.length < 40)
  assert.equal((await broker.kill('SIGTERM')).code, 0)

  const before = snapshot(dataDir)
  const verified = await runMillrace(['verify', '--data-dir', dataDir])
  assert.deepEqual([verified.code, verified.stderr], [0, ''], verified.stdout)
  for (const [topic, records] of Object.entries(served)) {
    const words = ['--topic', topic, '--partition', '0', '--offset', String(records[0]?.offset), '--json']
    const { stdout } = await runMillrace(['inspect', 'records', '--data-dir', dataDir, '--limit', '1000', ...words])
    const rows = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Row)
    assert.deepEqual(
      rows.map(({ offset, value }) => [offset, value]),
      records.map(({ offset, value }) => [offset, value])
    )
  }
  const segments = await runMillrace([
    'inspect',
    'segments',
    '--data-dir',
    dataDir,
    '--topic',
    'latest',
    '--partition',
    '0'
  ])
  assert.match(segments.stdout, / compaction=\d+\n {2}topics\/latest~1\/0\/c\d+\/0{20}\.log /)
  assert.deepEqual(snapshot(dataDir), before)
})
