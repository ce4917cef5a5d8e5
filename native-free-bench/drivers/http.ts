/**
 * The HTTP driver of the load generator: HTTP/1.1 keep-alive on a bare socket, one request in flight per connection
 * (the broker answers pipelined requests by closing). Of an answer the status, the length and the last bytes are
 * looked at. Runs on the generator's main thread.
 * Must never: parse the JSON of an answer as a whole, or accept an answer whose length it does not know.
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
import { writePartitionDigits } from './records.ts'

/** A response head above this is no answer of this broker. */
const HEAD_BYTES_MAX = 16 * 1024
/** Kept of the end of a body: `"next_offset":…,"high_watermark":…,"encoding":"base64"}` with two 20-digit numbers. */
const TAIL_BYTES = 160
/** Kept of the beginning of a body: the message of an error. */
const MESSAGE_BYTES_MAX = 1024
const END_OF_HEAD = Buffer.from('\r\n\r\n')

/** Opens one connection. @throws Error when nobody listens. */
export function connectHttpDriver(options: ConnectOptions): Promise<DriverConnection> {
  return whenOpen(opened => new HttpDriver(options, opened))
}

class HttpDriver implements DriverConnection {
  readonly index: number
  readonly slotCount = 1
  readonly answer: Answer = { records: 0, nextOffset: 0, highWatermark: 0 }
  readonly #socket: Socket
  readonly #listener: DriverListener
  readonly #host: string
  readonly #timer: NodeJS.Timeout
  readonly #head = Buffer.alloc(HEAD_BYTES_MAX)
  readonly #tail = Buffer.alloc(TAIL_BYTES * 2)
  readonly #message = Buffer.alloc(MESSAGE_BYTES_MAX)
  #opened: Opened | null
  #closed = false
  #produce: ProduceTemplate | null = null
  #partition = -1
  #consume: ConsumeTemplate | null = null
  /** What is in flight: records of a produce, the offset of a consume, or nothing. */
  #inFlight: 'nothing' | 'produce' | 'consume' = 'nothing'
  #offset = 0
  #headBytes = 0
  #inBody = false
  #status = 0
  #bodyBytes = 0
  #bodySeen = 0
  #tailBytes = 0

  constructor(options: ConnectOptions, opened: Opened) {
    this.index = options.index
    this.#listener = options.listener
    this.#opened = opened
    this.#host = `${options.address.host}:${options.address.port}`
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
    this.#timer = setTimeout(
      () => this.#fail(new Error('the broker does not accept the connection')),
      CONNECT_TIMEOUT_MS
    )
    this.#socket.once('connect', () => {
      clearTimeout(this.#timer)
      const callback = this.#opened
      this.#opened = null
      callback?.(null)
    })
    this.#socket.once('error', error => this.#fail(error))
    this.#socket.once('close', () => this.#fail(new Error('the broker closed the connection')))
  }

  prepareProduce(_slot: number, template: ProduceTemplate): void {
    this.#produce = template
    this.#partition = -1
  }

  prepareConsume(_slot: number, template: ConsumeTemplate): void {
    this.#consume = template
  }

  produce(_slot: number, partition: number): void {
    const template = this.#produce
    if (template === null) throw new Error('the slot has no produce request')
    if (this.#partition !== partition) {
      this.#partition = partition
      const positions = template.partitionPositions
      for (let i = 0; i < positions.length; i++) {
        writePartitionDigits(template.bytes, positions[i] as number, partition)
      }
    }
    this.#begin('produce')
    this.#socket.write(template.bytes)
  }

  consume(_slot: number, partition: number, offset: number): void {
    const template = this.#consume
    if (template === null) throw new Error('the slot has no consume request')
    this.#begin('consume')
    this.#offset = offset
    const query = `partition=${partition}&offset=${offset}&max_records=${template.maxRecords}&max_bytes=${template.maxBytes}`
    const path = `/topics/${template.topic}/consume?${query}`
    this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: ${this.#host}\r\n\r\n`, 'latin1')
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#socket.destroy()
  }

  #begin(kind: 'produce' | 'consume'): void {
    if (this.#inFlight !== 'nothing') throw new Error('the slot has a request in flight')
    this.#inFlight = kind
    this.#headBytes = 0
    this.#inBody = false
    this.#bodySeen = 0
    this.#tailBytes = 0
  }

  #receive(bytes: Uint8Array, end: number): void {
    let at = 0
    while (at < end && !this.#closed) {
      if (this.#inFlight === 'nothing') {
        this.#fail(new Error('the broker sent bytes that nobody asked for'))
      } else {
        at = this.#inBody ? this.#takeBody(bytes, at, end) : this.#takeHead(bytes, at, end)
      }
    }
  }

  #takeHead(bytes: Uint8Array, start: number, end: number): number {
    const before = this.#headBytes
    const taken = Math.min(end - start, HEAD_BYTES_MAX - before)
    this.#head.set(bytes.subarray(start, start + taken), before)
    this.#headBytes += taken
    const headEnd = this.#head.subarray(0, this.#headBytes).indexOf(END_OF_HEAD, Math.max(0, before - 3))
    if (headEnd === -1) {
      if (this.#headBytes === HEAD_BYTES_MAX) this.#fail(new Error('the head of the response has no end'))
      return start + taken
    }
    const text = this.#head.toString('latin1', 0, headEnd)
    const length = /\r\ncontent-length:\s*(\d+)/i.exec(text)?.[1]
    const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]
    if (length === undefined || status === undefined) {
      this.#fail(new Error(`not a response with a known length: ${text.slice(0, 200)}`))
      return end
    }
    this.#status = Number(status)
    this.#bodyBytes = Number(length)
    this.#inBody = true
    if (this.#bodyBytes === 0) this.#finish()
    return start + (headEnd + END_OF_HEAD.length - before)
  }

  #takeBody(bytes: Uint8Array, start: number, end: number): number {
    const take = Math.min(end - start, this.#bodyBytes - this.#bodySeen)
    if (this.#bodySeen < MESSAGE_BYTES_MAX) {
      const room = Math.min(take, MESSAGE_BYTES_MAX - this.#bodySeen)
      this.#message.set(bytes.subarray(start, start + room), this.#bodySeen)
    }
    this.#keepTail(bytes, start + take - Math.min(take, TAIL_BYTES), start + take)
    this.#bodySeen += take
    if (this.#bodySeen === this.#bodyBytes) this.#finish()
    return start + take
  }

  /** The tail buffer holds twice the tail: it is shifted down only when the newest piece has no room behind the last. */
  #keepTail(bytes: Uint8Array, start: number, end: number): void {
    if (this.#tailBytes + (end - start) > this.#tail.length) {
      this.#tail.copyWithin(0, this.#tailBytes - Math.min(this.#tailBytes, TAIL_BYTES), this.#tailBytes)
      this.#tailBytes = Math.min(this.#tailBytes, TAIL_BYTES)
    }
    this.#tail.set(bytes.subarray(start, end), this.#tailBytes)
    this.#tailBytes += end - start
  }

  #finish(): void {
    const kind = this.#inFlight
    this.#inFlight = 'nothing'
    if (this.#status !== 200) {
      const message = this.#message.toString('utf8', 0, Math.min(this.#bodyBytes, MESSAGE_BYTES_MAX))
      this.#listener.onRefused(this, 0, `${this.#status} ${message}`)
      return
    }
    const answer = this.answer
    if (kind === 'produce') {
      answer.records = this.#produce?.records ?? 0
    } else {
      const tail = this.#tail.toString('latin1', 0, this.#tailBytes)
      const match = /"next_offset":(\d+),"high_watermark":(\d+)[^[\]]*\}$/.exec(tail)
      if (match === null) {
        this.#fail(new Error(`the end of a consume answer is not understood: ${tail}`))
        return
      }
      answer.nextOffset = Number(match[1])
      answer.highWatermark = Number(match[2])
      answer.records = answer.nextOffset - this.#offset
    }
    this.#listener.onAnswer(this, 0)
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
