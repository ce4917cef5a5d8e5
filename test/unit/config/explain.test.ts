/** What `config explain` says, and that the shipped file and the documentation say the same as the table. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { explain, formatExplanation } from '../../../src/config/explain.ts'
import { memoryBudget } from '../../../src/config/memory-budget.ts'
import { resolveSettings, type ConfigInput } from '../../../src/config/resolve.ts'
import { envNameOf, schema, settingFields, showFallback, tomlKeyOf } from '../../../src/config/schema.ts'
import { limits } from '../../../src/model/limits.ts'

const shippedPath = fileURLToPath(new URL('../../../config/millrace.toml', import.meta.url))
const shipped = readFileSync(shippedPath, 'utf8')
const documentation = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8')

function resolve(input: Partial<ConfigInput>) {
  const resolution = resolveSettings({ flags: {}, unknownFlags: [], env: {}, file: null, ...input })
  assert.ok(resolution.ok, resolution.ok ? '' : resolution.faults.join('\n'))
  return resolution
}

test('explain shows each value in effect with its source', () => {
  const { settings, sources } = resolve({ flags: { '--shards': '3' }, env: { MILLRACE_MAX_FETCH_BYTES: '4MiB' } })
  const lines = formatExplanation(settings, sources).split('\n')
  const rowOf = (key: string) => lines.find(line => line.startsWith(`${key} `))?.split(/ {2,}/)
  assert.deepEqual(rowOf('shards'), ['shards', '3', 'flag --shards'])
  assert.deepEqual(rowOf('max_fetch_bytes'), ['max_fetch_bytes', '4 MiB', 'env MILLRACE_MAX_FETCH_BYTES'])
  assert.deepEqual(rowOf('bind_binary'), ['bind_binary', 'off', 'default'])
  for (const field of settingFields) assert.ok(rowOf(tomlKeyOf(field)), `no row of ${field}`)
})

test('explain as JSON has every setting once, in its unit', () => {
  const { settings, sources } = resolve({})
  const { settings: rows, shards } = explain(settings, sources, 4)
  assert.deepEqual(rows.map(row => row.key).sort(), settingFields.map(tomlKeyOf).sort())
  assert.equal(shards, 3)
  const slot = rows.find(row => row.key === 'journal_slot_bytes')
  assert.deepEqual([slot?.value, slot?.unit, slot?.source], [134_217_728, 'bytes', 'default'])
})

const MIB = 1024 * 1024

/** Bytes of each row with three shards, by name. */
function rowsOf(flags: Record<string, string>): Record<string, number> {
  const { rows } = memoryBudget(resolve({ flags }).settings, 3)
  return Object.fromEntries(rows.map(({ name, totalBytes }) => [name, totalBytes]))
}

test('the memory budget multiplies what each shard has and adds up to its total', () => {
  const { settings } = resolve({ flags: { '--bind-binary': '127.0.0.1:9001' } })
  const one = memoryBudget(settings, 1)
  const three = memoryBudget(settings, 3)
  const perShard =
    settings.requestRingBytes + settings.readRingBytes + settings.replyRingBytes + settings.encodeBufferBytes
  assert.equal(
    three.totalBytes - one.totalBytes,
    2 * (perShard + limits.groupBytesTarget + 2 * limits.inflatedBatchBytesMax)
  )
  assert.equal(
    one.totalBytes,
    one.rows.reduce((sum, row) => sum + row.eachBytes * row.count, 0)
  )
  assert.ok(one.totalBytes > perShard + settings.requestMemoryBytes + settings.replyMemoryBytes)
})

test('the memory budget counts what large requests take beside the rings and buffers', () => {
  const apart = 'groups larger than their encode buffer (per shard, estimate)'
  const usual = rowsOf({ '--bind-binary': '127.0.0.1:9001' })
  assert.deepEqual([usual['large requests on their way to a shard'], usual[apart]], [64 * MIB, undefined])
  // An encode buffer of 8 MiB: a frame of 16 MiB, behind a group of 2 MiB, does not fit it.
  const small = { '--encode-buffer-bytes': '8MiB', '--request-memory-bytes': '40MiB' }
  const tight = rowsOf({ ...small, '--bind-binary': '127.0.0.1:9001' })
  assert.deepEqual([tight['large requests on their way to a shard'], tight[apart]], [10 * MIB, 3 * 18 * MIB])
  assert.equal(rowsOf(small)[apart], 3 * 12 * MIB)
})

test('the memory budget counts what the Kafka listener keeps, where there is one', () => {
  const kept = {
    'buffers kept for Kafka connections': 24 * MIB,
    'partitions of Kafka fetch sessions (estimate)': 20_000_000,
    'a batch that is inflated to look for its keys': 33 * MIB
  }
  const [on, off] = [rowsOf({ '--bind-kafka': '127.0.0.1:9092' }), rowsOf({})]
  assert.deepEqual({ ...on, ...kept }, on)
  for (const name of Object.keys(kept)) assert.equal(off[name], undefined, name)
  // What was noted before stays where the listener is off.
  const noted = 'what is noted beside committed offsets'
  assert.deepEqual([on[noted], off[noted]], [64 * MIB, 64 * MIB])
})

test('the shipped file starts the broker with ES01 and Kafka on and every other setting at its default', () => {
  const { settings } = resolve({ file: shippedPath })
  assert.deepEqual(settings, { ...resolve({}).settings, bindBinary: '127.0.0.1:9001', bindKafka: ['127.0.0.1:9092'] })
})

test('the shipped file explains every setting, and each commented value is the default', t => {
  const flowing = shipped.replaceAll('\n# ', ' ')
  for (const field of settingFields) {
    assert.match(shipped, new RegExp(`^# .+\\n(# )?${tomlKeyOf(field)} = `, 'm'), tomlKeyOf(field))
    assert.ok(flowing.includes(`${schema[field].text}. `), `the text of ${field} differs`)
    const { kind, later } = schema[field]
    const end = later ? ' Not in this version: another value than the default refuses to start.' : ''
    const line = `${schema[field].text}. Allowed: ${kind.allowed}.${end} `
    assert.ok(flowing.includes(line), `the range of ${field}, or whether it is refused, differs`)
    assert.ok(later || !flowing.includes(`${line}Not in this version`), `${field} is not refused`)
  }
  const folder = mkdtempSync(join(tmpdir(), 'millrace-shipped-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const uncommented = join(folder, 'all.toml')
  writeFileSync(uncommented, shipped.replace(/^# (?=[a-z_]+ = )/gm, ''))
  const { settings, sources } = resolve({ file: uncommented })
  assert.deepEqual(settings, resolve({ file: shippedPath }).settings)
  assert.deepEqual(
    settingFields.filter(field => sources[field].kind !== 'file'),
    []
  )
})

test('the documentation has flag, variable, default and range of every setting as the table has them', () => {
  const escape = (words: string) => words.replaceAll('|', '\\|').replaceAll('<', '&lt;')
  for (const field of settingFields) {
    const { flag, kind, text } = schema[field]
    const row = documentation.split('\n').find(line => line.startsWith(`| \`${tomlKeyOf(field)}\` |`))
    assert.ok(row, `no row of ${tomlKeyOf(field)}`)
    for (const word of [
      `\`${flag}\``,
      `\`${envNameOf(field)}\``,
      `| ${showFallback(field)} |`,
      escape(kind.allowed),
      escape(text)
    ]) {
      assert.ok(row.includes(word), `${tomlKeyOf(field)}: ${word} is not in: ${row}`)
    }
    assert.equal(row.includes('(*later*)'), schema[field].later !== undefined, row)
  }
})

test('the documentation names every fixed limit with its value, and none that does not exist', () => {
  const section = documentation.slice(documentation.indexOf('## Fixed limits'), documentation.indexOf('## Exit codes'))
  const documented = [...section.matchAll(/^\| `(\w+)` \| (\d+)/gm)].map(([, name, value]) => [name, Number(value)])
  assert.deepEqual(Object.fromEntries(documented), { ...limits })
})
