/**
 * The directory store on a disk that forgets what was not synced: stopped at every step of a put or a removal, by a
 * kill or a power cut. A put that returned is there, whole; no other object is ever half there; a removal that
 * returned stays one.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createDirectoryStore } from '../../../src/cold/directory-store.ts'
import { ColdError } from '../../../src/cold/object-store.ts'
import { SimulatedDisk, type SimulatedDiskOptions } from '../../../src/disk/simulated-disk.ts'
import { isLong, seed } from '../../support/crash-run.ts'
import { InterruptibleDisk, Interruption } from '../../support/log-interruptible-disk.ts'
import { diceOf, replayLine, type Dice } from '../../support/log-random.ts'
import { checksumOf, contentOf, key } from './store-contract.ts'

const ROUNDS = isLong ? 2000 : 150
const FILE = 'test/unit/cold/directory-power-loss.test.ts'
const directory = '/mnt/far/cold'
const content = contentOf(9000)

type Found = 'nothing' | 'whole' | 'damaged'

/** The local file of the next put: each has its own, whatever became of those before. */
function makeLocal(disk: SimulatedDisk, step: number): string {
  const file = disk.create('segment.create', `/data/local-${step}`)
  file.write('segment.write', content, 0, content.length, 0)
  file.close()
  return file.path
}

async function findObject(disk: SimulatedDisk): Promise<Found> {
  const store = createDirectoryStore({ disk, directory })
  try {
    await store.verify(key, content.length, checksumOf(content))
    return 'whole'
  } catch (error) {
    if (!(error instanceof ColdError)) throw error
    return error.code === 'damaged' ? 'damaged' : 'nothing'
  }
}

/** Puts the local file, or removes the object; stopped at one of its calls or not. @returns true if it came to its end. */
async function isDone(disk: SimulatedDisk, dice: Dice, path: string | null): Promise<boolean> {
  const interruptible = new InterruptibleDisk(disk)
  interruptible.stopAt(1 + dice.below(20), dice.chance(0.5))
  const store = createDirectoryStore({ disk: interruptible, directory })
  try {
    if (path !== null) await store.put(key, path, content.length, checksumOf(content))
    else await store.remove(key)
    return true
  } catch (error) {
    if (error instanceof Interruption) return false
    // A removal from a store that no put came to make.
    if (error instanceof ColdError && path === null && error.code === 'unavailable') return false
    throw error
  }
}

interface Outcome {
  readonly anomalies: string[]
  puts: number
  removals: number
  stops: number
}

/** A life of one directory: steps, each followed by a kill or a power cut, and what is found after it. */
async function playRound(dice: Dice, options: SimulatedDiskOptions, outcome: Outcome): Promise<void> {
  let disk = new SimulatedDisk({ ...options, directories: ['/data', '/mnt'] })
  /** What must be found, or null if both are right. */
  let expected: Found | null = 'nothing'
  for (let step = 0; step < 6; step++) {
    const kind = dice.chance(0.7) ? 'put' : 'remove'
    const isFinished = await isDone(disk, dice, kind === 'put' ? makeLocal(disk, step) : null)
    const wanted = kind === 'put' ? 'whole' : 'nothing'
    if (!isFinished) outcome.stops++
    else if (kind === 'put') outcome.puts++
    else outcome.removals++
    if (isFinished) expected = wanted
    else if (expected !== wanted) expected = null
    disk = dice.chance(0.4) ? disk.killProcess() : disk.crash(dice.unit)
    const found = await findObject(disk)
    if (found === 'damaged' || (expected !== null && found !== expected)) {
      outcome.anomalies.push(`step ${step}, ${kind}${isFinished ? '' : ' stopped'}: ${found}, not ${expected}`)
    }
  }
}

async function play(options: SimulatedDiskOptions): Promise<Outcome> {
  const outcome: Outcome = { anomalies: [], puts: 0, removals: 0, stops: 0 }
  const dice = diceOf(seed)
  for (let round = 0; round < ROUNDS; round++) await playRound(dice, options, outcome)
  return outcome
}

describe('the directory store under kills and power cuts', () => {
  test('an object that was put is there, whole, whatever was cut off and when', async () => {
    const { anomalies, ...counts } = await play({})
    assert.deepEqual(anomalies, [], replayLine(seed, FILE))
    for (const [what, count] of Object.entries(counts)) assert.ok(count > ROUNDS / 10, `only ${count} ${what}`)
  })

  test('control: a disk that does not sync files is caught', async () => {
    assert.notDeepEqual((await play({ ignoreSync: true })).anomalies, [], replayLine(seed, FILE))
  })

  test('control: a disk that does not sync directories is caught', async () => {
    assert.notDeepEqual((await play({ ignoreDirectorySync: true })).anomalies, [], replayLine(seed, FILE))
  })
})
