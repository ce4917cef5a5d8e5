import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { TestContext } from 'node:test'
import { MessageChannel, Worker } from 'node:worker_threads'
import { BugError } from '../../../src/base/assert.ts'
import { AsleepFlag, Bell, Doorbell, createAsleepFlag, createBell } from '../../../src/ring/bell.ts'
import { RingConsumer, RingProducer, createRing } from '../../../src/ring/spsc-ring.ts'
import type { EchoReport, EchoSetup } from './echo-worker.ts'
import { newRandom } from './random.ts'
import type { SeededRandom } from './random.ts'

/** A wake-up that takes this long was lost: the stress tests end in a fraction of it. */
const LOST_MS = 10_000

describe('a bell', () => {
  it('that rang after the value was read lets nobody fall asleep', () => {
    const memory = createBell()
    const bell = new Bell(memory)
    const value = bell.read()
    new Bell(memory).ring()
    assert.equal(bell.wait(value, LOST_MS), true)
  })

  it('that did not ring ends the sleep at its deadline', () => {
    const bell = new Bell(createBell())
    assert.equal(bell.wait(bell.read(), 1), false)
  })

  it('never lets a thread sleep without a deadline', () => {
    const bell = new Bell(createBell())
    assert.throws(() => bell.wait(0, Infinity), BugError)
    assert.throws(() => bell.wait(0, NaN), BugError)
    assert.throws(() => bell.wait(0, -1), BugError)
  })

  it('is not built over other memory', () => {
    const memory = new SharedArrayBuffer(4)
    assert.throws(() => new Bell(memory), BugError)
    assert.throws(() => new AsleepFlag(memory), BugError)
    assert.throws(() => new Doorbell(memory, { postMessage() {} }), BugError)
  })
})

describe('a doorbell', () => {
  it('is posted once for each time that main raised its flag, by one shard of several', () => {
    const memory = createAsleepFlag()
    const flag = new AsleepFlag(memory)
    let posted = 0
    const port = { postMessage: () => void posted++ }
    const shards = [new Doorbell(memory, port), new Doorbell(memory, port)]
    const ringAll = (): boolean[] => shards.map(shard => shard.ring())
    assert.deepEqual(ringAll(), [false, false], 'main is awake')
    flag.raise()
    assert.deepEqual(ringAll(), [true, false])
    flag.raise()
    flag.lower()
    assert.deepEqual(ringAll(), [false, false], 'main looked again and stays awake')
    flag.lower()
    flag.raise()
    assert.deepEqual(ringAll(), [true, false])
    assert.equal(posted, 2)
  })
})

/** Main's side of the echo: sends frames in windows, checks the echoes, sleeps in its event loop between doorbells. */
class EchoMain {
  readonly requests: RingProducer
  readonly replies: RingConsumer
  readonly bell: Bell
  readonly flag: AsleepFlag
  readonly setup: EchoSetup
  readonly worker: Worker
  readonly report: Promise<EchoReport>
  readonly #channel = new MessageChannel()

  constructor(t: TestContext, sizes: readonly [requests: number, replies: number], start: number, timeoutMs: number) {
    const requests = createRing(sizes[0], start)
    const replies = createRing(sizes[1], start)
    const bell = createBell()
    const flag = createAsleepFlag()
    this.requests = new RingProducer(requests)
    this.replies = new RingConsumer(replies)
    this.bell = new Bell(bell)
    this.flag = new AsleepFlag(flag)
    this.setup = { requests, replies, bell, flag, port: this.#channel.port2, timeoutMs }
    this.worker = new Worker(new URL('./echo-worker.ts', import.meta.url), {
      workerData: this.setup,
      transferList: [this.#channel.port2]
    })
    this.report = new Promise((resolve, reject) => {
      this.worker.on('message', resolve)
      this.worker.on('error', reject)
    })
    t.after(() => {
      this.#channel.port1.close()
      return this.worker.terminate()
    })
  }

  /** Calls `turn` now and at every doorbell until it returns true. Rejects if no doorbell comes for LOST_MS. */
  run(turn: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const port = this.#channel.port1
      const lost = setTimeout(() => reject(new Error('a wake-up of main was lost')), LOST_MS)
      const next = (): void => {
        try {
          lost.refresh()
          if (!turn()) return
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)))
        }
        clearTimeout(lost)
        port.off('message', next)
        resolve()
      }
      port.on('message', next)
      next()
    })
  }

  /** Tells the worker to end. */
  end(): void {
    assert.ok(this.requests.reserve(0) >= 0)
    this.requests.publish()
    this.bell.ring()
  }
}

/** Frames by number: the length and content of each follow from the number alone. */
function fillFrame(buffer: Buffer, at: number, length: number, number: number): void {
  buffer.fill(number & 0xff, at, at + length)
  if (length >= 4) buffer.writeInt32LE(number, at)
}

function checkFrame(buffer: Buffer, at: number, length: number, number: number): void {
  const wanted = Buffer.alloc(length)
  fillFrame(wanted, 0, length, number)
  assert.ok(wanted.equals(buffer.subarray(at, at + length)), `frame ${number} came back changed`)
}

/** Sends all frames through the echo, a random number of them at a time. @returns how often main slept. */
async function echoAll(main: EchoMain, lengths: number[], random: SeededRandom): Promise<number> {
  let sent = 0
  let received = 0
  let windowEnd = 0
  let sleeps = 0
  const receive = (): number => {
    const before = received
    for (let at = main.replies.next(); at >= 0; at = main.replies.next()) {
      assert.equal(main.replies.length, lengths[received], `length of frame ${received}`)
      checkFrame(main.replies.buffer, at, main.replies.length, received)
      received++
    }
    if (main.replies.release()) main.bell.ring()
    return received - before
  }
  const send = (): number => {
    const before = sent
    if (received === windowEnd)
      windowEnd = Math.min(lengths.length, sent + 1 + random.below(random.below(4) === 0 ? 300 : 3))
    let isRefused = false
    while (sent < windowEnd) {
      const length = lengths[sent] as number
      const at = main.requests.reserve(length)
      if (at < 0) {
        if (isRefused) break
        isRefused = true
        main.requests.askForRoom()
        continue
      }
      isRefused = false
      fillFrame(main.requests.buffer, at, length, sent)
      sent++
    }
    if (sent > before) {
      main.requests.publish()
      main.bell.ring()
    }
    return sent - before
  }
  await main.run(() => {
    main.flag.lower()
    for (;;) {
      receive()
      send()
      if (received === lengths.length) return true
      main.flag.raise()
      if (receive() + send() === 0) {
        sleeps++
        return false
      }
      main.flag.lower()
    }
  })
  return sleeps
}

describe('two threads that sleep and wake each other', () => {
  for (const [requestBytes, replyBytes, start] of [
    [256, 256, 2 ** 32 - 64],
    [4096, 4096, 2 ** 31 - 1024],
    [65_536, 65_536, 0],
    // The echo runs out of reply room in the middle of a window, and only the releasing of replies can wake it.
    [65_536, 256, 2 ** 32 - 128]
  ] as const) {
    it(`lose no frame and no wake-up over rings of ${requestBytes} and ${replyBytes} bytes`, async t => {
      const random = newRandom('test/unit/ring/bell.test.ts')
      t.diagnostic(random.replay)
      const count = 20_000
      const lengths = Array.from({ length: count }, () => 1 + random.below(Math.min(replyBytes / 4, 2048)))
      const main = new EchoMain(t, [requestBytes, replyBytes], start, LOST_MS)
      const sleeps = await echoAll(main, lengths, random)
      main.end()
      const report = await main.report
      assert.deepEqual([report.end, report.framesEchoed], ['told', count], random.replay)
      // Otherwise nothing was tested: both sides must have slept, and main must have been woken by doorbells.
      assert.ok(sleeps > 20 && report.sleeps > 20 && report.doorbells > 20, `${sleeps} ${JSON.stringify(report)}`)
    })
  }

  it('a sender that forgets the bell is noticed', async t => {
    const main = new EchoMain(t, [256, 256], 0, 200)
    const put = (): void => {
      const at = main.requests.reserve(4)
      main.requests.buffer.writeInt32LE(1, at)
      main.requests.publish()
    }
    main.flag.raise()
    put()
    await main.run(() => main.replies.next() >= 0)
    put()
    const report = await main.report
    assert.deepEqual([report.end, report.framesEchoed], ['timed-out', 1])
  })
})
