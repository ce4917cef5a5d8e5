/**
 * Idempotent producers that retry through everything: kills of the process, deaths of a shard, a full disk, failed
 * syncs, each in the middle of requests to one shard and to several, each request sent twice at once. In the end every
 * record is in the log once, in the order of its sequence, at the offset that every answer about it named.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { spawnBroker, waitFor, type SpawnedBroker, type Variant } from '../support/broker.ts'
import { createTopics, readTopics } from '../support/crash-load.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { diceOf, replayLine, type Dice } from '../support/log-random.ts'
import { RetryingProducer } from '../support/retrying-producer.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const FILE = 'test/crash/producers.test.ts'
const ROUNDS = isLong ? 60 : 6
const topics = [{ name: 'alpha', partitions: 5 }]
/** What befalls a shard; `kill` kinds end the process by themselves. */
const faults = [
  'group.write:N=bug',
  'group.sync:N=bug',
  'group.write:N-M=ENOSPC',
  'group.write:N-M=short-ENOSPC',
  'group.sync:N=EIO',
  'group.sync:N=kill',
  'group.sync:N=kill-after',
  'group.write:N=short-kill'
] as const

function drawFault(dice: Dice, shards: number): string {
  const first = 5 + dice.below(40)
  const fault = dice
    .pick(faults)
    .replace('N', String(first))
    .replace('M', String(first + 1 + dice.below(8)))
  return `${dice.below(shards)}/${fault}`
}

describe('idempotent producers that retry until they are told', () => {
  for (const shards of [1, 3] as const) {
    it(`have every record in the log once, through ${ROUNDS} ends of the broker with ${shards} shard(s)`, async t => {
      t.diagnostic(replayLine(seed, FILE))
      const dice = diceOf(seed + shards)
      const dataDir = temporaryDirectory(t)
      const variant = { engine: dice.pick(['uws', 'node'] as const), shards } as Variant
      const producers = Array.from(
        { length: 4 },
        (_, i) => new RetryingProducer(`p${i}`, 'alpha', topics[0]?.partitions ?? 0, diceOf(seed + 100 * i + shards))
      )
      const sent = (): number => producers.reduce((sum, producer) => sum + producer.requests, 0)
      let broker: SpawnedBroker = await spawnBroker(t, { dataDir, variant })
      await createTopics(broker, topics)
      const running = producers.map(producer => producer.run(() => broker))
      const failed = Promise.all(running)
      failed.catch(() => undefined)
      const retried = (): number => producers.reduce((sum, producer) => sum + producer.retries, 0)
      const doubled = (): number => producers.reduce((sum, producer) => sum + producer.duplicates, 0)
      // A kill may meet nobody between a record and its answer: then it takes more of them until there is something to show.
      for (let round = 0; round < ROUNDS || (doubled() === 0 && round < 5 * ROUNDS); round++) {
        const enough = sent() + 20 + dice.below(60)
        const ended = waitFor('requests', () => sent() >= enough || broker.child.signalCode !== null, 30_000)
        await Promise.race([ended, failed.then(() => ended)])
        await broker.kill('SIGKILL')
        const env = round >= ROUNDS - 1 ? {} : { MILLRACE_FAULTS: drawFault(dice, shards) }
        broker = await spawnBroker(t, { dataDir, variant, env })
      }
      for (const producer of producers) producer.stop()
      await failed

      const contents = await readTopics(broker, topics)
      for (const { partition, records } of contents) {
        const found = records.map(record => [record.value, record.offset])
        const expected = producers
          .flatMap(producer => {
            const offsets = producer.acked[partition] ?? []
            return offsets.map((offset, sequence) => [producer.valueOf({ partition, sequence }), offset] as const)
          })
          .sort((a, b) => a[1] - b[1])
        assert.deepEqual(found, expected)
      }
      const records = contents.reduce((sum, part) => sum + part.records.length, 0)
      const [retries, duplicates] = [retried(), doubled()]
      t.diagnostic(
        `${records} records, each once; ${sent()} requests in pairs, ${retries} retried; ${duplicates} answers were duplicates`
      )
      assert.ok(retries > 0 && duplicates > 0 && records > 100, 'the test had something to show')
      assert.deepEqual(await broker.kill('SIGTERM'), { code: 0, signal: null })
    })
  }
})
