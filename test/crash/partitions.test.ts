/** kill −9 while topics get more partitions: each has the old number or the new one, and every answered one. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { isLong, seed } from '../support/crash-run.ts'
import { spawnBroker, startBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { diceOf, replayLine } from '../support/log-random.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const topics = ['a', 'b', 'c'] as const
const ROUNDS = isLong ? 40 : 4
const flags = { '--shards': '3' }

/** What clients know of a broker whose topics grow: they judge it after each kill. */
class Ledger {
  /** What was answered, and what was asked for. */
  readonly counts = new Map<string, { has: number; asked: number }>()
  /** Values that were acknowledged, by topic and partition. */
  readonly #written = new Map<string, string[]>()

  /** The topic has what was answered, or what was asked for, and each partition what was written to it. */
  async judge(api: HttpApi, topic: string): Promise<void> {
    const state = this.counts.get(topic)
    const { length } = (await api.describe(topic)).partitions
    assert.ok(state !== undefined)
    assert.ok(length === state.has || length === state.asked, `${topic} has ${length} of ${JSON.stringify(state)}`)
    this.counts.set(topic, { has: length, asked: length })
    for (let partition = 0; partition < length; partition++) {
      const values = (await api.consumeAll(topic, partition)).map(({ value }) => value)
      assert.deepEqual(values, this.#written.get(`${topic}/${partition}`) ?? [], `${topic}/${partition}`)
    }
  }

  /** One more record in each of the partitions. */
  async write(api: HttpApi, topic: string, value: string): Promise<void> {
    for (let partition = 0; partition < (this.counts.get(topic)?.has ?? 0); partition++) {
      await api.produce(topic, [{ partition, value }])
      const key = `${topic}/${partition}`
      this.#written.set(key, [...(this.#written.get(key) ?? []), value])
    }
  }
}

test('partitions that were answered are there after a kill, those that were not are there or not, and all take records', async t => {
  t.diagnostic(replayLine(seed, 'test/crash/partitions.test.ts'))
  const dice = diceOf(seed)
  const dataDir = temporaryDirectory(t)
  const ledger = new Ledger()

  for (let round = 0; round < ROUNDS; round++) {
    const broker = await spawnBroker(t, { dataDir, flags })
    const api = new HttpApi(broker.url)
    for (const topic of topics) {
      if (ledger.counts.has(topic)) {
        await ledger.judge(api, topic)
        await ledger.write(api, topic, `${round}`)
      } else {
        await api.createTopic(topic, 1)
        ledger.counts.set(topic, { has: 1, asked: 1 })
      }
    }
    const exit = once(broker.child, 'exit')
    const killAfter = 1 + dice.below(8)
    let answered = 0
    const growing = topics.map(async topic => {
      const state = ledger.counts.get(topic) as { has: number; asked: number }
      for (;;) {
        state.asked = state.has + 1 + dice.below(3)
        const answer = await api.post(`/topics/${topic}/partitions`, { partitions: state.asked }).catch(() => null)
        if (answer === null) return
        assert.equal(answer.status, 200, answer.text)
        state.has = state.asked
        if (++answered === killAfter) broker.child.kill('SIGKILL')
      }
    })
    await Promise.all([...growing, exit])
  }
})

test('who judges that sees a partition that is missing, a record that is lost, and one that nobody wrote', async t => {
  const api = new HttpApi((await startBroker(t)).url)
  await api.createTopic('a', 2)
  const ledger = new Ledger()
  const judge = () => ledger.judge(api, 'a')
  ledger.counts.set('a', { has: 3, asked: 4 })
  await assert.rejects(judge(), /a has 2 of/)
  ledger.counts.set('a', { has: 2, asked: 2 })
  await ledger.write(api, 'a', 'v')
  await judge()
  await api.post('/topics/a/delete-records', { partition: 1, offset: 1 })
  await assert.rejects(judge(), /a\/1/)
  await ledger.write(api, 'a', 'w')
  await assert.rejects(judge(), /a\/1/)
  const other = new Ledger()
  other.counts.set('a', { has: 2, asked: 2 })
  await assert.rejects(other.judge(api, 'a'), /a\/0/)
})
