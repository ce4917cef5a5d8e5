/**
 * The ES01 driver of the load generator: as little work per request as the protocol allows. One write per request,
 * one static read buffer per connection, and of an answer only its head is looked at (29 bytes); the rest is counted
 * and passed over. Runs on the generator's main thread.
 * Must never: decode records, allocate per answer, or take an answer for a request that is not in flight.
 */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { CONNECT_TIMEOUT_MS, READ_BUFFER_BYTES, whenOpen } from './driver.ts'
import type {
  Answer,
  ConnectOptions,
  ConsumeTemplate,
  DriverConnection,
  DriverListener,
  Opened,
  ProduceTemplate
} from './driver.ts'

const PRODUCE = 0x01
const CONSUME = 0x02
const PRODUCED = 0x81
const CONSUMED = 0x82
const REFUSED = 0xff
/** length u32 · request id u32 · opcode u8, then the payload. */
export const FRAME_HEAD_BYTES = 9
/** What is kept of an answer: the frame's head and, of a consume, next offset, watermark and count. */
const HEAD_BYTES_MAX = FRAME_HEAD_BYTES + 20
/** Longest error message that is kept. */
const MESSAGE_BYTES_MAX = 1024
/** partition, offset, timestamp, key length, value length: what a consumed record costs beside key and value. */
const CONSUMED_RECORD_BYTES = 4 + 8 + 8 + 4 + 4
/** Low bits of a request id are its slot; the others count the uses of the slot, so that a stale answer is noticed. */
const SLOT_BITS = 6
/** Slots one connection may have: twice what the broker runs at once. */
export const ES01_SLOTS_MAX = 1 << SLOT_BITS

interface Slot {
  produce: ProduceTemplate | null
  produceBytes: Buffer
  produceRecords: number
  partition: number
  consumeBytes: Buffer
  /** Id in flight, or −1. */
  inFlightId: number
  opcode: number
  uses: number
}

/** Opens one connection and shakes hands. @throws Error when the broker refuses or does not answer in time. */
export function connectEs01Driver(options: ConnectOptions): Promise<DriverConnection> {
  return whenOpen(opened => new Es01Driver(options, opened))
}

class Es01Driver implements DriverConnection {
  readonly index: number
  readonly slotCount: number
  readonly answer: Answer = { records: 0, nextOffset: 0, highWatermark: 0 }
  readonly #socket: Socket
  readonly #listener: DriverListener
  readonly #slots: Slot[] = []
  readonly #head = Buffer.alloc(HEAD_BYTES_MAX)
  readonly #message = Buffer.alloc(MESSAGE_BYTES_MAX)
  /** Called once, with the outcome of the handshake; null afterwards. */
  #opened: Opened | null
  #timer: NodeJS.Timeout
  #closed = false
  /** Bytes of the current frame (or hello) seen so far, and its whole size once known. */
  #seenBytes = 0
  #frameBytes = 0

  constructor(options: ConnectOptions, opened: Opened) {
    this.index = options.index
    this.slotCount = Math.min(ES01_SLOTS_MAX, options.slotCount)
    this.#listener = options.listener
    this.#opened = opened
    for (let i = 0; i < this.slotCount; i++) this.#slots.push(emptySlot())
    this.#socket = connect({
      ...options.address,
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafeSlow(READ_BUFFER_BYTES),
        callback: (byteCount, buffer) => {
          this.#receive(buffer, byteCount)
          return true
        }
      }
    })
    this.#socket.write(Buffer.concat([Buffer.from('ES01'), Buffer.alloc(8)]))
    this.#socket.once('error', error => this.#fail(error))
    this.#socket.once('close', () => this.#fail(new Error('the broker closed the connection')))
    this.#timer = setTimeout(() => this.#fail(new Error('no answer to the ES01 hello')), CONNECT_TIMEOUT_MS)
  }

  prepareProduce(slot: number, template: ProduceTemplate): void {
    const state = this.#slot(slot)
    state.produce = template
    state.produceBytes = template.bytes
    state.produceRecords = template.records
    state.partition = -1
  }

  prepareConsume(slot: number, template: ConsumeTemplate): void {
    this.#slot(slot).consumeBytes = encodeConsumeFrame(template)
  }

  produce(slot: number, partition: number): void {
    const state = this.#slot(slot)
    const template = state.produce
    if (template === null) throw new Error('the slot has no produce request')
    if (state.partition !== partition) {
      state.partition = partition
      const positions = template.partitionPositions
      for (let i = 0; i < positions.length; i++) state.produceBytes.writeInt32BE(partition, positions[i])
    }
    this.#send(slot, state, PRODUCE, state.produceBytes)
  }

  consume(slot: number, partition: number, offset: number): void {
    const state = this.#slot(slot)
    const frame = state.consumeBytes
    const at = frame.length - 20
    frame.writeUInt32BE(partition, at)
    frame.writeUInt32BE(Math.floor(offset / 2 ** 32), at + 4)
    frame.writeUInt32BE(offset % 2 ** 32, at + 8)
    this.#send(slot, state, CONSUME, frame)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#socket.destroy()
  }

  #slot(slot: number): Slot {
    const state = this.#slots[slot]
    if (state === undefined) throw new Error(`slot ${slot} is not one of ${this.slotCount}`)
    return state
  }

  /** A frame is sent again only after its answer came, and the answer says the broker has read it all: no copy needed. */
  #send(slot: number, state: Slot, opcode: number, frame: Buffer): void {
    if (state.inFlightId !== -1) throw new Error('the slot has a request in flight')
    state.uses = (state.uses + 1) & 0x3ff_ffff
    state.inFlightId = state.uses * ES01_SLOTS_MAX + slot
    state.opcode = opcode
    frame.writeUInt32BE(state.inFlightId, 4)
    this.#socket.write(frame)
  }

  #receive(bytes: Uint8Array, end: number): void {
    // Requests sent from within the answers of one read leave in one system call.
    this.#socket.cork()
    let at = 0
    while (at < end && !this.#closed) {
      at = this.#opened === null ? this.#takeFrame(bytes, at, end) : this.#takeHello(bytes, at, end)
    }
    this.#socket.uncork()
  }

  /** magic 4 · status u8 · features u32 · message length u32 · message. */
  #takeHello(bytes: Uint8Array, start: number, end: number): number {
    let at = start
    while (at < end && this.#seenBytes < 13) this.#head[this.#seenBytes++] = bytes[at++] as number
    if (this.#seenBytes < 13) return at
    const status = this.#head[4]
    if (this.#head.toString('latin1', 0, 4) !== 'ES01' || status !== 0) {
      const message = this.#head.readUInt32BE(9)
      this.#fail(new Error(`the broker refused the ES01 hello (status ${status}, ${message} bytes of message)`))
      return end
    }
    this.#seenBytes = 0
    clearTimeout(this.#timer)
    const opened = this.#opened
    this.#opened = null
    opened?.(null)
    return at
  }

  #takeFrame(bytes: Uint8Array, start: number, end: number): number {
    let at = start
    const head = this.#head
    const headBytes = this.#seenBytes < 4 ? 4 : Math.min(HEAD_BYTES_MAX, this.#frameBytes)
    while (at < end && this.#seenBytes < headBytes) head[this.#seenBytes++] = bytes[at++] as number
    if (this.#seenBytes < headBytes) return at
    if (headBytes === 4 && this.#frameBytes === 0) {
      this.#frameBytes = 4 + head.readUInt32BE(0)
      if (this.#frameBytes < FRAME_HEAD_BYTES) {
        this.#fail(new Error(`the broker sent a frame of ${this.#frameBytes - 4} bytes: at least 5 are needed`))
        return end
      }
      return at
    }
    const take = Math.min(end - at, this.#frameBytes - this.#seenBytes)
    if (head[8] === REFUSED) this.#keepMessage(bytes, at, take)
    this.#seenBytes += take
    at += take
    if (this.#seenBytes === this.#frameBytes) this.#finishFrame()
    return at
  }

  /** Error messages begin inside the head already; the rest of them is kept behind it, as far as there is room. */
  #keepMessage(bytes: Uint8Array, at: number, count: number): void {
    const place = this.#seenBytes - HEAD_BYTES_MAX
    const room = Math.max(0, Math.min(count, MESSAGE_BYTES_MAX - place))
    if (room > 0) this.#message.set(bytes.subarray(at, at + room), place)
  }

  #finishFrame(): void {
    const head = this.#head
    const frameBytes = this.#frameBytes
    this.#seenBytes = 0
    this.#frameBytes = 0
    const id = head.readUInt32BE(4)
    const slot = id % ES01_SLOTS_MAX
    const state = this.#slots[slot]
    if (state === undefined || state.inFlightId !== id) {
      this.#fail(new Error(`the broker answered request ${id}, which is not in flight`))
      return
    }
    state.inFlightId = -1
    const opcode = head[8] as number
    if (opcode === REFUSED) {
      const inHead = head.toString('utf8', FRAME_HEAD_BYTES, Math.min(HEAD_BYTES_MAX, frameBytes))
      const rest = Math.min(MESSAGE_BYTES_MAX, Math.max(0, frameBytes - HEAD_BYTES_MAX))
      this.#listener.onRefused(this, slot, inHead + this.#message.toString('utf8', 0, rest))
      return
    }
    if (opcode !== (state.opcode === PRODUCE ? PRODUCED : CONSUMED) || !this.#readAnswer(state, frameBytes)) {
      this.#fail(new Error(`the broker answered request ${id} with opcode ${opcode} and ${frameBytes} bytes`))
      return
    }
    this.#listener.onAnswer(this, slot)
  }

  /** Fills `answer` from the head. @returns false if the frame cannot be an answer to what was asked. */
  #readAnswer(state: Slot, frameBytes: number): boolean {
    const head = this.#head
    const answer = this.answer
    if (state.opcode === PRODUCE) {
      answer.records = head.readUInt32BE(FRAME_HEAD_BYTES)
      return answer.records === state.produceRecords && frameBytes === FRAME_HEAD_BYTES + 4 + 13 * answer.records
    }
    if (frameBytes < HEAD_BYTES_MAX) return false
    answer.nextOffset = head.readUInt32BE(FRAME_HEAD_BYTES) * 2 ** 32 + head.readUInt32BE(FRAME_HEAD_BYTES + 4)
    answer.highWatermark = head.readUInt32BE(FRAME_HEAD_BYTES + 8) * 2 ** 32 + head.readUInt32BE(FRAME_HEAD_BYTES + 12)
    answer.records = head.readUInt32BE(FRAME_HEAD_BYTES + 16)
    return frameBytes >= HEAD_BYTES_MAX + CONSUMED_RECORD_BYTES * answer.records
  }

  #fail(error: Error): void {
    if (this.#closed) return
    this.close()
    const opened = this.#opened
    this.#opened = null
    if (opened !== null) opened(error)
    else this.#listener.onLost(this, error)
  }
}

function emptySlot(): Slot {
  const none = Buffer.alloc(0)
  return {
    produce: null,
    produceBytes: none,
    produceRecords: 0,
    partition: -1,
    consumeBytes: none,
    inFlightId: -1,
    opcode: 0,
    uses: 0
  }
}

/** head · topic length u16 · topic · partition u32 · offset u64 · max records u32 · max bytes u32. */
function encodeConsumeFrame(template: ConsumeTemplate): Buffer {
  const topic = Buffer.from(template.topic)
  const frame = Buffer.alloc(FRAME_HEAD_BYTES + 2 + topic.length + 20)
  frame.writeUInt32BE(frame.length - 4, 0)
  frame[8] = CONSUME
  frame.writeUInt16BE(topic.length, FRAME_HEAD_BYTES)
  topic.copy(frame, FRAME_HEAD_BYTES + 2)
  frame.writeUInt32BE(template.maxRecords, frame.length - 8)
  frame.writeUInt32BE(template.maxBytes, frame.length - 4)
  return frame
}
