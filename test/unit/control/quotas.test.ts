/** Quotas of keys, over a clock of the test: what is taken, what is refused and for how long, what is forgotten. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Quotas } from '../../../src/control/quotas.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { limits } from '../../../src/model/limits.ts'
import { anonymous, type Principal } from '../../../src/model/principal.ts'
import { ManualClock } from '../../support/log-harness.ts'
import { chosenSeed, diceOf, replayLine } from '../../support/log-random.ts'

function keyWith(produceBytesPerSec: number | null, consumeBytesPerSec: number | null, keyId = 'key_1'): Principal {
  return { ...anonymous, keyId, isAdmin: false, produceBytesPerSec, consumeBytesPerSec }
}

/** Quotas and the clock they go by. */
function stage(): { clock: ManualClock; quotas: Quotas } {
  const clock = new ManualClock()
  return { clock, quotas: new Quotas(clock) }
}

/** The wait that a refusal names, as both protocols show it: '0.5s, Retry-After 1'; 'none': it was none. */
function waitOf(refusal: BrokerError | null): string {
  if (refusal === null) return 'none'
  assert.equal(refusal.code, 'RATE_LIMITED')
  assert.equal(refusal.written, 'no')
  const seconds = /retry in (\d+\.\d)s$/.exec(refusal.message)?.[1]
  return `${seconds}s, Retry-After ${refusal.details['retryAfterSeconds']}`
}

describe('the produce quota of a key', () => {
  it('starts with one second of its rate, and no more', () => {
    const { quotas } = stage()
    const key = keyWith(1000, null)
    assert.equal(quotas.takeProduce(key, 1000), null)
    assert.equal(waitOf(quotas.takeProduce(key, 1)), '0.1s, Retry-After 1')
    assert.equal(quotas.takeProduce(key, 0), null, 'what costs nothing passes')
  })

  it('fills continuously, up to one second of its rate however long nothing is asked', () => {
    const { clock, quotas } = stage()
    const key = keyWith(1000, null)
    assert.equal(quotas.takeProduce(key, 1000), null)
    clock.wallMs += 250
    assert.equal(quotas.takeProduce(key, 250), null)
    assert.equal(waitOf(quotas.takeProduce(key, 500)), '0.5s, Retry-After 1')
    clock.wallMs += 3_600_000
    assert.equal(quotas.takeProduce(key, 1000), null)
    assert.equal(waitOf(quotas.takeProduce(key, 1)), '0.1s, Retry-After 1')
  })

  it('lets through who waited as long as it was told, and takes nothing for a refusal', () => {
    const { clock, quotas } = stage()
    const key = keyWith(1000, null)
    quotas.takeProduce(key, 900)
    for (let i = 0; i < 10; i++) assert.equal(waitOf(quotas.takeProduce(key, 1000)), '0.9s, Retry-After 1')
    clock.wallMs += 899
    assert.equal(waitOf(quotas.takeProduce(key, 1000)), '0.1s, Retry-After 1')
    clock.wallMs += 1
    assert.equal(quotas.takeProduce(key, 1000), null)
  })

  it('never lets through a request of more than a whole second, and says so', () => {
    const { clock, quotas } = stage()
    const key = keyWith(1000, null)
    for (let i = 0; i < 3; i++) {
      const refusal = quotas.takeProduce(key, 1001)
      assert.equal(waitOf(refusal), '1.0s, Retry-After 1')
      assert.match(refusal?.message ?? '', /1001 bytes.*more than the 1000.*send fewer at once/)
      clock.wallMs += 1000
    }
    assert.equal(quotas.takeProduce(key, 1000), null, 'they cost nothing')
  })

  it('says what was asked, what is left and what the rate is', () => {
    const { quotas } = stage()
    const key = keyWith(1000, null)
    quotas.takeProduce(key, 800)
    assert.match(quotas.takeProduce(key, 300)?.message ?? '', /300 bytes.*200 are left of the 1000 a second/)
  })

  it('has again what is given back, and never more than a second of its rate', () => {
    const { clock, quotas } = stage()
    const key = keyWith(1000, null)
    quotas.takeProduce(key, 600)
    quotas.giveBackProduce(key, 600)
    assert.equal(quotas.takeProduce(key, 1000), null)
    clock.wallMs += 900
    quotas.giveBackProduce(key, 1000)
    assert.equal(quotas.takeProduce(key, 1000), null)
    assert.notEqual(quotas.takeProduce(key, 1), null)
  })
})

describe('the debt of a key that produces batches', () => {
  it('is waited out, is at most ten seconds of its rate, and comes back with what was not written', () => {
    const { clock, quotas } = stage()
    const key = keyWith(1000, null)
    assert.equal(quotas.produceWaitMs(key), 0)
    assert.equal(quotas.borrowProduce(key, 4000), null)
    assert.equal(quotas.produceWaitMs(key), 3001)
    assert.match(quotas.borrowProduce(key, 7001)?.message ?? '', /7001 bytes.* gives 1000 a second/)
    assert.equal(waitOf(quotas.borrowProduce(key, 7001)), '0.1s, Retry-After 1')
    assert.equal(quotas.borrowProduce(key, 7000), null)
    quotas.giveBackProduce(key, 7000)
    clock.wallMs += 3000
    assert.equal(quotas.produceWaitMs(key), 1)
    clock.wallMs += 1
    assert.equal(quotas.produceWaitMs(key), 0)
  })

  it('is never that of a batch beyond eleven seconds of its rate, and others refuse while it lasts', () => {
    const { quotas } = stage()
    const key = keyWith(1000, null)
    assert.match(quotas.borrowProduce(key, 11_001)?.message ?? '', /send fewer at once/)
    assert.equal(quotas.borrowProduce(key, 11_000), null)
    assert.equal(waitOf(quotas.takeProduce(key, 1000)), '11.0s, Retry-After 11')
    assert.match(quotas.takeProduce(key, 1000)?.message ?? '', /0 are left/)
    const free = keyWith(null, null)
    assert.deepEqual([quotas.borrowProduce(free, 2 ** 31), quotas.produceWaitMs(free)], [null, 0])
  })
})

describe('the consume quota of a key', () => {
  it('says how long reads wait, and how much of one can be charged', () => {
    const { clock, quotas } = stage()
    const key = keyWith(null, 1000)
    assert.deepEqual(quotas.readAllowance(key), { waitMs: 0, roomBytes: 11_000 })
    quotas.chargeConsume(key, 3000)
    assert.deepEqual(quotas.readAllowance(key), { waitMs: 2001, roomBytes: 8000 })
    clock.wallMs += 2500
    assert.deepEqual(quotas.readAllowance(key), { waitMs: 0, roomBytes: 10_500 })
    assert.equal(quotas.readAllowance(keyWith(1000, null)), null)
  })

  it('refuses only while nothing is left, whatever is asked for', () => {
    const { clock, quotas } = stage()
    const key = keyWith(null, 1000)
    quotas.chargeConsume(key, 999)
    assert.equal(quotas.refusalOfConsume(key), null, 'one byte is left')
    quotas.chargeConsume(key, 1)
    assert.equal(waitOf(quotas.refusalOfConsume(key)), '0.1s, Retry-After 1')
    clock.wallMs += 1
    assert.equal(quotas.refusalOfConsume(key), null)
  })

  it('goes into debt for a read that was larger, and refuses until that is paid', () => {
    const { clock, quotas } = stage()
    const key = keyWith(null, 1000)
    quotas.chargeConsume(key, 3500)
    const refusal = quotas.refusalOfConsume(key)
    assert.equal(waitOf(refusal), '2.6s, Retry-After 3')
    assert.match(refusal?.message ?? '', /1000 bytes a second, and 2500 bytes beyond it/)
    clock.wallMs += 2500
    assert.equal(waitOf(quotas.refusalOfConsume(key)), '0.1s, Retry-After 1')
    clock.wallMs += 1
    assert.equal(quotas.refusalOfConsume(key), null)
  })

  it('owes ten seconds of its rate at the most', () => {
    const { clock, quotas } = stage()
    const key = keyWith(null, 1000)
    for (let i = 0; i < 5; i++) quotas.chargeConsume(key, 8 * 1024 * 1024)
    assert.equal(waitOf(quotas.refusalOfConsume(key)), '10.1s, Retry-After 11')
    clock.wallMs += 10_001
    assert.equal(quotas.refusalOfConsume(key), null)
  })

  it('costs nothing for an empty answer', () => {
    const { quotas } = stage()
    const key = keyWith(null, 1)
    for (let i = 0; i < 100; i++) quotas.chargeConsume(key, 0)
    assert.deepEqual([quotas.refusalOfConsume(key), quotas.bucketCount], [null, 1])
  })
})

describe('quotas', () => {
  it('of one key say nothing about another, nor those of produce about consume', () => {
    const { quotas } = stage()
    const [first, second] = [keyWith(100, 100, 'key_1'), keyWith(100, 100, 'key_2')]
    assert.equal(quotas.takeProduce(first, 100), null)
    assert.notEqual(quotas.takeProduce(first, 1), null)
    assert.equal(quotas.refusalOfConsume(first), null)
    assert.equal(quotas.takeProduce(second, 100), null)
    quotas.chargeConsume(second, 100)
    assert.notEqual(quotas.refusalOfConsume(second), null)
    assert.equal(quotas.refusalOfConsume(first), null)
  })

  it('hold for an administrator that has some', () => {
    const { quotas } = stage()
    const admin = { ...keyWith(10, 10), isAdmin: true }
    quotas.chargeConsume(admin, 10)
    assert.equal(waitOf(quotas.refusalOfConsume(admin)), '0.1s, Retry-After 1')
    assert.equal(waitOf(quotas.takeProduce(admin, 11)), '1.0s, Retry-After 1')
  })

  it('are none for everybody while authentication is off, nor for a key without any', () => {
    const { quotas } = stage()
    for (const who of [anonymous, keyWith(null, null)]) {
      for (let i = 0; i < 10; i++) {
        assert.equal(quotas.takeProduce(who, 2 ** 31), null)
        quotas.chargeConsume(who, 2 ** 31)
        assert.equal(quotas.refusalOfConsume(who), null)
      }
    }
    assert.equal(quotas.bucketCount, 0)
  })

  it('keep no memory of keys that rest, and forget no debt', () => {
    const { clock, quotas } = stage()
    const debtor = keyWith(null, 1000, 'debtor')
    quotas.chargeConsume(debtor, 1_000_000)
    let largest = 0
    for (let i = 0; i < 20 * limits.idleBucketsMax; i++) {
      assert.equal(quotas.takeProduce(keyWith(1000, 1000, `produce ${i}`), 500), null)
      quotas.chargeConsume(keyWith(1000, 1000, `consume ${i}`), 500)
      largest = Math.max(largest, quotas.bucketCount)
      if (i % 500 === 0) clock.wallMs += 100
    }
    // 500 new keys each 100 ms, of which each is full again after 500 ms.
    assert.ok(largest <= 2 * 2 * (2500 + limits.idleBucketsMax), `${largest} buckets were kept`)
    assert.match(waitOf(quotas.refusalOfConsume(debtor)), /^[56]\.\ds/)
  })

  it('never let through more than the rate and one second of it, whatever is asked when', () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    const { clock, quotas } = stage()
    const startMs = clock.wallMs
    const rate = 1 + dice.below(100_000)
    const key = keyWith(rate, null)
    let taken = 0
    for (let i = 0; i < 5000; i++) {
      const bytes = dice.below(Math.ceil(rate * 1.2))
      if (quotas.takeProduce(key, bytes) === null) {
        const isRefusedLater = dice.chance(0.2)
        if (isRefusedLater) quotas.giveBackProduce(key, bytes)
        else taken += bytes
      }
      const most = rate + (rate * (clock.wallMs - startMs)) / 1000
      assert.ok(taken <= most, `${taken} of ${most}; ${replayLine(seed, 'test/unit/control/quotas.test.ts')}`)
      clock.wallMs += dice.below(300)
    }
    assert.ok(taken > rate * 10, replayLine(seed, 'test/unit/control/quotas.test.ts'))
  })
})
