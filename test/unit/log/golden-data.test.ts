/**
 * The data directory of test/fixtures/data-v1 is read for ever, and this version still writes it byte for byte. Its
 * files are never changed; another format version gets files of its own.
 */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createRealDisk } from '../../../src/disk/real-disk.ts'
import { GOLDEN_EPOCH, buildGoldenData, goldenDataContents, openGoldenData } from '../../support/log-golden-data.ts'
import { openLog } from '../../support/log-harness.ts'
import { diskOfTree } from '../../support/log-tree.ts'

const folder = fileURLToPath(new URL('../../fixtures/data-v1/', import.meta.url))
const contents: unknown = JSON.parse(readFileSync(join(folder, 'contents.json'), 'utf8'))
const files = new Map(
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name !== 'contents.json')
    .map(({ parentPath, name }) => join(parentPath, name))
    .map(path => [`/data/${relative(folder, path)}`, readFileSync(path)])
)

describe('a data directory with settled data, written in format version 1', () => {
  it('has every kind of file', () => {
    const kinds = [...files.keys()].map(path => path.replace(/.*[/.]/, ''))
    assert.deepEqual(
      [...new Set(kinds)].sort(),
      ['blocks', 'bytes', 'index', 'log', 'manifest', 'pack', 'slot', 'timeindex'].sort()
    )
  })

  it('opens and serves its records, its damaged range and its producer', () => {
    assert.deepEqual(goldenDataContents(openGoldenData(diskOfTree(files), ['next one'])), contents)
  })

  it('opens from the file system as well', t => {
    const directory = mkdtempSync(join(tmpdir(), 'millrace-golden-'))
    t.after(() => rmSync(directory, { recursive: true }))
    cpSync(folder, directory, { recursive: true })
    const place = { directory: join(directory, 'journal', '000'), dataDirectory: directory }
    const log = openLog(createRealDisk(), { ...place, slotBytes: 64 * 1024, placementEpoch: GOLDEN_EPOCH })
    log.table.open({ firstHandle: 1, partitionCount: 3, segmentBytes: 9000 })
    assert.deepEqual(goldenDataContents(log), contents)
    log.close()
  })

  it('is still written byte for byte', () => {
    const built = buildGoldenData()
    assert.deepEqual([...built.keys()].sort(), [...files.keys()].sort())
    for (const [path, bytes] of built) {
      const golden = files.get(path) ?? Buffer.alloc(0)
      const differs = bytes.findIndex((byte, at) => byte !== golden[at])
      assert.deepEqual([bytes.length, differs], [golden.length, -1], `${path} differs at byte ${differs}`)
    }
  })
})
