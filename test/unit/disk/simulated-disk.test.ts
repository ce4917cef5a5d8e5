import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseFaultPlan } from '../../../src/disk/fault-plan.ts'
import { PageMap } from '../../../src/disk/page-map.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { blocks, testDirectContract } from './direct-contract.ts'
import { contentOf, testDiskContract, writeFile } from './disk-contract.ts'

/** Small deterministic generator (xorshift): the same seed gives the same crashes. */
function randomFrom(seed: number): () => number {
  let state = seed | 0 || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 0x1_0000_0000
  }
}

/** Outcomes of `observe` over many crashes of disks made by `prepare`. */
function outcomes(prepare: () => SimulatedDisk, observe: (disk: SimulatedDisk) => string): string[] {
  const seen = new Set<string>()
  for (let seed = 1; seed <= 200; seed++) seen.add(observe(prepare().crash(randomFrom(seed * 7919))))
  return [...seen].sort()
}

const textOf = (disk: SimulatedDisk, path: string) =>
  disk.exists(path) ? contentOf(disk, path).toString('latin1').replaceAll('\0', '0') : 'absent'

/** A disk with /data/a = 'old', durable in name and content. */
function diskWithOldFile(options: { ignoreSync?: boolean; ignoreDirectorySync?: boolean } = {}): SimulatedDisk {
  const disk = new SimulatedDisk(options)
  const file = disk.create('slot.create', '/data/a')
  file.write('slot.fill', Buffer.from('old'), 0, 3, 0)
  file.sync('slot.fill-sync')
  disk.syncDirectory('journal.directory-sync', '/data')
  file.close()
  return disk
}

describe('the simulated disk', () => {
  testDiskContract(faults => ({ disk: new SimulatedDisk(faults === undefined ? {} : { faults }), root: '/data' }))

  testDirectContract(faults => ({ disk: new SimulatedDisk(faults === undefined ? {} : { faults }), root: '/data' }))

  test('has the free room that a test gives it, also after a crash', () => {
    const disk = new SimulatedDisk({ freeBytes: 1000 })
    assert.equal(disk.freeBytes('/data'), 1000)
    disk.setFreeBytes(10)
    assert.equal(disk.freeBytes('/data'), 10)
    assert.equal(disk.crash(randomFrom(1)).freeBytes('/data'), 10)
  })

  test('a slot of 64 MiB of zeros costs no memory', () => {
    const pages = new PageMap()
    pages.writeZeros(0, 64 * 1024 * 1024)
    pages.write(Buffer.alloc(1024 * 1024), 0, 1024 * 1024, 0)
    assert.deepEqual([pages.sizeBytes, pages.pageCount], [64 * 1024 * 1024, 0])
  })

  test('a plan that would kill the process is refused', () => {
    assert.throws(() => new SimulatedDisk({ faults: parseFaultPlan('group.sync:1=kill') }), { name: 'BugError' })
  })
})

describe('a power cut', () => {
  test('keeps everything that was synced, name and content', () => {
    assert.deepEqual(
      outcomes(diskWithOldFile, disk => textOf(disk, '/data/a')),
      ['old']
    )
  })

  test('keeps an unsynced write or loses it', () => {
    const prepare = () => {
      const disk = diskWithOldFile()
      disk.open('slot.open', '/data/a').write('group.write', Buffer.from('new'), 0, 3, 0)
      return disk
    }
    assert.deepEqual(
      outcomes(prepare, disk => textOf(disk, '/data/a')),
      ['new', 'old']
    )
  })

  test('keeps a direct write or loses it, unless it was synced', () => {
    const writtenTo = (sync: boolean) => () => {
      const disk = new SimulatedDisk()
      const file = disk.createDirect('segment.create', '/data/a')
      disk.syncDirectory('segment.directory-sync', '/data')
      file.write('segment.write', blocks('n'), 0, 4096, 0)
      if (sync) file.sync('segment.sync')
      return disk
    }
    const observe = (disk: SimulatedDisk) => (textOf(disk, '/data/a') === 'n'.repeat(4096) ? 'whole' : 'not whole')
    assert.deepEqual(outcomes(writtenTo(false), observe), ['not whole', 'whole'])
    assert.deepEqual(outcomes(writtenTo(true), observe), ['whole'])
  })

  test('tears a write at sectors of the disk, each kept or lost on its own', () => {
    const prepare = () => {
      const disk = new SimulatedDisk()
      const file = disk.create('slot.create', '/data/a')
      file.write('slot.fill', Buffer.alloc(1536, 'o'), 0, 1536, 0)
      file.sync('slot.fill-sync')
      disk.syncDirectory('journal.directory-sync', '/data')
      file.write('group.write', Buffer.alloc(1000, 'n'), 0, 1000, 300)
      return disk
    }
    const runs = (disk: SimulatedDisk) =>
      [...textOf(disk, '/data/a').matchAll(/o+|n+/g)].map(run => `${run[0][0]}${run[0].length}`).join(' ')
    assert.deepEqual(outcomes(prepare, runs), [
      'o1024 n276 o236',
      'o1536',
      'o300 n1000 o236',
      'o300 n212 o1024',
      'o300 n212 o512 n276 o236',
      'o300 n724 o512',
      'o512 n512 o512',
      'o512 n788 o236'
    ])
  })

  test('may lose an early write and keep a later one', () => {
    const prepare = () => {
      const disk = diskWithOldFile()
      const file = disk.open('slot.open', '/data/a')
      file.write('group.write', Buffer.from('X'), 0, 1, 0)
      file.write('group.write', Buffer.from('Y'), 0, 1, 1)
      return disk
    }
    assert.deepEqual(
      outcomes(prepare, disk => textOf(disk, '/data/a')),
      ['XYd', 'Xld', 'oYd', 'old']
    )
  })

  test('may lose the growth of a file, or leave zeros where a sector was lost', () => {
    const prepare = () => {
      const disk = diskWithOldFile()
      disk.open('slot.open', '/data/a').write('group.write', Buffer.alloc(1024, 'n'), 0, 1024, 512)
      return disk
    }
    const sizes = outcomes(prepare, disk => String(contentOf(disk, '/data/a').length))
    assert.deepEqual(sizes, ['1024', '1536', '3'])
    const lostSector = outcomes(prepare, disk =>
      textOf(disk, '/data/a')
        .replace(/^old0+/, 'old 0 ')
        .slice(0, 7)
    )
    assert.deepEqual(lostSector, ['old', 'old 0 n'])
  })

  test('may undo a truncation that was not synced', () => {
    const prepare = () => {
      const disk = diskWithOldFile()
      disk.open('slot.open', '/data/a').truncate('slot.truncate', 1)
      return disk
    }
    assert.deepEqual(
      outcomes(prepare, disk => textOf(disk, '/data/a')),
      ['o', 'old']
    )
  })

  test('loses what a failed sync had before it, though a later sync says it succeeded', () => {
    const prepare = () => {
      const faults = parseFaultPlan('group.sync:1=EIO')
      const disk = new SimulatedDisk({ faults })
      const file = disk.create('slot.create', '/data/a')
      disk.syncDirectory('journal.directory-sync', '/data')
      file.write('group.write', Buffer.from('lost'), 0, 4, 0)
      assert.throws(() => file.sync('group.sync'))
      file.write('group.write', Buffer.from('kept'), 0, 4, 4)
      file.sync('group.sync')
      return disk
    }
    assert.deepEqual(
      outcomes(prepare, disk => textOf(disk, '/data/a')),
      ['0000kept']
    )
  })
})

describe('names across a power cut', () => {
  test('a new name is lost until its directory is synced, however well its content was synced', () => {
    const prepare = () => {
      const disk = new SimulatedDisk()
      const file = disk.create('slot.create', '/data/a')
      file.write('slot.fill', Buffer.from('new'), 0, 3, 0)
      file.sync('slot.fill-sync')
      return disk
    }
    assert.deepEqual(
      outcomes(prepare, disk => textOf(disk, '/data/a')),
      ['absent', 'new']
    )
  })

  test('a synced name may stand for content that was never synced', () => {
    const prepare = () => {
      const disk = new SimulatedDisk()
      writeFile(disk, '/data/a', 'new')
      disk.syncDirectory('journal.directory-sync', '/data')
      return disk
    }
    assert.deepEqual(
      outcomes(prepare, disk => textOf(disk, '/data/a')),
      ['', 'new']
    )
  })

  test('a rename is seen whole or not at all', () => {
    const prepare = () => {
      const disk = diskWithOldFile()
      disk.rename('slot.rename', '/data/a', '/data/b')
      return disk
    }
    assert.deepEqual(
      outcomes(prepare, disk => disk.list('/data').join()),
      ['a', 'b']
    )
  })

  test('a removed file comes back until the directory is synced', () => {
    const prepare = () => {
      const disk = diskWithOldFile()
      disk.remove('slot.remove', '/data/a')
      return disk
    }
    assert.deepEqual(
      outcomes(prepare, disk => textOf(disk, '/data/a')),
      ['absent', 'old']
    )
    const synced = () => {
      const disk = prepare()
      disk.syncDirectory('journal.directory-sync', '/data')
      return disk
    }
    assert.deepEqual(
      outcomes(synced, disk => textOf(disk, '/data/a')),
      ['absent']
    )
  })

  test('a directory taken away comes back until its parent is synced', () => {
    const removed = (sync: boolean) => () => {
      const disk = new SimulatedDisk({ directories: ['/data/d'] })
      disk.removeDirectory('segment.directory', '/data/d')
      if (sync) disk.syncDirectory('segment.directory-sync', '/data')
      return disk
    }
    const observe = (disk: SimulatedDisk) => disk.list('/data').join()
    assert.deepEqual(outcomes(removed(false), observe), ['', 'd'])
    assert.deepEqual(outcomes(removed(true), observe), [''])
  })

  test('changes of one name keep their order; changes of different names do not', () => {
    const prepare = () => {
      const disk = new SimulatedDisk()
      writeFile(disk, '/data/x', '')
      disk.rename('slot.rename', '/data/x', '/data/y')
      writeFile(disk, '/data/z', '')
      return disk
    }
    assert.deepEqual(
      outcomes(prepare, disk => disk.list('/data').join()),
      ['', 'x', 'x,z', 'y', 'y,z', 'z']
    )
  })

  test('a directory that was lost takes its files with it', () => {
    const prepare = () => {
      const disk = new SimulatedDisk()
      disk.makeDirectory('journal.directory', '/data/d')
      writeFile(disk, '/data/d/a', '')
      disk.syncDirectory('journal.directory-sync', '/data/d')
      return disk
    }
    assert.deepEqual(
      outcomes(prepare, disk => (disk.exists('/data/d') ? disk.list('/data/d').join() : 'absent')),
      ['a', 'absent']
    )
  })

  test('a move between directories is durable once either of them was synced', () => {
    const prepare = () => {
      const disk = new SimulatedDisk({ directories: ['/data/x', '/data/y'] })
      writeFile(disk, '/data/x/a', '')
      disk.rename('slot.rename', '/data/x/a', '/data/y/a')
      disk.syncDirectory('journal.directory-sync', '/data/y')
      return disk
    }
    assert.deepEqual(
      outcomes(prepare, disk => `${disk.list('/data/x').join()}|${disk.list('/data/y').join()}`),
      ['|a']
    )
  })
})

describe('controls', () => {
  test('with file syncs ignored, synced content is lost', () => {
    const seen = outcomes(
      () => diskWithOldFile({ ignoreSync: true }),
      disk => textOf(disk, '/data/a')
    )
    assert.deepEqual(seen, ['', 'old'])
  })

  test('with directory syncs ignored, synced names are lost', () => {
    const seen = outcomes(
      () => diskWithOldFile({ ignoreDirectorySync: true }),
      disk => textOf(disk, '/data/a')
    )
    assert.deepEqual(seen, ['absent', 'old'])
  })

  test('kill −9 loses nothing, but makes nothing durable either', () => {
    const prepare = () => {
      const disk = new SimulatedDisk()
      writeFile(disk, '/data/a', 'new')
      return disk.killProcess()
    }
    assert.equal(textOf(prepare(), '/data/a'), 'new')
    assert.deepEqual(
      outcomes(prepare, disk => textOf(disk, '/data/a')),
      ['', 'absent', 'new']
    )
  })

  test('files opened before the crash refuse every call', () => {
    const disk = diskWithOldFile()
    const file = disk.open('slot.open', '/data/a')
    disk.crash(randomFrom(1))
    assert.throws(() => file.sync('group.sync'), { name: 'BugError' })
    assert.throws(() => disk.exists('/data/a'), { name: 'BugError' })
  })

  test('the same dice give the same disk', () => {
    const crashed = () => {
      const disk = new SimulatedDisk()
      const file = disk.create('slot.create', '/data/a')
      disk.syncDirectory('journal.directory-sync', '/data')
      file.write('group.write', Buffer.alloc(20_000, 'n'), 0, 20_000, 100)
      return textOf(disk.crash(randomFrom(42)), '/data/a')
    }
    assert.equal(crashed(), crashed())
  })
})
