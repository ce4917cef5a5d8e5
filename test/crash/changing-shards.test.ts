/**
 * Kill −9 in the middle of a change of the number of shards, in both directions: whatever step it strikes, the next start
 * has every acknowledged record once at its offset, knows every producer, and has finished the change or given it up.
 *
 * One directory goes through all of it: round after round it is written to, killed, changed, killed at a named call of
 * the change or of the removal of what it left, and started again.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { spawnBroker, type SpawnedBroker } from '../support/broker.ts'
import { sampleOf, seed } from '../support/crash-run.ts'
import { openClient, range, readAll } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'
import { replayLine } from '../support/log-random.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const PARTITIONS = 7
/** Where the change is killed, in the order of its steps; every call is made in every round, up and down. */
const killPoints = [
  'change/slot.header-write:1=kill',
  'change/group.write:1=short-kill',
  'change/group.sync:1=kill',
  'change/slot.footer-write:1=short-kill',
  'change/slot.footer-sync:1=kill-after',
  'change/segment.write:1=short-kill',
  'change/pack.write:1=short-kill',
  'change/pack.sync:1=kill',
  'change/manifest.write:1=short-kill',
  'change/manifest.rename:1=kill',
  'change/manifest.rename:1=kill-after',
  'change/manifest.rename:2=kill-after',
  'change/pack.create:4=kill',
  'change/pack.write:4=short-kill',
  'change/manifest.rename:4=kill-after',
  'change/manifest.directory-sync:5=kill-after',
  'remove/journal.remove:1=kill',
  'remove/journal.remove:2=kill-after',
  'remove/pack.remove:1=kill',
  'remove/pack.remove:2=kill-after'
] as const
/** A normal run takes some of them, which its seed chooses; MILLRACE_LONG=1 takes all. */
const kills = sampleOf(killPoints, 7)

class Directory {
  readonly path: string
  shards = 2
  readonly #values: string[][] = Array.from({ length: PARTITIONS }, () => [])
  #round = 0

  constructor(path: string) {
    this.path = path
  }

  /** @param shards null: nobody asks for a number. */
  start(t: TestContext, shards: number | null, faults?: string): Promise<SpawnedBroker> {
    const flags: Record<string, string> = shards === null ? {} : { '--shards': String(shards) }
    const env: Record<string, string> = faults === undefined ? {} : { MILLRACE_FAULTS: faults }
    return spawnBroker(t, { dataDir: this.path, flags, env })
  }

  /** Records of an idempotent producer, small ones and ones that give a partition files of its own. */
  async write(t: TestContext, broker: SpawnedBroker): Promise<void> {
    const client = await openClient(t, broker.es01)
    for (let i = 0; i < 3; i++, this.#round++) {
      const records = range(PARTITIONS).map(partition => {
        const value = `${this.#round}/${partition}:`.padEnd(partition % 3 === 0 ? 200_000 : 20, 'x')
        return { partition, value, sequence: BigInt(this.#round) }
      })
      const results = await client.produce('kept', records, 'one')
      results.forEach(({ partition, offset, duplicate }, at) => {
        assert.deepEqual([offset, duplicate], [this.#values[partition]?.length, false])
        this.#values[partition]?.push(records[at]?.value ?? '')
      })
    }
    await client.close()
  }

  /** Every record is there once at its offset, and what the producer sent last is known. */
  async judge(t: TestContext, broker: SpawnedBroker): Promise<void> {
    const client = await openClient(t, broker.es01)
    for (const partition of range(PARTITIONS)) {
      const records = await readAll(client, 'kept', partition)
      assert.deepEqual(
        records.map(({ offset, value }) => `${offset} ${value.toString()}`),
        this.#values[partition]?.map((value, offset) => `${offset} ${value}`)
      )
    }
    const again = range(PARTITIONS).map(partition => {
      return { partition, value: this.#values[partition]?.at(-1) ?? '', sequence: BigInt(this.#round - 1) }
    })
    const results = await client.produce('kept', again, 'one')
    assert.ok(results.every(({ duplicate }) => duplicate))
    await client.close()
  }

  /** Slots and packs of one placement only. */
  assertOneLayout(): void {
    for (const folder of ['journal', 'packs']) {
      const path = join(this.path, folder)
      const names = existsSync(path) ? readdirSync(path) : []
      assert.ok(names.length <= 1 || names.every(name => /^\d+$/.test(name)), `${folder}: ${names.join(' ')}`)
    }
  }
}

describe('kill −9 in the middle of a change of the number of shards', () => {
  it(`loses and doubles nothing at ${kills.length} points of it, up and down`, async t => {
    t.diagnostic(replayLine(seed, 'test/crash/changing-shards.test.ts'))
    const directory = new Directory(temporaryDirectory(t))
    let broker = await directory.start(t, directory.shards)
    await new HttpApi(broker.url).createTopic('kept', PARTITIONS)
    await directory.write(t, broker)
    for (const [round, faults] of kills.entries()) {
      const from = directory.shards
      const to = from === 2 ? 3 : 2
      await broker.kill('SIGKILL')
      await assert.rejects(directory.start(t, to, faults), isKilled, faults)
      if (faults.startsWith('change/') && round % 3 === 0) {
        broker = await directory.start(t, from)
        await directory.judge(t, broker)
        directory.assertOneLayout()
        await broker.kill('SIGKILL')
        await directory.start(t, to).then(started => started.kill('SIGKILL'))
      }
      broker = await directory.start(t, null)
      directory.shards = to
      assert.equal((await broker.waitForLog(line => line['msg'] === 'ready'))['shards'], to, faults)
      await directory.judge(t, broker)
      directory.assertOneLayout()
      await directory.write(t, broker)
    }
    await broker.kill('SIGKILL')
  })
})

/** Killed, it says nothing: a broker that refuses to start says so. */
function isKilled(error: unknown): boolean {
  return error instanceof Error && /ended before/.test(error.message) && !/cannot start/.test(error.message)
}
