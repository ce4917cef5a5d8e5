/** The manifest on disk: old or new after whatever befalls a commit, never neither (durability, S1). */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { DiskError, type Disk } from '../../../src/disk/disk.ts'
import { FaultPlan, type Fault } from '../../../src/disk/fault-plan.ts'
import type { FaultPoint } from '../../../src/disk/faults.ts'
import { createRealDisk } from '../../../src/disk/real-disk.ts'
import { SimulatedDisk, type SimulatedDiskOptions } from '../../../src/disk/simulated-disk.ts'
import { commitManifest, loadManifest, manifestPath, readManifest } from '../../../src/log/manifest-file.ts'
import { encodeManifest } from '../../../src/log/manifest-format.ts'
import { emptyManifest, type Manifest } from '../../../src/log/manifest.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { testDirectory } from '../../support/log-harness.ts'
import { Interruption, InterruptibleDisk } from '../../support/log-interruptible-disk.ts'
import { diceOf } from '../../support/log-random.ts'
import { sampleManifest, sealedFile } from '../../support/manifest-sample.ts'

const SHARD = 2
const directory = testDirectory
const unfinished = `${directory}/manifest.new`

function newDisk(options: SimulatedDiskOptions = {}): SimulatedDisk {
  return new SimulatedDisk({ directories: [directory], ...options })
}

function load(disk: Disk): Manifest {
  return loadManifest(disk, directory, SHARD, 1)
}

/** Long enough to be torn: many sectors. */
function manifestOf(commit: number): Manifest {
  const manifest = { ...sampleManifest(), commit }
  for (let handle = 1000; handle < 1040; handle++) {
    const partition = manifest.partitions.get(4)
    assert.ok(partition !== undefined)
    manifest.partitions.set(handle, { ...partition, handle, generation: commit })
  }
  return manifest
}

function diskWith(commit: number, options: SimulatedDiskOptions = {}): SimulatedDisk {
  const disk = newDisk(options)
  commitManifest(disk, directory, manifestOf(commit))
  return disk
}

function putFile(disk: Disk, path: string, bytes: Uint8Array): void {
  const file = disk.create('manifest.write', path)
  file.write('manifest.write', bytes, 0, bytes.length, 0)
  file.sync('manifest.sync')
  file.close()
  disk.syncDirectory('manifest.directory-sync', directory)
}

function isRefusal(error: unknown): error is BrokerError {
  return error instanceof BrokerError && error.code === 'NOT_READY'
}

function refusalOf(disk: Disk): string {
  try {
    load(disk)
  } catch (error) {
    if (isRefusal(error)) return String(error.details['problem'])
    throw error
  }
  throw new Error('the manifest was accepted')
}

/** Commits, and stops the process at the n-th call that changes the disk. @returns true if the commit was done before. */
function commitStopped(disk: SimulatedDisk, manifest: Manifest, call: number, performs: boolean): boolean {
  const interruptible = new InterruptibleDisk(disk)
  interruptible.stopAt(call, performs)
  try {
    commitManifest(interruptible, directory, manifest)
    return true
  } catch (error) {
    if (error instanceof Interruption) return false
    throw error
  }
}

/** A life: commit 1 done, commit 2 stopped somewhere, an end. `visit` gets what the next start finds. */
function forEveryStop(
  options: SimulatedDiskOptions,
  end: (disk: SimulatedDisk, seed: number) => SimulatedDisk,
  visit: (disk: SimulatedDisk, isCommitted: boolean) => void
): void {
  let isCommitted = false
  for (let call = 1; !isCommitted; call++) {
    for (const performs of [false, true]) {
      for (let seed = 1; seed <= 40; seed++) {
        const disk = diskWith(1, options)
        isCommitted = commitStopped(disk, manifestOf(2), call, performs)
        visit(end(disk, seed), isCommitted)
      }
    }
    assert.ok(call < 20, 'a commit has an end')
  }
}

const cutPower = (disk: SimulatedDisk, seed: number): SimulatedDisk => disk.crash(diceOf(seed).unit)

describe('a shard', () => {
  it('without a manifest starts with an empty one, and writes nothing', () => {
    const disk = newDisk()
    assert.deepEqual(loadManifest(disk, directory, 3, 7), emptyManifest(3, 7))
    assert.deepEqual(disk.list(directory), [])
    assert.equal(readManifest(disk, directory), null)
  })

  it('starts with the manifest that was committed last', () => {
    const disk = diskWith(1)
    commitManifest(disk, directory, manifestOf(2))
    assert.deepEqual(load(disk.killProcess()).commit, 2)
  })

  it('keeps its manifest on the file system, where nobody else may read it', t => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-manifest-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const disk = createRealDisk()
    for (const commit of [1, 2]) commitManifest(disk, folder, manifestOf(commit))
    const { partitions, ...rest } = loadManifest(disk, folder, SHARD, 1)
    const { partitions: written, ...expected } = manifestOf(2)
    assert.deepEqual([rest, partitions.size], [expected, written.size])
    for (const [handle, partition] of written) assert.deepEqual(partitions.get(handle), partition)
    assert.deepEqual(readdirSync(folder), ['manifest'])
    assert.equal(statSync(manifestPath(folder)).mode & 0o777, 0o600)
  })
})

describe('a commit that is stopped at any call', () => {
  it('leaves the old manifest or the new one to a start after a power cut, and the new one once it was done', () => {
    const found = [0, 0]
    forEveryStop({}, cutPower, (disk, isCommitted) => {
      const { commit } = load(disk)
      assert.ok(commit === 2 || (commit === 1 && !isCommitted), `commit ${commit} was found`)
      assert.deepEqual(disk.list(directory), ['manifest'])
      found[commit - 1] = (found[commit - 1] ?? 0) + 1
    })
    assert.ok(
      found.every(count => count >= 40),
      `old and new were found ${found.join(' and ')} times`
    )
  })

  it('leaves one of them to a start after a kill, which no power cut takes back', () => {
    let wasAtRisk = 0
    const kill = (disk: SimulatedDisk): SimulatedDisk => disk.killProcess()
    let seed = 1
    forEveryStop({}, kill, disk => {
      const { commit } = load(disk)
      assert.equal(load(cutPower(disk, ++seed)).commit, commit)
    })
    // The same without the start in between: what a kill left is not durable by itself.
    forEveryStop({}, kill, disk => {
      const seen = readManifest(disk, directory)
      const after = readManifest(cutPower(disk, ++seed), directory)
      assert.ok(seen?.kind === 'manifest' && after?.kind === 'manifest')
      if (seen.manifest.commit !== after.manifest.commit) wasAtRisk++
    })
    assert.ok(wasAtRisk > 0)
  })

  it('is seen to leave neither if files are not synced, so that the tests above can fail', () => {
    let neither = 0
    forEveryStop({ ignoreSync: true }, cutPower, disk => {
      try {
        load(disk)
      } catch (error) {
        if (!isRefusal(error)) throw error
        neither++
      }
    })
    assert.ok(neither >= 10, `only ${neither} manifests were lost`)
  })

  it('is seen to be forgotten if directories are not synced', () => {
    let forgotten = 0
    forEveryStop({ ignoreDirectorySync: true }, cutPower, (disk, isCommitted) => {
      if (isCommitted && load(disk).commit !== 2) forgotten++
    })
    assert.ok(forgotten >= 10, `only ${forgotten} commits were forgotten`)
  })
})

describe('a commit that the disk refuses', () => {
  const io: Fault = { kind: 'error', code: 'EIO' }
  const full: Fault = { kind: 'short', code: 'ENOSPC' }
  /** The first call at manifest.write makes the file, the second fills it. */
  const refusals: readonly (readonly [FaultPoint, number, Fault])[] = [
    ['manifest.write', 1, { kind: 'error', code: 'EMFILE' }],
    ['manifest.write', 2, { kind: 'error', code: 'ENOSPC' }],
    ['manifest.write', 2, full],
    ['manifest.sync', 1, io],
    ['manifest.rename', 1, io]
  ]
  for (const [point, call, fault] of refusals) {
    const code = 'code' in fault ? fault.code : ''
    it(`with ${fault.kind} ${code} at call ${call} of ${point} changes nothing, and the next one works`, () => {
      const faults = new FaultPlan()
      const disk = diskWith(1, { faults })
      const firstCall = faults.callCount(point) + call
      faults.arm({ point, firstCall, lastCall: firstCall, fault })
      assert.throws(
        () => commitManifest(disk, directory, manifestOf(2)),
        error => error instanceof DiskError && error.code === code && error.point === point
      )
      assert.equal(load(disk).commit, 1)
      commitManifest(disk, directory, manifestOf(3))
      assert.equal(load(cutPower(disk, 1)).commit, 3)
    })
  }

  it('at the sync of the directory may or may not have happened: a power cut leaves either', () => {
    const found = new Set<number>()
    for (let seed = 1; seed <= 40; seed++) {
      const faults = new FaultPlan()
      const disk = diskWith(1, { faults })
      faults.arm({ point: 'manifest.directory-sync', firstCall: 2, lastCall: 2, fault: io })
      assert.throws(() => commitManifest(disk, directory, manifestOf(2)), DiskError)
      found.add(load(cutPower(disk, seed)).commit)
    }
    assert.deepEqual([...found].sort(), [1, 2])
  })

  it('goes through once there is room, whatever a refused one left', () => {
    const faults = new FaultPlan([{ point: 'manifest.write', firstCall: 2, lastCall: 2, fault: full }])
    const disk = newDisk({ faults })
    assert.throws(() => commitManifest(disk, directory, manifestOf(1)), DiskError)
    assert.ok(disk.exists(unfinished))
    commitManifest(disk, directory, manifestOf(1))
    assert.deepEqual(disk.list(directory), ['manifest'])
  })
})

describe('what a commit left unfinished', () => {
  it('is removed by a start, and never taken for a manifest', () => {
    const disk = newDisk()
    putFile(disk, unfinished, encodeManifest(manifestOf(1)))
    assert.equal(load(disk).commit, 0)
    assert.deepEqual(disk.list(directory), [])
  })

  it('stays where a start is refused: an operator may want it', () => {
    const disk = newDisk()
    putFile(disk, manifestPath(directory), Buffer.from('garbage'))
    putFile(disk, unfinished, encodeManifest(manifestOf(1)))
    refusalOf(disk)
    assert.deepEqual(disk.list(directory), ['manifest', 'manifest.new'])
  })
})

describe('a start is refused in one line', () => {
  const whole = encodeManifest(manifestOf(1))
  const cases: readonly (readonly [string, Buffer, string])[] = [
    [
      'by a manifest of a newer version',
      sealedFile([Buffer.from('?')], 3),
      'manifest format 3 was written by a newer version; this one reads up to 2'
    ],
    [
      'by a manifest of another shard',
      encodeManifest({ ...manifestOf(1), shard: 5 }),
      `the manifest ${directory}/manifest of shard 2 says it belongs to shard 5`
    ],
    [
      'by an empty file',
      Buffer.alloc(0),
      `the manifest ${directory}/manifest is damaged: it has 0 bytes, less than its first fields; an operator must decide`
    ],
    [
      'by a cut manifest',
      whole.subarray(0, 1000),
      `the manifest ${directory}/manifest is damaged: it has 1000 bytes and says that it has ${whole.length}; an operator must decide`
    ],
    [
      'by a manifest with other bytes in it',
      Buffer.from(whole).fill('?', 500, 600),
      `the manifest ${directory}/manifest is damaged: its checksum does not match its bytes; an operator must decide`
    ]
  ]
  for (const [what, bytes, problem] of cases) {
    it(what, () => {
      const disk = newDisk()
      putFile(disk, manifestPath(directory), bytes)
      assert.equal(refusalOf(disk), problem)
    })
  }

  it('also by a file larger than memory, which is not read', () => {
    const disk = newDisk()
    putFile(disk, manifestPath(directory), Buffer.from('MILLMANI'))
    const file = disk.open('manifest.write', manifestPath(directory))
    file.truncate('manifest.write', 2 ** 45)
    file.close()
    assert.match(refusalOf(disk), /it has 35184372088832 bytes, more than any manifest; an operator must decide$/)
  })

  it('and by a disk that cannot read it, with what the disk said', () => {
    const disk = diskWith(1, {
      faults: new FaultPlan([
        { point: 'manifest.read', firstCall: 2, lastCall: 2, fault: { kind: 'error', code: 'EIO' } }
      ])
    })
    assert.throws(
      () => load(disk),
      error => error instanceof DiskError && error.point === 'manifest.read'
    )
    assert.equal(load(disk).commit, 1)
  })
})

it('a manifest without a commit number is never written', () => {
  assert.throws(() => commitManifest(newDisk(), directory, emptyManifest(SHARD, 1)), BugError)
})
