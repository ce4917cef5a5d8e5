import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { RingConsumer, RingProducer, createRing, frameBytes } from '../../../src/ring/spsc-ring.ts'
import { newRandom } from './random.ts'

/** Where positions begin: at 0, and so that they pass the signed and the unsigned end of 32 bits within a few frames. */
const STARTS = [0, 2 ** 31 - 8, 2 ** 31 - 256, 2 ** 32 - 8, 2 ** 32 - 264]

function openRing(capacityBytes: number, startPosition = 0): { producer: RingProducer; consumer: RingConsumer } {
  const memory = createRing(capacityBytes, startPosition)
  return { producer: new RingProducer(memory), consumer: new RingConsumer(memory) }
}

/** Reserves a frame of `bytes` bytes, all `fill`. @returns whether there was room. */
function put(producer: RingProducer, bytes: number, fill: number): boolean {
  const at = producer.reserve(bytes)
  if (at < 0) return false
  assert.ok(at + bytes <= producer.buffer.length)
  producer.buffer.fill(fill, at, at + bytes)
  return true
}

/** The next frame as [length, fill], after checking that every byte of it is the same; null when empty. */
function take(consumer: RingConsumer): [number, number] | null {
  const at = consumer.next()
  if (at < 0) return null
  const fill = consumer.length === 0 ? 0 : (consumer.buffer[at] as number)
  for (let i = 0; i < consumer.length; i++) assert.equal(consumer.buffer[at + i], fill)
  return [consumer.length, fill]
}

describe('what was written to a ring is read from it', () => {
  it('nothing is visible before publish, everything after it, in order', () => {
    for (const start of STARTS) {
      const { producer, consumer } = openRing(1024, start)
      for (let i = 1; i <= 5; i++) assert.ok(put(producer, i * 10, i))
      assert.ok(consumer.isEmpty())
      assert.equal(take(consumer), null)
      producer.publish()
      assert.ok(!consumer.isEmpty())
      const seen = Array.from({ length: 6 }, () => take(consumer))
      assert.deepEqual(seen, [[10, 1], [20, 2], [30, 3], [40, 4], [50, 5], null])
      assert.ok(!producer.isEmpty(), 'frames stay until they are released')
      consumer.release()
      assert.ok(producer.isEmpty() && consumer.isEmpty())
    }
  })

  it('an empty frame is a frame', () => {
    const { producer, consumer } = openRing(64)
    assert.ok(put(producer, 0, 0))
    producer.publish()
    assert.deepEqual([take(consumer), take(consumer)], [[0, 0], null])
  })

  it('a ring filled to its last byte keeps every frame and takes no more', () => {
    for (const start of STARTS) {
      const { producer, consumer } = openRing(256, start)
      let count = 0
      while (put(producer, 4, count + 1)) count++
      assert.equal(count, 256 / frameBytes(4))
      assert.equal(producer.freeBytes(), 0)
      producer.publish()
      for (let i = 1; i <= count; i++) assert.deepEqual(take(consumer), [4, i])
      assert.equal(producer.reserve(0), -1, 'read but not released is still taken')
      consumer.release()
      assert.equal(producer.freeBytes(), 256)
    }
  })

  it('an empty ring has room for the largest frame, wherever it stands, and the skip to its start is not seen', () => {
    for (const start of STARTS) {
      const { producer, consumer } = openRing(512, start)
      for (let step = 0; step < 512 / 8 + 3; step++) {
        assert.ok(put(producer, producer.frameBytesMax, 7), `start ${start} step ${step}`)
        producer.publish()
        assert.deepEqual(take(consumer), [128, 7])
        consumer.release()
        // One least frame further each time, so that every alignment before the end is met.
        assert.ok(put(producer, 1, 8))
        producer.publish()
        assert.deepEqual(take(consumer), [1, 8])
        consumer.release()
      }
    }
  })

  it('a frame that does not fit before the end is whole at the start, from every alignment', () => {
    for (let before = 0; before < 256; before += 8) {
      const { producer, consumer } = openRing(256, 2 ** 32 - 512 + before)
      for (let bytes = 0; bytes <= 64; bytes++) {
        assert.ok(put(producer, bytes, bytes + 1) && put(producer, 3, 99), `before ${before} bytes ${bytes}`)
        producer.publish()
        assert.deepEqual([take(consumer)?.[0], take(consumer), take(consumer)], [bytes, [3, 99], null])
        consumer.release()
      }
    }
  })

  it('a frame above a quarter of the ring, or below nothing, is a bug of the caller', () => {
    const { producer } = openRing(256)
    assert.throws(() => producer.reserve(65), BugError)
    assert.throws(() => producer.reserve(-1), BugError)
  })

  it('memory of another shape is refused', () => {
    assert.throws(() => createRing(100), BugError)
    assert.throws(() => createRing(32), BugError)
    assert.throws(() => createRing(64, 4), BugError)
    assert.throws(() => new RingProducer(new SharedArrayBuffer(500)), BugError)
  })

  it('a damaged length stops the consumer instead of leading it out of the ring', () => {
    for (const length of [-2, 13, 65, 0x7fff_ffff]) {
      const { producer, consumer } = openRing(256)
      const at = producer.reserve(8)
      new Int32Array(producer.buffer.buffer, producer.buffer.byteOffset)[(at - 4) / 4] = length
      producer.publish()
      assert.throws(() => consumer.next(), BugError, `length ${length}`)
    }
  })
})

describe('what was reserved can be taken back', () => {
  it('abandoned frames are never seen and their room is free again', () => {
    for (const start of STARTS) {
      const { producer, consumer } = openRing(256, start)
      assert.ok(put(producer, 20, 1))
      producer.publish()
      const free = producer.freeBytes()
      assert.ok(put(producer, 40, 2) && put(producer, 50, 3))
      producer.abandon()
      producer.publish()
      assert.equal(producer.freeBytes(), free)
      assert.ok(put(producer, 30, 4))
      producer.publish()
      assert.deepEqual([take(consumer), take(consumer), take(consumer)], [[20, 1], [30, 4], null])
    }
  })

  it('one request can be taken back while the ones before it stay', () => {
    for (const start of STARTS) {
      const { producer, consumer } = openRing(256, start)
      assert.ok(put(producer, 5, 1))
      const mark = producer.position()
      assert.ok(put(producer, 60, 2) && put(producer, 60, 3))
      producer.abandonTo(mark)
      assert.throws(() => producer.abandonTo(mark + 8), BugError)
      assert.ok(put(producer, 6, 4))
      producer.publish()
      assert.throws(() => producer.abandonTo(mark), BugError, 'published is published')
      assert.deepEqual([take(consumer), take(consumer), take(consumer)], [[5, 1], [6, 4], null])
    }
  })

  it('a frame reserved for the worst case can be cut to what was written', () => {
    const { producer, consumer } = openRing(256)
    assert.ok(put(producer, 8, 1) && put(producer, 64, 2))
    producer.shrink(3)
    assert.equal(producer.freeBytes(), 256 - frameBytes(8) - frameBytes(3))
    assert.throws(() => producer.shrink(4), BugError)
    producer.shrink(0)
    producer.publish()
    assert.throws(() => producer.shrink(0), BugError, 'published frames are not ours any more')
    assert.deepEqual([take(consumer), take(consumer), take(consumer)], [[8, 1], [0, 0], null])
  })
})

describe('both ends know how far the other is', () => {
  it('a frame counts as consumed when it was released, not when it was read, and for ever after', () => {
    for (const start of STARTS) {
      const { producer, consumer } = openRing(256, start)
      const marks: number[] = []
      for (let round = 0; round < 200; round++) {
        assert.ok(put(producer, 33, 1))
        const mark = producer.position()
        assert.ok(!producer.hasConsumed(mark), 'reserved')
        producer.publish()
        assert.ok(!producer.hasConsumed(mark), 'published')
        take(consumer)
        assert.ok(!producer.hasConsumed(mark), 'read')
        consumer.release()
        marks.push(mark)
        assert.ok(
          marks.every(earlier => producer.hasConsumed(earlier)),
          `round ${round}`
        )
      }
    }
  })

  it('marks stay true when 32-bit positions have gone round', () => {
    // A large ring, walked round without touching the payloads: 2^32 bytes in a few thousand steps.
    const { producer, consumer } = openRing(2 ** 23)
    assert.ok(producer.reserve(0) >= 0)
    const first = producer.position()
    producer.publish()
    consumer.next()
    consumer.release()
    while (producer.position() < first + 2 ** 32 - 2 ** 21) {
      assert.ok(producer.reserve(producer.frameBytesMax) >= 0)
      producer.publish()
      consumer.next()
      consumer.release()
    }
    for (let i = 0; i < 3; i++) {
      assert.ok(producer.reserve(producer.frameBytesMax - 8) >= 0)
      producer.publish()
      assert.ok(producer.hasConsumed(first))
      assert.ok(!producer.hasConsumed(producer.position()))
    }
  })

  it('a producer without room is told once when the consumer makes some', () => {
    const { producer, consumer } = openRing(64)
    while (put(producer, 10, 1));
    producer.publish()
    take(consumer)
    assert.equal(consumer.release(), false, 'nobody asked')
    while (put(producer, 10, 1));
    producer.publish()
    producer.askForRoom()
    assert.equal(consumer.release(), false, 'nothing was released')
    take(consumer)
    assert.equal(consumer.release(), true)
    take(consumer)
    assert.equal(consumer.release(), false, 'asked once, told once')
  })

  it('a frame put back is read again and outlives a release', () => {
    const { producer, consumer } = openRing(256, 2 ** 32 - 48)
    assert.throws(() => consumer.putBack(), BugError)
    assert.ok(put(producer, 30, 1) && put(producer, 30, 2))
    producer.publish()
    assert.deepEqual(
      [take(consumer), take(consumer)],
      [
        [30, 1],
        [30, 2]
      ]
    )
    consumer.putBack()
    assert.throws(() => consumer.putBack(), BugError)
    consumer.release()
    assert.ok(!consumer.isEmpty() && !producer.isEmpty())
    assert.deepEqual([take(consumer), take(consumer)], [[30, 2], null])
    consumer.release()
    assert.throws(() => consumer.putBack(), BugError, 'released is gone')
    assert.ok(producer.isEmpty())
  })

  it('a new end over the same memory goes on where the old one stopped', () => {
    const memory = createRing(256, 2 ** 32 - 16)
    const producer = new RingProducer(memory)
    assert.ok(put(producer, 5, 1) && put(producer, 6, 2))
    producer.publish()
    const first = new RingConsumer(memory)
    assert.deepEqual(take(first), [5, 1])
    first.release()
    assert.deepEqual(take(new RingConsumer(memory)), [6, 2])
    const second = new RingProducer(memory)
    assert.ok(put(second, 7, 3))
    second.publish()
    assert.deepEqual([take(first), take(first), take(first)], [[6, 2], [7, 3], null])
  })
})

/** What a ring of frames must do, as two lists. */
interface Model {
  reserved: [number, number][]
  visible: [number, number][]
  /** How many of `visible` the consumer has read without releasing. */
  readCount: number
}

/** One random step on ring and model alike. */
function step(ring: ReturnType<typeof openRing>, model: Model, choice: number, bytes: number, fill: number): void {
  const { producer, consumer } = ring
  if (choice < 5) {
    if (put(producer, bytes, fill)) model.reserved.push([bytes, bytes === 0 ? 0 : fill])
    else assert.ok(model.reserved.length + model.visible.length > 0, 'an empty ring must take any frame')
  } else if (choice === 5) {
    producer.publish()
    model.visible.push(...model.reserved.splice(0))
  } else if (choice === 6 && model.reserved.length > 0) {
    producer.abandon()
    model.reserved = []
  } else if (choice === 7) {
    consumer.release()
    model.visible.splice(0, model.readCount)
    model.readCount = 0
  } else {
    const wanted = model.visible[model.readCount] ?? null
    assert.deepEqual(take(consumer), wanted)
    if (wanted !== null) model.readCount++
  }
}

describe('a ring behaves like a queue', () => {
  it('over random reserves, publishes, abandons, reads and releases', () => {
    const random = newRandom('test/unit/ring/spsc-ring.test.ts')
    for (let round = 0; round < 60; round++) {
      const ring = openRing(64 << random.below(5), STARTS[random.below(STARTS.length)])
      const model: Model = { reserved: [], visible: [], readCount: 0 }
      for (let i = 0; i < 800; i++) {
        const bytes = random.below(ring.producer.frameBytesMax + 1)
        try {
          step(ring, model, random.below(12), bytes, random.below(256))
        } catch (error) {
          throw new Error(`round ${round} step ${i}; ${random.replay}`, { cause: error })
        }
      }
    }
  })
})
