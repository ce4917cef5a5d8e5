/** The cache of cold segments: what is kept, what goes, and what a shard hears. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ColdPlace, FetchSegmentValue } from '../../../src/background/cold.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { ColdReads, type ColdReadsParts } from '../../../src/broker/cold-reads.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import type { ColdSegment } from '../../../src/wire/shard/cold.ts'
import type { ControlMessage } from '../../../src/wire/shard/messages.ts'

const place: ColdPlace = {
  dataDirectory: '/data',
  coldStorageDir: '/cold',
  coldStorage: null,
  coldStorageEndpoint: null,
  coldStorageRegion: 'us-east-1',
  coldStoragePathStyle: false,
  faults: null
}

function segment(name: string, bytes: number): ColdSegment {
  const checksums = { logChecksum: 0, blocksChecksum: 0 }
  return { name, logKey: `${name}.log`, blocksKey: `${name}.blocks`, logBytes: bytes, blocksBytes: 0, ...checksums }
}

class Fixture {
  readonly told: string[] = []
  readonly logged: string[] = []
  readonly evictions: string[][] = []
  problem: string | Error | null = null
  /** Fetches that are held, to be ended one by one; null: none is. */
  held: (() => void)[] | null = null
  readonly reads: ColdReads

  constructor(cacheBytes: number, at: ColdPlace | null = place) {
    const run = (_: string, value: FetchSegmentValue): Promise<{ problem: string | null }> => {
      this.evictions.push([...value.evict])
      if (this.problem instanceof Error) return Promise.reject(this.problem)
      const { held } = this
      if (held !== null) return new Promise(resolve => held.push(() => resolve({ problem: null })))
      return Promise.resolve({ problem: this.problem })
    }
    const pool = { run } as unknown as ColdReadsParts['pool']
    const tell = (shard: number, make: (id: number) => ControlMessage): void => {
      const message = make(1)
      if (message.kind === 'fetched') this.told.push(`${shard}: ${message.name} ${message.problem ?? 'is here'}`)
      else if (message.kind === 'files-unused') this.told.push(`${shard}: close ${message.paths.join()}`)
    }
    const logger = { ...silentLogger, error: (fields: object) => void this.logged.push(JSON.stringify(fields)) }
    this.reads = new ColdReads({ shards: { tell }, pool, place: at, cacheBytes, fetchesAtOnce: 3, logger })
  }

  async fetch(name: string, bytes: number, shard = 0): Promise<void> {
    this.reads.onEvent(shard, { kind: 'fetch-wanted', segment: segment(name, bytes), isBad: false })
    await new Promise(setImmediate)
  }
}

describe('the cache of cold segments', () => {
  it('makes room by taking away what was not read for longest, and tells who had it open', async () => {
    const fixture = new Fixture(100)
    await fixture.fetch('a', 40)
    await fixture.fetch('b', 40, 2)
    fixture.reads.onEvent(0, { kind: 'copies-used', names: ['a', 'unknown'] })
    await fixture.fetch('c', 40)
    assert.deepEqual(fixture.evictions, [[], [], ['b']])
    assert.deepEqual(fixture.told, [
      '0: a is here',
      '2: b is here',
      '2: close cold-cache/b.log,cold-cache/b.blocks',
      '0: c is here'
    ])
    assert.equal(fixture.reads.cachedBytes, 80)
  })

  it('holds one segment that is larger than all of it', async () => {
    const fixture = new Fixture(100)
    await fixture.fetch('a', 40)
    await fixture.fetch('huge', 500)
    assert.deepEqual(fixture.evictions.at(-1), ['a'])
    assert.equal(fixture.reads.cachedBytes, 500)
  })

  it('fetches a segment once for all who ask meanwhile, and again for who asks later', async () => {
    const fixture = new Fixture(100)
    void fixture.fetch('a', 40)
    await fixture.fetch('a', 40)
    assert.equal(fixture.evictions.length, 1)
    await fixture.fetch('a', 40)
    assert.equal(fixture.evictions.length, 2)
    assert.equal(fixture.reads.cachedBytes, 40, 'it counts once')
  })

  it('makes room for each fetch when its turn comes: however many wait, what is here is no more than those at once', async () => {
    const fixture = new Fixture(100)
    fixture.held = []
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'd']) await fixture.fetch(name, 100)
    assert.equal(fixture.evictions.length, 3)
    for (let i = 0; i < 7; i++) {
      fixture.held[i]?.()
      await new Promise(setImmediate)
      const here = 100 * (fixture.evictions.length - fixture.evictions.flat().length)
      assert.ok(here <= 300, `${here} bytes are here, or on their way`)
    }
    assert.deepEqual([fixture.reads.counts.fetches, fixture.reads.cachedBytes], [7, 300])
  })

  it('keeps nothing of a fetch that failed, says why to the log and to callers no path, and works again', async () => {
    const fixture = new Fixture(100)
    fixture.problem = 'ENOTDIR at cold.read of /mnt/secret-bucket/a.log'
    await fixture.fetch('a', 40)
    fixture.problem = new BrokerError('OVERLOADED', { what: 'the queue of background jobs', limit: 64 })
    await fixture.fetch('a', 40)
    assert.equal(fixture.reads.cachedBytes, 0)
    assert.deepEqual(fixture.told.slice(0, 1), ['0: a the store refused, and the log of the broker says why'])
    assert.match(fixture.logged[0] ?? '', /secret-bucket/)
    assert.match(fixture.told[1] ?? '', /queue of background jobs/)
    fixture.problem = null
    await fixture.fetch('a', 40)
    assert.deepEqual([fixture.told.at(-1), fixture.reads.counts.failures], ['0: a is here', 2])
  })

  it('says so where no cold storage is configured', async () => {
    const fixture = new Fixture(100, null)
    await fixture.fetch('a', 40, 1)
    assert.deepEqual(fixture.told, ['1: a no cold storage is configured'])
  })
})
