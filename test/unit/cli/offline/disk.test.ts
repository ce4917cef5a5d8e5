/** What lies between the offline tools and the disk: nothing is changed, and one bad file does not hide the others. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../../src/base/assert.ts'
import { readOnly } from '../../../../src/cli/offline/read-only-disk.ts'
import { planVerification } from '../../../../src/cli/offline/verification.ts'
import { DiskError, type DiskFile } from '../../../../src/disk/disk.ts'
import type { FaultPoint } from '../../../../src/disk/faults.ts'
import { testDirectory } from '../../../support/log-harness.ts'
import { diskOf, takeImage } from '../../../support/log-image.ts'
import { makeSample } from '../../../support/log-sample.ts'
import { directoryOver, imageOf, topicOf } from './offline-directories.ts'

const sample = makeSample()
const store = imageOf([topicOf(1, 'orders', 1, 3), topicOf(2, 'notes', 10, 1)])

describe('a file that cannot be read', () => {
  it('is reported, and the other slots are still checked', () => {
    const directory = directoryOver(sample.image, store)
    let opened = 0
    const disk = {
      ...directory.disk,
      open: (point: FaultPoint, path: string): DiskFile => {
        // Its header can be read, the rest not.
        if (path.endsWith(sample.closedFile) && ++opened === 2) throw new DiskError('EIO', point, 'EIO')
        return directory.disk.open(point, path)
      }
    }
    const { findings, shards } = planVerification({ ...directory, disk }).run(() => undefined)
    const unread = findings.damage.filter(finding => finding.problem === 'it cannot be read: EIO')
    assert.deepEqual(
      unread.map(finding => finding.file),
      [`journal/000/${sample.closedFile}`]
    )
    assert.equal(shards[0]?.groups, sample.groups.filter(group => group.file !== sample.closedFile).length)
  })
})

describe('the disk of the offline tools', () => {
  it('refuses whatever would change it', () => {
    const inner = diskOf(sample.image)
    const disk = readOnly(inner)
    const path = `${testDirectory}/${sample.openFile}`
    const file = disk.open('slot.open', path)
    const changes = [
      () => disk.create('slot.create', `${testDirectory}/new`),
      () => disk.remove('slot.remove', path),
      () => disk.rename('slot.rename', path, `${path}2`),
      () => disk.makeDirectory('journal.directory', `${testDirectory}/new`),
      () => disk.syncDirectory('journal.directory-sync', testDirectory),
      () => file.write('group.write', Buffer.alloc(1), 0, 1, 0),
      () => file.truncate('slot.truncate', 0),
      () => file.sync('group.sync')
    ]
    for (const change of changes) assert.throws(change, BugError)
    assert.deepEqual(takeImage(inner), sample.image)
  })
})
