/**
 * The byte quotas of keys: one token bucket for produce and one for consume per key, whatever protocol it speaks (spec 2.11).
 * Main thread only; pure but for the buckets it owns. Knows no request: who asks is told how many bytes.
 *
 *   produce   enough, and taken before anything is written; else refused. What is refused later is given back
 *   batches   taken before anything is written, into debt; who is in debt is made to wait before it is taken (KIP-219)
 *   consume   refused only while nothing is left; what was read is charged afterwards and may leave a debt
 *
 * A bucket that is full says nothing that its absence does not: it is dropped, and a key that rests costs no memory.
 */
import type { Clock } from '../base/clock.ts'
import { assert } from '../base/assert.ts'
import type { ReadAllowance } from '../model/batches.ts'
import { BrokerError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import type { Principal } from '../model/principal.ts'

/** Credits are counted in thousandths of a byte: a rate in bytes a second times milliseconds, without rounding. */
const CREDITS_PER_BYTE = 1000

/** Holds what a rate gives in quotaBurstMs, starts full, refills continuously, and goes into debt if it is made to. */
export class TokenBucket {
  readonly bytesPerSec: number
  #credits: number
  #atMs: number

  constructor(bytesPerSec: number, nowMs: number) {
    assert(bytesPerSec > 0, 'a quota of nothing is no quota')
    this.bytesPerSec = bytesPerSec
    this.#credits = this.#capacity
    this.#atMs = nowMs
  }

  /** Takes the bytes if there are so many. @returns ms until there will be; 0: taken; null: there never will. */
  tryTake(bytes: number, nowMs: number): number | null {
    this.#refill(nowMs)
    const credits = bytes * CREDITS_PER_BYTE
    if (credits > this.#capacity) return null
    if (credits > this.#credits) return Math.ceil((credits - this.#credits) / this.bytesPerSec)
    this.#credits -= credits
    return 0
  }

  giveBack(bytes: number, nowMs: number): void {
    this.#refill(nowMs)
    this.#credits = Math.min(this.#capacity, this.#credits + bytes * CREDITS_PER_BYTE)
  }

  /** Ms until there is something in it; 0: there is. */
  waitMs(nowMs: number): number {
    this.#refill(nowMs)
    return this.#credits > 0 ? 0 : Math.floor(-this.#credits / this.bytesPerSec) + 1
  }

  /** Takes the bytes, whatever is there: down to what the rate gives in quotaDebtMs. */
  charge(bytes: number, nowMs: number): void {
    this.#refill(nowMs)
    this.#credits = Math.max(this.#floor, this.#credits - bytes * CREDITS_PER_BYTE)
  }

  /** Takes the bytes unless that would leave a deeper debt than there may be. @returns as tryTake does. */
  tryBorrow(bytes: number, nowMs: number): number | null {
    this.#refill(nowMs)
    const credits = bytes * CREDITS_PER_BYTE
    if (credits > this.#capacity - this.#floor) return null
    const missing = credits - (this.#credits - this.#floor)
    if (missing > 0) return Math.ceil(missing / this.bytesPerSec)
    this.#credits -= credits
    return 0
  }

  /** Bytes that can be taken before the debt is as deep as it gets. */
  roomBytes(nowMs: number): number {
    this.#refill(nowMs)
    return Math.floor((this.#credits - this.#floor) / CREDITS_PER_BYTE)
  }

  isFull(nowMs: number): boolean {
    this.#refill(nowMs)
    return this.#credits === this.#capacity
  }

  /** Whole bytes in it; negative: the debt. */
  get balanceBytes(): number {
    return Math.floor(this.#credits / CREDITS_PER_BYTE)
  }

  get #capacity(): number {
    return this.bytesPerSec * limits.quotaBurstMs
  }

  get #floor(): number {
    return -this.bytesPerSec * limits.quotaDebtMs
  }

  #refill(nowMs: number): void {
    const earned = (nowMs - this.#atMs) * this.bytesPerSec
    this.#atMs = nowMs
    this.#credits = Math.min(this.#capacity, this.#credits + earned)
  }
}

/** The buckets of one direction, by key id. */
class KeyBuckets {
  readonly #buckets = new Map<string, TokenBucket>()
  #sweepAt: number = limits.idleBucketsMax

  get count(): number {
    return this.#buckets.size
  }

  /** The bucket of a key; a full one if it has none. A changed rate begins anew. */
  of(keyId: string, bytesPerSec: number, nowMs: number): TokenBucket {
    let bucket = this.#buckets.get(keyId)
    if (bucket === undefined || bucket.bytesPerSec !== bytesPerSec) {
      if (this.#buckets.size >= this.#sweepAt) this.#sweep(nowMs)
      bucket = new TokenBucket(bytesPerSec, nowMs)
      this.#buckets.set(keyId, bucket)
    }
    return bucket
  }

  /** Drops what is full again. The next sweep comes when there are twice as many: its cost per new bucket is constant. */
  #sweep(nowMs: number): void {
    for (const [keyId, bucket] of this.#buckets) if (bucket.isFull(nowMs)) this.#buckets.delete(keyId)
    this.#sweepAt = Math.max(limits.idleBucketsMax, 2 * this.#buckets.size)
  }
}

export class Quotas {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #produce = new KeyBuckets()
  readonly #consume = new KeyBuckets()

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Buckets that are kept, of both directions: bounded by idleBucketsMax, or twice those that are not full. */
  get bucketCount(): number {
    return this.#produce.count + this.#consume.count
  }

  /** Takes what a produce of so many bytes of keys and values costs. @returns null, or why it is refused: then nothing is taken. */
  takeProduce(who: Principal, bytes: number): BrokerError | null {
    const rate = who.produceBytesPerSec ?? null
    if (rate === null) return null
    const nowMs = this.#clock.monotonicMs()
    const bucket = this.#produce.of(who.keyId, rate, nowMs)
    const waitMs = bucket.tryTake(bytes, nowMs)
    if (waitMs === 0) return null
    const asked = `the request has ${bytes} bytes of keys and values`
    if (waitMs === null) {
      const problem = `${asked}, more than the ${rate} that the produce quota of this key gives in a second: send fewer at once`
      return rateLimited(problem, limits.quotaBurstMs)
    }
    const left = `${Math.max(0, bucket.balanceBytes)} are left of the ${rate} a second that the produce quota of this key gives`
    return rateLimited(`${asked}, and ${left}; nothing was written`, waitMs)
  }

  /** The same of a batch of so many bytes, into debt: refused only if that would be deeper than it may be. */
  borrowProduce(who: Principal, bytes: number): BrokerError | null {
    const rate = who.produceBytesPerSec ?? null
    if (rate === null) return null
    const nowMs = this.#clock.monotonicMs()
    const waitMs = this.#produce.of(who.keyId, rate, nowMs).tryBorrow(bytes, nowMs)
    if (waitMs === 0) return null
    const problem = `the batch has ${bytes} bytes, and the produce quota of this key gives ${rate} a second`
    const late = `${problem}: nothing was written of what would take it further into debt`
    const never = `${problem}: send fewer at once`
    return rateLimited(waitMs === null ? never : late, waitMs ?? limits.quotaDebtMs)
  }

  /** Ms until the key may produce more; 0: it may now, or has no quota. */
  produceWaitMs(who: Principal): number {
    const rate = who.produceBytesPerSec ?? null
    if (rate === null) return 0
    const nowMs = this.#clock.monotonicMs()
    return this.#produce.of(who.keyId, rate, nowMs).waitMs(nowMs)
  }

  /** What the key may read now; null: as much as it likes. */
  readAllowance(who: Principal): ReadAllowance | null {
    const rate = who.consumeBytesPerSec ?? null
    if (rate === null) return null
    const nowMs = this.#clock.monotonicMs()
    const bucket = this.#consume.of(who.keyId, rate, nowMs)
    return { waitMs: bucket.waitMs(nowMs), roomBytes: bucket.roomBytes(nowMs) }
  }

  /** Gives back what takeProduce or borrowProduce took for a produce of which nothing was written. */
  giveBackProduce(who: Principal, bytes: number): void {
    const rate = who.produceBytesPerSec ?? null
    if (rate === null) return
    const nowMs = this.#clock.monotonicMs()
    this.#produce.of(who.keyId, rate, nowMs).giveBack(bytes, nowMs)
  }

  /** @returns null if a read may begin, or why it may not. */
  refusalOfConsume(who: Principal): BrokerError | null {
    const rate = who.consumeBytesPerSec ?? null
    if (rate === null) return null
    const nowMs = this.#clock.monotonicMs()
    const bucket = this.#consume.of(who.keyId, rate, nowMs)
    const waitMs = bucket.waitMs(nowMs)
    if (waitMs === 0) return null
    const problem = `the reads before this one have used up the consume quota of this key, ${rate} bytes a second, and ${-bucket.balanceBytes} bytes beyond it`
    return rateLimited(problem, waitMs)
  }

  /** Charges what a read has returned, in bytes of keys and values. */
  chargeConsume(who: Principal, bytes: number): void {
    const rate = who.consumeBytesPerSec ?? null
    if (rate === null || bytes === 0) return
    const nowMs = this.#clock.monotonicMs()
    this.#consume.of(who.keyId, rate, nowMs).charge(bytes, nowMs)
  }
}

/** Rounded up, so that who waits as long as it is told is not refused again for the rest of a tenth. */
function rateLimited(problem: string, waitMs: number): BrokerError {
  const seconds = (Math.ceil(waitMs / 100) / 10).toFixed(1)
  return new BrokerError('RATE_LIMITED', { problem, seconds, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) })
}
