/** Handles of settled files: bounded, and closed when their files go. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { SegmentFiles } from '../../../src/log/segment-files.ts'

const names = ['1.log', '10.log', '2.log', '3.log']

function openFiles(openMax: number): SegmentFiles {
  const disk = new SimulatedDisk()
  for (const name of names) disk.create('segment.create', `/data/${name}`).close()
  const files = new SegmentFiles(disk, '/data', openMax)
  for (const name of names) files.file(name)
  return files
}

describe('the handles of settled files', () => {
  it('are never more than allowed', () => {
    const files = openFiles(2)
    assert.equal(files.openCount, 2)
  })

  it('are closed for files that go, and for no others', () => {
    const files = openFiles(8)
    const going = files.file('1.log')
    const staying = files.file('10.log')
    files.forget(new Set(['1.log', '2.log', 'never-open.log']))
    assert.equal(files.openCount, 2)
    assert.throws(() => going.sizeBytes())
    assert.equal(staying.sizeBytes(), 0)
  })
})
