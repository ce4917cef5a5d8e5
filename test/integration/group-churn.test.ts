/**
 * Fifty members of a group that come, go and fall silent over a hundred partitions: no partition has two owners in one
 * generation, and each has one whenever the group has come to rest. A few seconds long; a minute with MILLRACE_LONG=1.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { isLong, seed } from '../support/crash-run.ts'
import { waitFor } from '../support/broker.ts'
import { onBothEngines, parse, type HttpApi } from '../support/http-api.ts'
import { diceOf, replayLine } from '../support/log-random.ts'

const FILE = 'test/integration/group-churn.test.ts'
const CHURN_MS = isLong ? 60_000 : 4_000
const MEMBERS = 50
/** Steps without a silent member that there are at least. */
const RESTS_MIN = 4
const topics = { orders: 60, billing: 40 }
/** As a consumer would send them, ten times as often: the churn is as much faster. */
const HEARTBEAT_MS = 100
const TIMEOUT_MS = 2_500

interface Assigned {
  readonly generation: number
  readonly assignment: readonly { readonly topic: string; readonly partition: number }[]
}

/** Who said it owns what, by generation; throws at the second owner. */
class Claims {
  readonly #byGeneration = new Map<number, Map<string, string>>()
  count = 0

  note(member: string, { generation, assignment }: Assigned): string[] {
    const owners = this.#byGeneration.get(generation) ?? new Map<string, string>()
    this.#byGeneration.set(generation, owners)
    return assignment.map(({ topic, partition }) => {
      const place = `${topic}/${partition}`
      const owner = owners.get(place)
      assert.ok(owner === undefined || owner === member, `${place} is of ${owner} and of ${member} in ${generation}`)
      owners.set(place, member)
      this.count++
      return place
    })
  }
}

/** A consumer that joins, sends heartbeats and fetches what it is told to, until it leaves or falls silent. */
class Consumer {
  readonly id: string
  generation = 0
  partitions: readonly string[] = []
  rejoined = 0
  readonly #api: HttpApi
  readonly #claims: Claims
  #isOver = false
  #running: Promise<void> = Promise.resolve()

  constructor(id: string, api: HttpApi, claims: Claims) {
    this.id = id
    this.#api = api
    this.#claims = claims
  }

  async start(): Promise<void> {
    await this.#join()
    this.#running = this.#live()
  }

  /** Says nothing any more. */
  async fallSilent(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  async leave(): Promise<void> {
    await this.fallSilent()
    assert.equal((await this.#api.post('/groups/g/leave', { member_id: this.id })).status, 204)
  }

  async #join(): Promise<void> {
    this.#take(parse(await this.#api.post('/groups/g/join', { topics: Object.keys(topics), member_id: this.id })))
  }

  #take(assigned: Assigned): void {
    // Answers may pass each other: an older generation says nothing new.
    if (assigned.generation < this.generation) return
    this.partitions = this.#claims.note(this.id, assigned)
    this.generation = assigned.generation
  }

  async #live(): Promise<void> {
    while (!this.#isOver) {
      const body = { member_id: this.id, generation: this.generation }
      const { status } = parse<{ status: string }>(await this.#api.post('/groups/g/heartbeat', body))
      if (status === 'rebalance_required')
        this.#take(parse(await this.#api.get(`/groups/g/assignment?member_id=${this.id}`)))
      else if (status === 'unknown_member') {
        this.rejoined++
        await this.#join()
      } else await pause(HEARTBEAT_MS)
    }
  }
}

const all = Object.entries(topics)
  .flatMap(([topic, count]) => Array.from({ length: count }, (_, partition) => `${topic}/${partition}`))
  .sort()

/** All consumers know one generation, and have everything once, evenly. */
function isAtRest(consumers: readonly Consumer[]): boolean {
  const generations = new Set(consumers.map(({ generation }) => generation))
  if (generations.size !== 1) return false
  const owned = consumers.flatMap(({ partitions }) => partitions).sort()
  assert.equal(new Set(owned).size, owned.length, 'two owners')
  if (owned.length < all.length) return false
  assert.deepEqual(owned, all)
  const sizes = consumers.map(({ partitions }) => partitions.length)
  assert.ok(Math.max(...sizes) - Math.min(...sizes) <= 1, `shares of ${sizes.join()}`)
  return true
}

function quantile(sorted: readonly number[], share: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN).toFixed(0)
}

onBothEngines(
  'a group that changes all the time has one owner for each partition',
  async (t, api) => {
    t.diagnostic(replayLine(seed, FILE))
    const dice = diceOf(seed)
    for (const [topic, count] of Object.entries(topics)) await api.createTopic(topic, count)
    const claims = new Claims()
    let nextId = 0
    const newConsumer = (): Consumer => new Consumer(`m${nextId++}`, api, claims)
    const consumers = Array.from({ length: MEMBERS }, newConsumer)
    await Promise.all(consumers.map(consumer => consumer.start()))
    const restMs: number[] = []
    const evictionMs: number[] = []
    let changes = 0
    const startMs = performance.now()
    // A silent one may take all of a short run.
    while (performance.now() - startMs < CHURN_MS || restMs.length < RESTS_MIN) {
      // Some leave, some come, together; now and then one is silent instead, and is found out.
      const leaving = Array.from(
        { length: 1 + dice.below(4) },
        () => consumers.splice(dice.below(consumers.length), 1)[0]
      )
      const coming = Array.from({ length: MEMBERS - consumers.length }, newConsumer)
      const isSilent = dice.chance(0.05)
      consumers.push(...coming)
      const changedMs = performance.now()
      await Promise.all([
        ...leaving.map((consumer, i) => (isSilent && i === 0 ? consumer?.fallSilent() : consumer?.leave())),
        ...coming.map(consumer => consumer.start())
      ])
      changes += leaving.length + coming.length
      await waitFor('rest', () => isAtRest(consumers), 20_000)
      ;(isSilent ? evictionMs : restMs).push(performance.now() - changedMs)
    }
    for (const consumer of consumers) await consumer.leave()
    assert.equal(
      consumers.reduce((sum, { rejoined }) => sum + rejoined, 0),
      0,
      'nobody who sent heartbeats was removed'
    )
    restMs.sort((a, b) => a - b)
    evictionMs.sort((a, b) => a - b)
    t.diagnostic(
      `${changes} members came or went in ${restMs.length + evictionMs.length} steps; at rest after p50 ${quantile(restMs, 0.5)} ms, ` +
        `p99 ${quantile(restMs, 0.99)} ms (heartbeats every ${HEARTBEAT_MS} ms); with a silent one, of ${evictionMs.length}, p50 ` +
        `${quantile(evictionMs, 0.5)} ms (time-out ${TIMEOUT_MS} ms, looked for every 2 s)`
    )
    assert.ok(claims.count > 1000 && restMs.length >= RESTS_MIN, 'something happened')
  },
  { flags: { '--coord-member-timeout': `${TIMEOUT_MS}ms` } }
)

test('the check of owners finds a second one', () => {
  const claims = new Claims()
  const assigned = { generation: 3, assignment: [{ topic: 'orders', partition: 1 }] }
  claims.note('a', assigned)
  claims.note('a', assigned)
  claims.note('b', { ...assigned, generation: 4 })
  assert.throws(() => claims.note('b', assigned), /orders\/1 is of a and of b in 3/)
})
