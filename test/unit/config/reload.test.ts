/** What a SIGHUP changes, and what it says of the rest. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { planReload, reloadable } from '../../../src/config/reload.ts'
import { resolveSettings, type ConfigInput } from '../../../src/config/resolve.ts'
import { schema } from '../../../src/config/schema.ts'
import type { Settings } from '../../../src/config/settings.ts'

const settingsOf = (flags: ConfigInput['flags']): Settings => {
  const resolution = resolveSettings({ flags, unknownFlags: [], env: {}, file: null })
  assert.ok(resolution.ok)
  return resolution.settings
}

test('what can change takes its new value, and what needs a restart keeps the old one and is named', () => {
  const before = settingsOf({ '--allowed-host': 'a', '--max-fetch-records': '5' })
  const wanted = settingsOf({ '--allowed-host': ['a', 'b'], '--max-fetch-records': '6', '--shards': '2' })
  const { settings, changed, needRestart } = planReload(before, wanted)
  assert.deepEqual(settings, { ...before, allowedHost: ['a', 'b'] })
  assert.deepEqual([changed, needRestart], [['--allowed-host'], ['--shards', '--max-fetch-records']])
})

test('other TLS files are taken, and to turn TLS on or off needs a restart', () => {
  const off = settingsOf({})
  const on = settingsOf({ '--tls-cert': 'a', '--tls-key': 'b' })
  const moved = settingsOf({ '--tls-cert': 'c', '--tls-key': 'b' })
  assert.deepEqual(planReload(on, moved).changed, ['--tls-cert'])
  assert.equal(planReload(on, moved).settings.tlsCert, 'c')
  for (const [before, wanted] of [
    [off, on],
    [on, off]
  ] as const) {
    const plan = planReload(before, wanted)
    assert.deepEqual([plan.changed, plan.needRestart], [[], ['--tls-cert', '--tls-key']])
    assert.deepEqual(plan.settings, before)
  }
})

test('without a change nothing is named', () => {
  const settings = settingsOf({ '--cors-origin': 'https://app.example' })
  assert.deepEqual(planReload(settings, { ...settings }), { settings, changed: [], needRestart: [] })
})

test('docs/operations.md lists exactly the settings that can change', () => {
  const text = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8')
  const [, list = ''] = /These settings take effect on SIGHUP[^\n]*\n([^\n]*)/.exec(text) ?? []
  const listed = [...list.matchAll(/`(--[a-z-]+)`/g)].map(match => match[1])
  assert.deepEqual(
    listed,
    reloadable.map(field => schema[field].flag)
  )
})
