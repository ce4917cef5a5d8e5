/** kill −9 while topics get more partitions: each has the old number or the new one, and every answered one. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { isLong, seed } from '../support/crash-run.ts'
import { spawnBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { diceOf, replayLine } from '../support/log-random.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const topics = ['a', 'b', 'c'] as const
const ROUNDS = isLong ? 40 : 4
const flags = { '--shards': '3' }

test('partitions that were answered are there after a kill, those that were not are there or not, and all take records', async t => {
  t.diagnostic(replayLine(seed, 'test/crash/partitions.test.ts'))
  const dice = diceOf(seed)
  const dataDir = temporaryDirectory(t)
  /** What was answered, and what was asked for. */
  const known = new Map<string, { has: number; asked: number }>()
  /** Values that were acknowledged, by topic and partition. */
  const written = new Map<string, string[]>()

  for (let round = 0; round < ROUNDS; round++) {
    const broker = await spawnBroker(t, { dataDir, flags })
    const api = new HttpApi(broker.url)
    for (const topic of topics) {
      const state = known.get(topic)
      if (state === undefined) {
        await api.createTopic(topic, 1)
        known.set(topic, { has: 1, asked: 1 })
        continue
      }
      const { length } = (await api.describe(topic)).partitions
      assert.ok(length === state.has || length === state.asked, `${topic} has ${length} of ${JSON.stringify(state)}`)
      known.set(topic, { has: length, asked: length })
      for (let partition = 0; partition < length; partition++) {
        const key = `${topic}/${partition}`
        const values = (await api.consumeAll(topic, partition)).map(({ value }) => value)
        assert.deepEqual(values, written.get(key) ?? [], key)
        await api.produce(topic, [{ partition, value: `${round}` }])
        written.set(key, [...values, `${round}`])
      }
    }
    const exit = once(broker.child, 'exit')
    const killAfter = 1 + dice.below(8)
    let answered = 0
    const growing = topics.map(async topic => {
      const state = known.get(topic) as { has: number; asked: number }
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
