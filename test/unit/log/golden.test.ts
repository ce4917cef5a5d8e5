/**
 * The journal of test/fixtures/journal-v1 is read for ever, and this version still writes it byte for byte. Its files
 * are never changed; another format version gets files of its own.
 */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createRealDisk } from '../../../src/disk/real-disk.ts'
import { buildGolden, goldenRecords, goldenTopics, openGolden } from '../../support/log-golden.ts'
import { openLog } from '../../support/log-harness.ts'
import { plainSlot } from '../../support/log-slot-bytes.ts'

const folder = fileURLToPath(new URL('../../fixtures/journal-v1/', import.meta.url))
const slotNames = readdirSync(folder).filter(name => name.endsWith('.slot'))
const files = new Map(slotNames.map(name => [name, readFileSync(join(folder, name))]))
const records: unknown = JSON.parse(readFileSync(join(folder, 'records.json'), 'utf8'))

describe('a journal written in format version 1', () => {
  it('opens and serves its records', () => {
    const { log } = openGolden(files, [])
    assert.deepEqual(goldenRecords(log), records)
    const { cutGroups, copiedGroups, quarantinedRuns, groups, slots } = log.report
    assert.deepEqual([cutGroups, copiedGroups, quarantinedRuns, groups, slots], [0, 0, 0, 8, 3])
  })

  it('opens from the file system as well', t => {
    const directory = mkdtempSync(join(tmpdir(), 'millrace-golden-'))
    t.after(() => rmSync(directory, { recursive: true }))
    const journal = join(directory, 'journal', '000')
    cpSync(folder, journal, { recursive: true })
    const log = openLog(createRealDisk(), { directory: journal })
    for (const topic of goldenTopics) log.table.open(topic)
    assert.deepEqual(goldenRecords(log), records)
    log.close()
  })

  it('is still written byte for byte', () => {
    const built = buildGolden()
    assert.deepEqual([...built.keys()], slotNames)
    for (const [name, bytes] of built) {
      const golden = files.get(name) ?? Buffer.alloc(0)
      const differs = bytes.findIndex((byte, at) => byte !== golden[at])
      assert.deepEqual([bytes.length, differs], [golden.length, -1], `${name} differs at byte ${differs}`)
    }
  })

  it('is what docs/formats.md draws: a reader written from the drawing finds headers and groups', () => {
    const slots = [...files.values()].map(plainSlot)
    assert.deepEqual(
      slots.map(slot => [
        slot.version,
        slot.shard,
        slot.sequence,
        slot.previousSequence,
        slot.previousLastGroup,
        slot.placementEpoch
      ]),
      [
        [1, 0, 1, 0, 0, 5],
        [1, 0, 2, 1, 4, 5],
        [1, 0, 3, 2, 5, 5]
      ]
    )
    assert.deepEqual(
      slots.map(slot => slot.groups.map(group => group.number)),
      [[1, 2, 3, 4], [5], [6, 7, 8]]
    )
    // Group 7 begins the new leader epoch of all three partitions.
    const epochs = slots[2]?.groups[1]?.entries.map(entry => [
      entry.kind,
      entry.handle,
      entry.baseOffset,
      entry.leaderEpoch
    ])
    assert.deepEqual(epochs, [
      [3, 1, 12, 1],
      [3, 2, 6, 1],
      [3, 3, 12, 1]
    ])
  })
})
