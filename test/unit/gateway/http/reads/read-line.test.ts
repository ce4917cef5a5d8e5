/** Who gets reply memory and ring room, and in which order: a model with dice, and the claims one by one. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ByteBudget } from '../../../../../src/base/byte-budget.ts'
import { ReadLine } from '../../../../../src/gateway/http/reads/read-line.ts'
import type { ReadAttempt, ReadWaiter } from '../../../../../src/gateway/http/reads/read-line.ts'
import { answerBytesOf, grantOf, ReplyMemory } from '../../../../../src/gateway/http/reads/reply-memory.ts'
import type { ReplyHolding, ReplyParty } from '../../../../../src/gateway/http/reads/reply-memory.ts'
import { limits } from '../../../../../src/model/limits.ts'
import { chosenSeed, diceOf, replayLine } from '../../../../support/log-random.ts'

const MIB = 1024 * 1024
/** The least that a large read reserves. */
const LEAST_BYTES = answerBytesOf(limits.shortReadBytesMin)

/** One read of the model: it notes how it was tried. */
class Read implements ReadWaiter {
  readonly name: string
  readonly lane: string
  readonly holding: ReplyHolding
  readonly wantedBytes: number
  state: 'new' | 'waits' | 'taken' | 'closed' = 'new'
  /** It was tried, and memory was missing: since then it is in the order for that, not for its ring. */
  lacksMemory = false
  readonly #bench: Bench

  constructor(bench: Bench, name: string, party: string, lane: string, wantedBytes: number) {
    this.#bench = bench
    this.name = name
    this.lane = lane
    this.wantedBytes = wantedBytes
    this.holding = bench.memory.open(party)
  }

  get party(): ReplyParty {
    return this.holding.party
  }

  attempt(): ReadAttempt {
    if (this.state === 'closed') return 'taken'
    const heldBefore = this.party.heldBytes
    const reservation = this.holding.reserve(this.wantedBytes)
    this.lacksMemory = reservation !== 'held'
    if (reservation !== 'held') return reservation
    if (this.#bench.fullLanes.has(this.lane)) {
      this.holding.undo()
      return 'rings-full'
    }
    this.#bench.noteTaken(this, heldBefore)
    return 'taken'
  }
}

class Bench {
  readonly budget: ByteBudget
  readonly memory: ReplyMemory
  readonly fullLanes = new Set<string>()
  readonly reads: Read[] = []
  readonly taken: string[] = []
  /** Reads that were taken while one with a better claim waited. */
  readonly unfair: string[] = []
  #isMakingRoom = false
  readonly #roomAskers: (() => void)[] = []
  readonly line: ReadLine

  constructor(limitBytes: number) {
    this.budget = new ByteBudget(limitBytes)
    this.memory = new ReplyMemory(this.budget)
    this.line = new ReadLine({
      whenRoom: callback => void this.#roomAskers.push(callback),
      whenReleased: callback => this.budget.whenReleased(callback),
      onTaken: () => undefined
    })
  }

  enter(name: string, party: string, lane: string, wantedBytes: number): Read {
    const read = new Read(this, name, party, lane, wantedBytes)
    this.reads.push(read)
    this.line.enter(read)
    if (read.state === 'new') read.state = 'waits'
    return read
  }

  makeRoom(lane: string): void {
    this.fullLanes.delete(lane)
    // Those who waited for their ring alone come in the order of their ring.
    this.#isMakingRoom = true
    for (const callback of this.#roomAskers.splice(0)) callback()
    this.#isMakingRoom = false
  }

  /** The client of a read took its answer, or left. */
  close(read: Read): void {
    read.state = 'closed'
    read.holding.close()
  }

  noteTaken(read: Read, heldBefore: number): void {
    read.state = 'taken'
    this.taken.push(read.name)
    if (this.#isMakingRoom) return
    const waiting = this.reads.filter(({ state }) => state === 'waits')
    const better = waiting.find(
      other =>
        waiting.find(({ party }) => party === other.party) === other &&
        other.lacksMemory &&
        !this.fullLanes.has(other.lane) &&
        this.#lacksOnlyMemory(other) &&
        other.party !== read.party &&
        other.party.heldBytes < heldBefore
    )
    if (better !== undefined) this.unfair.push(`${read.name} before ${better.name}`)
  }

  /** True if its party's share would let it in. */
  #lacksOnlyMemory({ party, wantedBytes }: Read): boolean {
    const shareBytes = Math.floor(this.budget.limitBytes / limits.partyReplyShare)
    return grantOf(answerBytesOf(wantedBytes), Math.max(0, shareBytes - party.heldBytes)) > 0
  }

  /** A read that waits though nothing that it needs is missing, and nobody can be ahead of it. */
  findForgotten(): Read | undefined {
    const waiting = this.reads.filter(({ state }) => state === 'waits')
    const isAhead = (other: Read, read: Read): boolean =>
      other.party === read.party
        ? waiting.indexOf(other) < waiting.indexOf(read)
        : other.party.heldBytes <= read.party.heldBytes && this.#lacksOnlyMemory(other)
    return waiting.find(
      read =>
        !this.fullLanes.has(read.lane) &&
        this.#lacksOnlyMemory(read) &&
        grantOf(answerBytesOf(read.wantedBytes), this.budget.roomBytes) > 0 &&
        !waiting.some(other => other !== read && isAhead(other, read))
    )
  }
}

describe('reads that wait', () => {
  test('wait for answers of their own party alone once that has its share', () => {
    const bench = new Bench(64 * MIB)
    const big = 8 * MIB
    const first = bench.enter('a1', 'a', 'x', big)
    let count = 1
    while (bench.line.count === 0) bench.enter(`a${++count}`, 'a', 'x', big)
    assert.ok(bench.budget.usedBytes <= 16 * MIB)
    assert.ok(first.party.isShort)
    const other = bench.enter('b1', 'b', 'x', big)
    assert.equal(other.state, 'taken')
    assert.equal(other.holding.readBytesMax, big)
    assert.ok(!other.party.isShort)
    bench.close(first)
    assert.equal(bench.line.count, 0)
  })

  test('of a party that holds nothing go before those of one that holds much, who came first', () => {
    const bench = new Bench(64 * MIB)
    bench.enter('a1', 'a', 'x', 4 * MIB)
    const restBytes = bench.budget.roomBytes
    assert.ok(bench.budget.tryReserve(restBytes))
    bench.enter('a2', 'a', 'x', MIB)
    bench.enter('b1', 'b', 'x', MIB)
    bench.enter('a3', 'a', 'x', MIB)
    assert.deepEqual(bench.taken, ['a1'])
    bench.budget.release(LEAST_BYTES)
    assert.deepEqual(bench.taken, ['a1', 'b1'])
    bench.budget.release(restBytes - LEAST_BYTES)
    assert.deepEqual(bench.taken, ['a1', 'b1', 'a2', 'a3'])
  })

  test('for memory are not passed by small ones that come later and hold as much', () => {
    const bench = new Bench(64 * MIB)
    const restBytes = 64 * MIB - LEAST_BYTES + 1
    assert.ok(bench.budget.tryReserve(restBytes))
    bench.enter('large', 'a', 'x', MIB)
    bench.enter('small', 'b', 'y', 1)
    assert.deepEqual(bench.taken, [])
    bench.budget.release(restBytes)
    assert.deepEqual(bench.taken, ['large', 'small'])
  })

  test('for a ring hold no memory, stay in order, and do not hold up other partitions', () => {
    const bench = new Bench(64 * MIB)
    bench.fullLanes.add('slow')
    for (const name of ['s1', 's2', 's3']) bench.enter(name, name, 'slow', MIB)
    assert.equal(bench.budget.usedBytes, 0)
    bench.enter('f1', 's1', 'fast', MIB)
    assert.deepEqual(bench.taken, ['f1'])
    bench.makeRoom('slow')
    assert.deepEqual(bench.taken, ['f1', 's1', 's2', 's3'])
  })

  test('are refused when the line is too long, and those in it get through', () => {
    const bench = new Bench(64 * MIB)
    bench.fullLanes.add('a')
    for (let i = 0; i < limits.waitingRequestsMax; i++) bench.enter(`${i}`, 'p', 'a', 1)
    assert.throws(() => bench.enter('one more', 'p', 'a', 1), { code: 'OVERLOADED' })
    bench.fullLanes.delete('a')
    const closed = bench.reads.slice(0, limits.waitingRequestsMax)
    for (const read of closed) bench.close(read)
    bench.makeRoom('a')
    assert.equal(bench.line.count, 0)
  })

  test('none is forgotten, none gets memory before one that holds less, whatever comes and goes', () => {
    const seed = chosenSeed()
    const replay = replayLine(seed, 'test/unit/gateway/http/reads/read-line.test.ts')
    const dice = diceOf(seed)
    for (let round = 0; round < 40; round++) {
      const bench = new Bench(dice.pick([16, 24, 64]) * MIB)
      for (let step = 0; step < 300; step++) {
        const busy = bench.reads.filter(({ state }) => state === 'taken' || state === 'waits')
        const lane = `l${dice.below(3)}`
        if (dice.chance(0.45)) {
          const bytes = dice.pick([1, 100_000, MIB, 8 * MIB])
          bench.enter(`${round}.${step}`, `p${dice.below(5)}`, lane, bytes)
        } else if (dice.chance(0.15)) bench.fullLanes.add(lane)
        else if (dice.chance(0.2)) bench.makeRoom(lane)
        else if (busy.length > 0) actOn(bench, dice.pick(busy), dice)
        // One that left keeps its place until the next release, whoever's that is.
        bench.budget.charge(1)
        bench.budget.release(1)
        assert.deepEqual(bench.unfair, [], replay)
        assert.equal(bench.findForgotten()?.name, undefined, replay)
        assert.equal(bench.line.count >= bench.reads.filter(({ state }) => state === 'waits').length, true, replay)
      }
      for (const lane of ['l0', 'l1', 'l2']) bench.makeRoom(lane)
      // Whoever was taken leaves, until nobody waits: each gets its turn.
      for (let i = 0; i < bench.reads.length * 2; i++) {
        const held = bench.reads.find(({ state }) => state === 'taken')
        if (held !== undefined) bench.close(held)
      }
      const left = bench.reads.filter(({ state }) => state !== 'closed').map(({ name, state }) => `${name} ${state}`)
      assert.deepEqual(left, [], replay)
      assert.deepEqual([bench.budget.usedBytes, bench.memory.partyCount, bench.line.count], [0, 0, 0], replay)
    }
  })
})

/** An answer gets its length, is taken in part, or its client leaves. */
function actOn(bench: Bench, read: Read, dice: ReturnType<typeof diceOf>): void {
  if (read.state === 'waits' || dice.chance(0.4)) bench.close(read)
  else if (dice.chance(0.5)) read.holding.settle(dice.below(dice.pick([1000, MIB, 9 * MIB])))
  else read.holding.take(0)
}
