/**
 * A byte ring between two threads: one producer, one consumer, whole frames only, no allocation per frame.
 * The producer's face lives on one thread, the consumer's on another; each end has exactly one.
 *
 *   byte 0          128         256        384                                384 + capacity
 *   ┌──────────────┬───────────┬──────────┬───────────────────────────────────┐
 *   │ head         │ tail      │ wanting  │ frames                            │
 *   │ (consumer)   │ (producer)│ (both)   │                                   │
 *   └──────────────┴───────────┴──────────┴───────────────────────────────────┘
 *   frame = length u32 (this machine's byte order) · payload · padding to a multiple of 8
 *   A frame is contiguous. Where it does not fit before the end of the data, a length of −1 says: go on at the start.
 *
 * Positions count bytes, unsigned 32-bit, and wrap; the capacity is a power of two, so position & (capacity − 1) is the
 * index also across the wrap, and empty (tail = head) differs from full (tail = head + capacity).
 *
 * Invariants: head ≤ tail ≤ head + capacity in that arithmetic; only the consumer moves head, only the producer moves
 * tail; bytes in [head, tail) belong to the consumer, all others to the producer. It never waits and never wakes anyone.
 */
import { assert } from '../base/assert.ts'
import { limits } from '../model/limits.ts'

/** Each word stands 128 bytes from the next: wherever the memory begins, no two share a 64-byte cache line or a prefetched pair. */
const HEAD_WORD = 0
const TAIL_WORD = 32
const WANTING_WORD = 64
const CONTROL_BYTES = 384

/** Bytes of the length before each payload. */
const LENGTH_BYTES = 4
/** Frames begin at multiples of this, so a skip marker always fits before the end. */
const ALIGN_BYTES = 8
/** In place of a length: the next frame is at the start of the data. */
const SKIP = -1

const CAPACITY_BYTES_MIN = 64
/** Above this the difference of two positions would not tell full from empty. */
const CAPACITY_BYTES_MAX = 2 ** 30

/**
 * Makes the shared memory of a ring, empty. Both ends are built over it, once each.
 *
 * @param capacityBytes power of two, 64 … 2^30.
 * @param startPosition where positions begin, a multiple of 8 below 2^32: tests start next to the wrap.
 */
export function createRing(capacityBytes: number, startPosition = 0): SharedArrayBuffer {
  assert(capacityBytes >= CAPACITY_BYTES_MIN && capacityBytes <= CAPACITY_BYTES_MAX, 'ring capacity is out of range')
  assert((capacityBytes & (capacityBytes - 1)) === 0, 'ring capacity must be a power of two')
  assert(startPosition % ALIGN_BYTES === 0 && startPosition >>> 0 === startPosition, 'start position must be aligned')
  const memory = new SharedArrayBuffer(CONTROL_BYTES + capacityBytes)
  const words = new Int32Array(memory)
  words[HEAD_WORD] = startPosition
  words[TAIL_WORD] = startPosition
  return memory
}

function capacityOf(memory: SharedArrayBuffer): number {
  const capacity = memory.byteLength - CONTROL_BYTES
  assert(capacity >= CAPACITY_BYTES_MIN && (capacity & (capacity - 1)) === 0, 'this memory is not a ring')
  return capacity
}

/** Bytes that a frame with this payload takes in the ring, beside a skip. */
export function frameBytes(payloadBytes: number): number {
  return (payloadBytes + LENGTH_BYTES + ALIGN_BYTES - 1) & -ALIGN_BYTES
}

/**
 * The writing end. reserve() as often as needed, write the payloads, then publish() once: until then the consumer sees
 * nothing, and abandon() takes it back.
 */
export class RingProducer {
  /** The whole data area. Write only where reserve() said, and only before publish(). */
  readonly buffer: Buffer
  readonly capacityBytes: number
  /** Largest payload of one frame: a quarter of the capacity. A longer one travels as shared memory of its own. */
  readonly frameBytesMax: number
  readonly #words: Int32Array
  /** The data area in words of 4 bytes: lengths are written here, in one store. */
  readonly #lengths: Int32Array
  readonly #mask: number
  /** Position behind the last reserved frame, int32. */
  #reserved: number
  /** Position behind the last published frame, int32: what the tail word says. */
  #published: number
  /** Head when last looked: at or behind the true one, so room seen with it is room. */
  #headSeen: number
  /** Position of the last reserved frame, int32; equal to #reserved if there is none to shrink. */
  #lastFrame: number
  /** Bytes published since this end was built, skips included: exact up to 2^53, where positions wrap at 2^32. */
  #publishedBytes = 0

  constructor(memory: SharedArrayBuffer) {
    const capacity = capacityOf(memory)
    this.capacityBytes = capacity
    this.frameBytesMax = capacity / limits.ringFrameShare
    this.buffer = Buffer.from(memory, CONTROL_BYTES, capacity)
    this.#words = new Int32Array(memory, 0, CONTROL_BYTES / 4)
    this.#lengths = new Int32Array(memory, CONTROL_BYTES, capacity / 4)
    this.#mask = capacity - 1
    // Partner: nobody writes the tail but this end. Loaded atomically to see what an earlier owner of this end stored.
    this.#published = Atomics.load(this.#words, TAIL_WORD)
    this.#reserved = this.#published
    this.#lastFrame = this.#published
    this.#headSeen = this.#loadHead()
  }

  /**
   * Sets room aside for one frame; several may be reserved before one publish(), also in several rings.
   *
   * @param bytes length of the payload, 0 … frameBytesMax.
   * @returns index in `buffer` at which to write the payload, or −1: no room now.
   */
  reserve(bytes: number): number {
    assert(bytes >= 0 && bytes <= this.frameBytesMax, 'a frame must fit in a quarter of its ring')
    const frame = frameBytes(bytes)
    let index = this.#reserved & this.#mask
    const beforeEnd = this.capacityBytes - index
    const skip = frame > beforeEnd ? beforeEnd : 0
    if (!this.#hasRoom(skip + frame)) return -1
    if (skip > 0) {
      this.#lengths[index >>> 2] = SKIP
      index = 0
    }
    this.#lengths[index >>> 2] = bytes
    this.#lastFrame = (this.#reserved + skip) | 0
    this.#reserved = (this.#lastFrame + frame) | 0
    return index + LENGTH_BYTES
  }

  #hasRoom(bytes: number): boolean {
    if (((this.#reserved - this.#headSeen) >>> 0) + bytes <= this.capacityBytes) return true
    this.#headSeen = this.#loadHead()
    return ((this.#reserved - this.#headSeen) >>> 0) + bytes <= this.capacityBytes
  }

  #loadHead(): number {
    // Partner: the store in RingConsumer.release(). Acquire: the consumer's reads of the freed bytes happened before it,
    // so what is written there next cannot be seen by them.
    return Atomics.load(this.#words, HEAD_WORD)
  }

  /** Cuts the last reserved frame to its first `bytes` payload bytes. Only before publish(), and only a frame that is there. */
  shrink(bytes: number): void {
    assert(this.#lastFrame !== this.#reserved, 'there is no reserved frame to shrink')
    const word = (this.#lastFrame & this.#mask) >>> 2
    assert(bytes >= 0 && bytes <= (this.#lengths[word] as number), 'a frame can only get shorter')
    this.#lengths[word] = bytes
    this.#reserved = (this.#lastFrame + frameBytes(bytes)) | 0
  }

  /** Makes every reserved frame visible to the consumer, in order and at once. Waking it is the caller's business. */
  publish(): void {
    if (this.#reserved === this.#published) return
    this.#publishedBytes += (this.#reserved - this.#published) >>> 0
    this.#published = this.#reserved
    this.#lastFrame = this.#reserved
    // Partner: the load in RingConsumer.next(). Release: lengths and payloads written before are seen by whoever sees
    // this tail. Sequentially consistent, so that a look at an asleep flag or a bell after it cannot come first.
    Atomics.store(this.#words, TAIL_WORD, this.#published)
  }

  /** Takes back everything reserved since the last publish(). */
  abandon(): void {
    this.#reserved = this.#published
    this.#lastFrame = this.#published
  }

  /** Takes back what was reserved since position() gave `position`, and keeps what was reserved before. */
  abandonTo(position: number): void {
    const kept = position - this.#publishedBytes
    assert(kept >= 0 && kept <= (this.#reserved - this.#published) >>> 0, 'that position is not among the reserved')
    this.#reserved = (this.#published + kept) | 0
    this.#lastFrame = this.#reserved
  }

  /** Bytes not taken, looked up afresh. Beside its padding a frame may need a skip, so reserve() has the last word. */
  freeBytes(): number {
    this.#headSeen = this.#loadHead()
    return this.capacityBytes - ((this.#reserved - this.#headSeen) >>> 0)
  }

  /** Whether the consumer has released everything reserved so far. */
  isEmpty(): boolean {
    return this.freeBytes() === this.capacityBytes
  }

  /** Bytes reserved since this end was built: a mark just behind the last reserved frame, for hasConsumed and abandonTo. */
  position(): number {
    return this.#publishedBytes + ((this.#reserved - this.#published) >>> 0)
  }

  /**
   * Whether the consumer has released all frames before the mark, however long ago. False is a promise only if the
   * consumer releases frames before what they ask for has an effect.
   */
  hasConsumed(position: number): boolean {
    this.#headSeen = this.#loadHead()
    // Unsigned distance from head to tail: at most the capacity, therefore exact.
    return this.#publishedBytes - ((this.#published - this.#headSeen) >>> 0) >= position
  }

  /**
   * Asks the consumer to say so when it next releases: its release() then returns true and it wakes this side.
   * Call it after reserve() failed, then reserve() once more before waiting: room may have come in between.
   */
  askForRoom(): void {
    // Partner: the load in RingConsumer.release(). Sequentially consistent: either the consumer's look comes after this
    // store and sees it, or its head was stored before our next look at head and we see that. No room is missed.
    Atomics.store(this.#words, WANTING_WORD, 1)
  }
}

/** The reading end. next() walks frames that stay where they are; release() gives all of them back together. */
export class RingConsumer {
  /** The whole data area. Read only frames that next() returned and release() has not given back. */
  readonly buffer: Buffer
  readonly capacityBytes: number
  /** Length in bytes of the payload that next() returned last. */
  length = 0
  readonly #words: Int32Array
  readonly #lengths: Int32Array
  readonly #mask: number
  readonly #lengthMax: number
  /** Position of the frame that next() looks at, int32. */
  #next: number
  /** Position of the frame that next() returned last, int32; equal to #next if there is none to put back. */
  #last: number
  /** Position up to which bytes were given back, int32: what the head word says. */
  #released: number
  /** Tail when last looked: at or behind the true one. */
  #tailSeen: number

  constructor(memory: SharedArrayBuffer) {
    const capacity = capacityOf(memory)
    this.capacityBytes = capacity
    this.buffer = Buffer.from(memory, CONTROL_BYTES, capacity)
    this.#words = new Int32Array(memory, 0, CONTROL_BYTES / 4)
    this.#lengths = new Int32Array(memory, CONTROL_BYTES, capacity / 4)
    this.#mask = capacity - 1
    this.#lengthMax = capacity / limits.ringFrameShare
    // Partner: nobody writes the head but this end. Loaded atomically to see what an earlier owner of this end stored.
    this.#released = Atomics.load(this.#words, HEAD_WORD)
    this.#next = this.#released
    this.#last = this.#released
    this.#tailSeen = this.#released
  }

  #loadTail(): number {
    // Partner: the store in RingProducer.publish(). Acquire: a tail seen means the frames before it are seen whole.
    return Atomics.load(this.#words, TAIL_WORD)
  }

  /**
   * Steps to the next frame and sets `length`.
   *
   * @returns index in `buffer` of its payload, or −1: there is none. The payload stays valid until release().
   */
  next(): number {
    if (this.#next === this.#tailSeen) {
      this.#tailSeen = this.#loadTail()
      if (this.#next === this.#tailSeen) return -1
    }
    let index = this.#next & this.#mask
    let length = this.#lengths[index >>> 2] as number
    if (length === SKIP) {
      this.#next = (this.#next + this.capacityBytes - index) | 0
      index = 0
      length = this.#lengths[0] as number
    }
    const frame = frameBytes(length)
    assert(length >= 0 && length <= this.#lengthMax, 'a ring frame has an impossible length')
    assert(frame <= (this.#tailSeen - this.#next) >>> 0, 'a ring frame runs past what was published')
    this.#last = this.#next
    this.#next = (this.#next + frame) | 0
    this.length = length
    return index + LENGTH_BYTES
  }

  /** Un-reads the frame that next() returned last: next() returns it again, and release() keeps it. */
  putBack(): void {
    assert(this.#last !== this.#next, 'there is no frame to put back')
    this.#next = this.#last
  }

  /**
   * Gives every frame that next() returned back to the producer.
   *
   * @returns whether the producer asked for room meanwhile: the caller then wakes it.
   */
  release(): boolean {
    if (this.#released === this.#next) return false
    this.#released = this.#next
    this.#last = this.#next
    // Partner: #loadHead in RingProducer. Release: our reads of the payloads happened before. Sequentially consistent,
    // so that the look at the wanting word below comes after it.
    Atomics.store(this.#words, HEAD_WORD, this.#released)
    // Partner: the store in askForRoom(). The cheap load first, because nearly always nobody is waiting.
    return Atomics.load(this.#words, WANTING_WORD) === 1 && Atomics.exchange(this.#words, WANTING_WORD, 0) === 1
  }

  /** Whether next() would return −1, looked up afresh. Frames returned but not yet released do not count. */
  isEmpty(): boolean {
    if (this.#next !== this.#tailSeen) return false
    this.#tailSeen = this.#loadTail()
    return this.#next === this.#tailSeen
  }
}
