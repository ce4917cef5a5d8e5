/**
 * The shard's end of the replies ring. Never blocks: what the ring has no room for waits here in order and goes first
 * next time, and main says when room came. Bounded, because main reserves the largest reply of everything it asks.
 */
import { Doorbell } from '../../src/ring/bell.ts'
import { RingProducer } from '../../src/ring/spsc-ring.ts'
import { errorTable, type ErrorCode, type ErrorDetails, type Written } from '../../src/model/errors.ts'
import { packMessage } from '../../src/wire/msgpack.ts'
import {
  REPLY_BODY_AT,
  REPLY_HEADER_BYTES,
  REPLY_LAST,
  replyTypes,
  writtenNumber,
  type ShardEvent
} from '../../src/wire/shard/messages.ts'

const EMPTY = Buffer.alloc(0)

export class ReplyWriter {
  readonly #ring: RingProducer
  readonly #doorbell: Doorbell
  readonly #waiting: Buffer[] = []
  #isDirty = false
  /** Where the frame begun last is to be written: target[at…]. */
  target: Buffer
  at = 0

  constructor(ring: RingProducer, doorbell: Doorbell) {
    this.#ring = ring
    this.#doorbell = doorbell
    this.target = ring.buffer
  }

  /** Begins a reply of exactly `bytes`; the caller fills target[at, at + bytes) before the next call. */
  begin(type: number, flags: number, requestId: number, bytes: number): void {
    const at = this.#waiting.length === 0 ? this.#ring.reserve(bytes) : -1
    if (at >= 0) {
      this.target = this.#ring.buffer
      this.at = at
    } else {
      this.target = Buffer.allocUnsafe(bytes)
      this.at = 0
      this.#waiting.push(this.target)
    }
    this.#isDirty = true
    this.target[this.at] = type
    this.target[this.at + 1] = flags
    this.target.writeUInt16BE(0, this.at + 2)
    this.target.writeUInt32BE(requestId, this.at + 4)
  }

  fail(requestId: number, code: ErrorCode, details: ErrorDetails, written: Written): void {
    const packed = packMessage(details)
    this.begin(replyTypes.failed, REPLY_LAST, requestId, REPLY_BODY_AT + packed.length)
    this.target.writeUInt16BE(errorTable[code].wire, this.at + 8)
    this.target[this.at + 10] = writtenNumber(written)
    this.target[this.at + 11] = 0
    packed.copy(this.target, this.at + REPLY_BODY_AT)
  }

  /** The disk refuses for now what was asked for; nothing is changed. @param what is refused, for people. */
  refuseByDisk(requestId: number, what: string, isFull: boolean): void {
    if (isFull) this.fail(requestId, 'DISK_FULL', {}, 'no')
    else this.fail(requestId, 'OVERLOADED', { what: `${what}, which the disk refuses,`, limit: 'the disk' }, 'no')
  }

  /** @param payload what main is told by it. */
  acknowledge(requestId: number, payload?: number): void {
    const packed = payload === undefined ? EMPTY : packMessage(payload)
    this.begin(replyTypes.ack, REPLY_LAST, requestId, REPLY_HEADER_BYTES + packed.length)
    packed.copy(this.target, this.at + REPLY_HEADER_BYTES)
  }

  event(event: ShardEvent): void {
    const packed = packMessage(event)
    this.begin(replyTypes.event, REPLY_LAST, 0, REPLY_HEADER_BYTES + packed.length)
    packed.copy(this.target, this.at + REPLY_HEADER_BYTES)
  }

  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, fields: Record<string, unknown> = {}): void {
    this.event({ kind: 'log', level, message, fields })
  }

  /** Publishes what was written since the last flush and wakes main if it sleeps. */
  flush(): void {
    if (!this.#isDirty) return
    this.#isDirty = false
    this.#moveWaiting()
    if (this.#waiting.length > 0) {
      // Looked at again after asking: room may have come in between (see RingProducer.askForRoom).
      this.#isDirty = true
      this.#ring.askForRoom()
      this.#moveWaiting()
    }
    this.#ring.publish()
    this.#doorbell.ring()
  }

  /** True if replies wait for room in the ring. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0
  }

  #moveWaiting(): void {
    let moved = 0
    for (const frame of this.#waiting) {
      const at = this.#ring.reserve(frame.length)
      if (at < 0) break
      frame.copy(this.#ring.buffer, at)
      moved++
    }
    this.#waiting.splice(0, moved)
  }
}
