/**
 * A change of the number of shards on a disk that loses power: stopped at any call of it, once or several times, given up
 * or carried through, it leaves every acknowledged record once at its offset.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Disk } from '../../../src/disk/disk.ts'
import { DiskError } from '../../../src/disk/disk.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { loadManifest } from '../../../src/log/manifest-file.ts'
import { changePlacement } from '../../../src/log/placement-change.ts'
import { removeEpoch } from '../../../src/log/placement-removal.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { journalPath, packDirectory } from '../../../src/log/shard-place.ts'
import { SettleMemory } from '../../../src/log/settle/settle-memory.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import type { PlacedShards } from '../../../src/wire/shard/placement.ts'
import { ManualClock, append, notReady, openLog, partitionOf, readBack, textRecord } from '../../support/log-harness.ts'
import { Interruption, InterruptibleDisk } from '../../support/log-interruptible-disk.ts'
import { diceOf, type Dice } from '../../support/log-random.ts'

const FILE = 'test/unit/log/placement-change.test.ts'
const PARTITIONS = 9
const topic = { firstHandle: 1, partitionCount: PARTITIONS, segmentBytes: 500 * 1024 }
const memory = new SettleMemory()
const clock = new ManualClock()

/** What the disk of a change may be in place of the real one. */
type Wrap = (disk: Disk) => Disk
const honest: Wrap = disk => disk
/** Directory syncs do nothing, and say they did. */
const forgetful: Wrap = disk =>
  new Proxy(disk, {
    get(target, name) {
      if (name === 'syncDirectory') return () => undefined
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    }
  })

class Life {
  readonly #dice: Dice
  readonly #wrap: Wrap
  #disk = new SimulatedDisk()
  placed: PlacedShards = { shardCount: 2, placementEpoch: 1 }
  readonly #acked: string[][] = Array.from({ length: PARTITIONS }, () => [])
  #receiveMs = 0
  #sequence = 0n
  stops = 0
  givenUp = 0

  constructor(dice: Dice, wrap: Wrap = honest) {
    this.#dice = dice
    this.#wrap = wrap
  }

  get disk(): SimulatedDisk {
    return this.#disk
  }

  /** Writes to all shards, then ends them: cleanly, by a kill, by a power cut. */
  write(): void {
    const logs = this.#open()
    for (let i = 0; i < 12; i++, this.#sequence++) {
      clock.wallMs += this.#dice.below(1000) - 400
      for (let partition = 0; partition < PARTITIONS; partition++) {
        const log = this.#logOf(logs, partition)
        const size = partition % 4 === 0 ? 60_000 : 30
        const value = `${this.#acked[partition]?.length}:`.padEnd(size, 'x')
        append(log, {
          firstHandle: 1,
          producer: 5,
          records: [{ ...textRecord(partition, null, value), sequence: this.#sequence }]
        })
        this.#acked[partition]?.push(value)
      }
      this.#receiveMs = Math.max(this.#receiveMs, clock.wallMs)
    }
    if (this.#dice.chance(0.3)) for (const log of logs) log.close()
    this.#end()
  }

  /** Changes the number, stopped now and then; gives it up now and then. */
  change(shardCount: number): void {
    const { placed } = this
    const to = { shardCount, placementEpoch: placed.placementEpoch + 1 }
    for (let attempt = 0; ; attempt++) {
      const isDone = this.#attempt(attempt < 3, disk => {
        const steps = changePlacement({
          disk: this.#wrap(disk),
          dataDirectory: '/data',
          from: placed,
          to,
          newestSlots: new Map(),
          placeOf: handle => ({ kind: 'kept', directory: `topics/t~1/${handle - 1}` }),
          memory,
          clock,
          drawSalt: () => this.#dice.bytes(8)
        })
        while (steps.next().done !== true);
      })
      // What it did must be durable when it returns: the store's commit follows.
      if (isDone) break
      this.stops++
      if (!this.#dice.chance(0.3)) continue
      while (!this.#attempt(true, disk => removeEpoch(disk, '/data', to.placementEpoch)));
      this.givenUp++
      this.judge()
    }
    this.#disk = this.#disk.crash(this.#dice.unit)
    this.placed = to
    this.judge()
    while (!this.#attempt(true, disk => removeEpoch(disk, '/data', placed.placementEpoch, placed.shardCount)));
    for (const pathOf of [journalPath, packDirectory]) {
      for (let shard = 0; shard < placed.shardCount; shard++)
        assert.ok(!this.#disk.exists(`/data/${pathOf({ ...placed, shard })}`), 'nothing of the old placement is left')
    }
    for (let shard = 0; shard < to.shardCount; shard++) {
      const directory = `/data/${journalPath({ ...to, shard })}`
      const { receiveMsMax, producers } = this.#manifest(directory, shard)
      assert.ok(receiveMsMax >= this.#receiveMs, 'receive time never falls')
      assert.ok(producers, 'every partition knows its producer')
    }
  }

  /** Everything acknowledged is there, once, and nothing else. */
  judge(): void {
    const logs = this.#open()
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const log = this.#logOf(logs, partition)
      const { records, damaged } = readBack(log, partitionOf(log, 1, partition))
      assert.deepEqual(damaged, [])
      assert.deepEqual(
        records.map(({ offset, value }) => `${offset} ${value.toString()}`),
        this.#acked[partition]?.map((value, offset) => `${offset} ${value}`),
        `partition ${partition}`
      )
    }
    for (const log of logs) log.close()
  }

  #manifest(directory: string, shard: number): { receiveMsMax: number; producers: boolean } {
    const manifest = loadManifest(this.#disk, directory, shard, this.placed.placementEpoch)
    const all = [...manifest.partitions.values()]
    return {
      receiveMsMax: manifest.receiveMsMax,
      producers: all.every(({ producers }) => producers.some(({ number }) => number === 5))
    }
  }

  /** @returns false: stopped in the middle, and then the process was killed or the power cut. */
  #attempt(mayStop: boolean, action: (disk: Disk) => void): boolean {
    const disk = new InterruptibleDisk(this.#disk)
    if (mayStop && this.#dice.chance(0.7)) disk.stopAt(1 + this.#dice.below(150), this.#dice.chance(0.5))
    try {
      action(disk)
      return true
    } catch (error) {
      if (!(error instanceof Interruption)) throw error
      this.#end()
      return false
    }
  }

  #end(): void {
    this.#disk = this.#dice.chance(0.5) ? this.#disk.crash(this.#dice.unit) : this.#disk.killProcess()
  }

  #open(): ShardLog[] {
    const { shardCount, placementEpoch } = this.placed
    return Array.from({ length: shardCount }, (_, shard) => {
      const log = openLog(this.#disk, {
        directory: `/data/${journalPath({ shard, placementEpoch })}`,
        shard,
        placementEpoch,
        hasManifest: placementEpoch > 1,
        clock,
        drawSalt: () => this.#dice.bytes(8)
      })
      log.table.open(topic)
      return log
    })
  }

  #logOf(logs: readonly ShardLog[], partition: number): ShardLog {
    const log = logs[(1 + partition) % logs.length]
    assert.ok(log !== undefined)
    return log
  }
}

function live(seed: number, wrap?: Wrap): Life {
  const dice = diceOf(seed)
  const life = new Life(dice, wrap)
  for (let round = 0; round < 3; round++) {
    life.write()
    life.change(1 + dice.below(4))
  }
  return life
}

describe('a change of the number of shards', () => {
  it('stopped anywhere, by a kill or a power cut, loses and doubles nothing', t => {
    const asked = process.env['MILLRACE_SEED']
    const seeds = asked === undefined ? Array.from({ length: 25 }, (_, i) => i + 1) : [Number(asked)]
    let stops = 0
    let givenUp = 0
    for (const seed of seeds) {
      try {
        const life = live(seed)
        stops += life.stops
        givenUp += life.givenUp
      } catch (error) {
        throw new Error(`replay: MILLRACE_SEED=${seed} node --test ${FILE}`, { cause: error })
      }
    }
    t.diagnostic(`${seeds.length} lives: ${stops} changes stopped in the middle, ${givenUp} given up`)
    if (asked === undefined) assert.ok(stops > 25 && givenUp > 5, 'the lives were eventful')
  })

  it('is seen to lose records if it does not sync its directories, so that the test above can fail', () => {
    let lost = 0
    for (let seed = 1; seed <= 10; seed++) {
      try {
        live(seed, forgetful)
      } catch (error) {
        // Records are missed, a start is refused, or a file that a manifest names is not there.
        const isMissingFile = error instanceof DiskError && error.code === 'ENOENT'
        if (!(error instanceof assert.AssertionError) && !(error instanceof BrokerError) && !isMissingFile) throw error
        lost++
      }
    }
    assert.ok(lost >= 5, `${lost} of 10 lives noticed`)
  })

  it('leaves no shard that would take the manifest of another epoch, or none at all, for its own', () => {
    const life = new Life(diceOf(4))
    life.write()
    life.change(1)
    const directory = `/data/${journalPath({ shard: 0, placementEpoch: 2 })}`
    const { disk } = life
    assert.throws(() => openLog(disk, { directory, placementEpoch: 3 }), notReady(/is of placement epoch 2, not of 3/))
    disk.remove('manifest.write', `${directory}/manifest`)
    assert.throws(
      () => openLog(disk, { directory, placementEpoch: 2, hasManifest: true }),
      notReady(/e2\/000\/manifest is missing/)
    )
  })

  it('with the same number again only moves the files to a new epoch', () => {
    const life = new Life(diceOf(3))
    life.write()
    life.change(2)
    assert.deepEqual(life.placed, { shardCount: 2, placementEpoch: 2 })
    life.judge()
  })
})
