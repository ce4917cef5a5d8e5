/** Turns of long requests, counted: the rounds of the event loop are the test's. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENTRIES_A_TURN, LONG_AT_ONCE, RequestTurns } from '../../../../src/gateway/kafka/request-turns.ts'

/** An event loop that goes round when it is told to. */
class Rounds {
  readonly #due: (() => void)[] = []
  readonly turns = new RequestTurns(callback => this.#due.push(callback))

  get isIdle(): boolean {
    return this.#due.length === 0
  }

  /** One round, and all that follows from it without another. */
  async go(): Promise<void> {
    for (const callback of this.#due.splice(0)) callback()
    await new Promise(resolve => setImmediate(resolve))
  }
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

test('a request handles a share of its entries in each round of the event loop, in their order', async () => {
  const rounds = new Rounds()
  const handled: number[] = []
  const entries = numbers(2.5 * ENTRIES_A_TURN)
  const all = rounds.turns.begin().inOrder(entries, entry => {
    handled.push(entry)
    return -entry
  })
  const counts: number[] = []
  for (;;) {
    await rounds.go()
    counts.push(handled.length)
    if (rounds.isIdle) break
  }
  assert.deepEqual(counts, [ENTRIES_A_TURN, 2 * ENTRIES_A_TURN, entries.length])
  assert.deepEqual(handled, entries)
  assert.deepEqual(
    await all,
    entries.map(entry => -entry)
  )
})

test('entries that are handled together have one share, and are told in their order', async () => {
  const rounds = new Rounds()
  const entries = numbers(3 * ENTRIES_A_TURN)
  let handled = 0
  let most = 0
  const all = rounds.turns.begin().together(entries, entry => {
    handled++
    return Promise.resolve(-entry)
  })
  do {
    const before = handled
    await rounds.go()
    most = Math.max(most, handled - before)
  } while (!rounds.isIdle)
  // Those that were begun when the share was used up are carried on.
  assert.ok(most < 2 * ENTRIES_A_TURN, `${most} in one round`)
  assert.deepEqual(
    await all,
    entries.map(entry => -entry)
  )
})

test('of many long requests one goes on in each round, and each has its turn', async () => {
  const rounds = new Rounds()
  const handled = new Map<string, number>()
  const requests = ['first', 'second', 'third'].map(name =>
    rounds.turns.begin().inOrder(numbers(2 * ENTRIES_A_TURN), () => {
      handled.set(name, (handled.get(name) ?? 0) + 1)
    })
  )
  const order: string[] = []
  await rounds.go()
  while (!rounds.isIdle) {
    const before = new Map(handled)
    await rounds.go()
    const gone = [...handled].filter(([name, count]) => count !== before.get(name)).map(([name]) => name)
    assert.ok(gone.length <= 1, `${gone.join(' and ')} went on in one round`)
    order.push(...gone)
  }
  await Promise.all(requests)
  assert.deepEqual(order, ['first', 'second', 'third'])
})

test('few requests are long at once, and the next one is when another is over', async () => {
  const rounds = new Rounds()
  const handled = new Map<number, number>()
  const paces = numbers(LONG_AT_ONCE + 2).map(() => rounds.turns.begin())
  const requests = paces.map((pace, index) =>
    pace.inOrder(numbers(2 * ENTRIES_A_TURN), () => handled.set(index, (handled.get(index) ?? 0) + 1))
  )
  const over = () => [...handled.values()].filter(count => count === 2 * ENTRIES_A_TURN).length
  await rounds.go()
  while (!rounds.isIdle) await rounds.go()
  assert.equal(over(), LONG_AT_ONCE)
  assert.deepEqual([...handled.values()].slice(LONG_AT_ONCE), [ENTRIES_A_TURN, ENTRIES_A_TURN])
  // One that fails while it waits does not take the place of another.
  paces[LONG_AT_ONCE]?.end()
  paces[0]?.end()
  await rounds.go()
  while (!rounds.isIdle) await rounds.go()
  assert.equal(over(), LONG_AT_ONCE + 2)
  await Promise.all(requests)
})

test('a request is not long before it is the first of its connection', async () => {
  const rounds = new Rounds()
  let becomeFirst = (): void => assert.fail('nobody asked')
  let handled = 0
  const request = rounds.turns
    .begin(callback => (becomeFirst = callback))
    .inOrder(numbers(2 * ENTRIES_A_TURN), () => handled++)
  await rounds.go()
  assert.equal(handled, ENTRIES_A_TURN)
  assert.ok(rounds.isIdle)
  becomeFirst()
  await rounds.go()
  while (!rounds.isIdle) await rounds.go()
  assert.equal((await request).length, 2 * ENTRIES_A_TURN)
})

test('what fails ends the request, and nothing further is handled', async () => {
  const rounds = new Rounds()
  let handled = 0
  const fail = async (): Promise<void> => {
    handled++
    await Promise.resolve()
    throw new Error('planted')
  }
  await assert.rejects(rounds.turns.begin().inOrder(numbers(10), fail), /planted/)
  assert.equal(handled, 1)
  await assert.rejects(rounds.turns.begin().together(numbers(1000), fail), /planted/)
  await rounds.go()
  assert.ok(handled < 100, `${handled} were handled`)
})
