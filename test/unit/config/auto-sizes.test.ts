/** What auto comes to on machines of several sizes, and that a value which was set is kept. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { budgetBytes, openFilesMax, reserveBytes } from '../../../src/config/auto-sizes.ts'
import type { RawValue } from '../../../src/config/kinds.ts'
import { resolveSettings } from '../../../src/config/resolve.ts'
import type { Settings } from '../../../src/config/settings.ts'

const MIB = 1024 * 1024
const GIB = 1024 * MIB
const TIB = 1024 * GIB

function settingsOf(flags: Readonly<Record<string, RawValue>> = {}): Settings {
  const resolution = resolveSettings({ flags, unknownFlags: [], env: {}, file: null })
  assert.ok(resolution.ok, resolution.ok ? '' : resolution.faults.join('\n'))
  return resolution.settings
}

test('the journal budget of a large machine is 3 GiB, that of a smaller one follows its memory and its disk', () => {
  const settings = settingsOf()
  assert.equal(budgetBytes(settings, { memoryBytes: 64 * GIB, diskBytes: TIB }, 1), 3 * GIB)
  assert.equal(budgetBytes(settings, { memoryBytes: 16 * GIB, diskBytes: TIB }, 1), 2 * GIB)
  assert.equal(budgetBytes(settings, { memoryBytes: 64 * GIB, diskBytes: 20 * GIB }, 1), GIB)
})

test('the journal budget has room for four slots of each shard, whatever the machine or the setting', () => {
  const tiny = { memoryBytes: GIB, diskBytes: GIB }
  assert.equal(budgetBytes(settingsOf(), tiny, 3), 12 * 128 * MIB)
  const chosen = settingsOf({ '--journal-budget-bytes': '256MiB', '--journal-slot-bytes': '64MiB' })
  assert.equal(budgetBytes(chosen, tiny, 1), 256 * MIB)
  assert.equal(budgetBytes(chosen, tiny, 2), 512 * MIB)
})

test('a journal budget that was set is taken, also above what auto would allow', () => {
  const settings = settingsOf({ '--journal-budget-bytes': '10GiB' })
  assert.equal(budgetBytes(settings, { memoryBytes: GIB, diskBytes: 10 * GIB }, 1), 10 * GIB)
})

test('the disk reserve has room for the whole journal and one segment, which never exceeds 2 GiB', () => {
  assert.equal(reserveBytes(settingsOf(), GIB), GIB + 64 * MIB)
  assert.equal(reserveBytes(settingsOf({ '--segment-bytes': '1TiB' }), GIB), 3 * GIB - 1)
  assert.equal(reserveBytes(settingsOf({ '--disk-reserve-bytes': '0' }), GIB), 0)
})

test('a quarter of the descriptors go to data files, at least 64 and at most 4096', () => {
  const settings = settingsOf()
  assert.deepEqual(
    [64, 1_024, 1_025, 65_536, Infinity].map(descriptors => openFilesMax(settings, descriptors)),
    [64, 256, 256, 4_096, 4_096]
  )
  assert.equal(openFilesMax(settingsOf({ '--max-open-files': '100000' }), 1_024), 100_000)
})
