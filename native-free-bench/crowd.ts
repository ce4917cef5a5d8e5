/**
 * Many ES01 connections beside a load: idle ones past their hello, and stuck ones, half of which have sent half a frame and
 * half of which ask for much and read nothing. They come from several addresses of this machine, because a broker bounds the
 * connections of one. Main thread.
 */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { encodeConsumeFrame } from '../src/wire/es01/consume.ts'
import { encodeHello, HELLO_REPLY_HEADER_BYTES } from '../src/wire/es01/handshake.ts'
import { encodeProduceFrame } from '../src/wire/es01/produce-frame.ts'
import type { Address } from './drivers/driver.ts'

/** 127.0.0.1 to 127.0.0.8: 125 of a thousand each. */
const ADDRESSES = 8
/** Opened at once: the system's queue of new connections is short. */
const OPENED_AT_ONCE = 50
const OPEN_TIMEOUT_MS = 30_000
/** Of a frame that never comes whole. */
const HALF_FRAME_VALUE_BYTES = 64 * 1024
/** Requests of one that reads nothing: more than a broker runs at once on a connection. */
const UNREAD_REQUESTS = 40
const UNREAD_BYTES = 1024 * 1024

/** `idle`: only a hello. `half`: half of a produce. `unread`: many consumes, and no answer of them read. */
export type CrowdKind = 'idle' | 'half' | 'unread'

/** Where from connection `index` connects. */
export function localAddressOf(index: number): string {
  return `127.0.0.${1 + (index % ADDRESSES)}`
}

export class Crowd {
  readonly #address: Address
  readonly #topic: string
  readonly #sockets: Socket[] = []
  #opened = 0
  #failure: Error | null = null

  /** @param topic has records in partition 0, for those that read nothing. */
  constructor(address: Address, topic: string) {
    this.#address = address
    this.#topic = topic
  }

  /** Opens `count` more. @throws Error when one is refused or closed. */
  async open(kind: CrowdKind, count: number): Promise<void> {
    const wanted = this.#sockets.length + count
    while (this.#sockets.length < wanted) {
      for (let i = 0; i < OPENED_AT_ONCE && this.#sockets.length < wanted; i++) this.#openOne(kind)
      await this.#untilOpen()
    }
  }

  /** @throws Error when the broker has closed one since it was opened. */
  check(): void {
    if (this.#failure !== null) throw this.#failure
  }

  /** Closes all. May be called twice. */
  close(): void {
    for (const socket of this.#sockets.splice(0)) {
      socket.removeAllListeners('close')
      socket.destroy()
    }
    this.#opened = 0
  }

  #openOne(kind: CrowdKind): void {
    const localAddress = localAddressOf(this.#sockets.length)
    const socket = connect({ ...this.#address, localAddress, noDelay: true })
    this.#sockets.push(socket)
    socket.write(encodeHello('', 0))
    let helloBytes = 0
    socket.on('data', (bytes: Buffer) => {
      helloBytes += bytes.length
      if (helloBytes !== HELLO_REPLY_HEADER_BYTES) {
        this.#failure ??= new Error(`${helloBytes} bytes where the answer to a hello has ${HELLO_REPLY_HEADER_BYTES}`)
        return
      }
      this.#opened++
      if (kind !== 'idle') this.#misbehave(socket, kind)
    })
    socket.on('error', error => (this.#failure ??= error))
    socket.on('close', () => (this.#failure ??= new Error(`the broker closed one of the connections that are ${kind}`)))
  }

  #misbehave(socket: Socket, kind: 'half' | 'unread'): void {
    if (kind === 'half') {
      const frame = encodeProduceFrame(1, this.#topic, [{ value: Buffer.alloc(HALF_FRAME_VALUE_BYTES), partition: 0 }])
      socket.write(frame.subarray(0, frame.length >> 1))
      return
    }
    socket.pause()
    const request = { topic: this.#topic, partition: 0, offset: 0, maxRecords: 10_000, maxBytes: UNREAD_BYTES }
    for (let id = 1; id <= UNREAD_REQUESTS; id++) socket.write(encodeConsumeFrame(id, request))
  }

  async #untilOpen(): Promise<void> {
    const endMs = performance.now() + OPEN_TIMEOUT_MS
    while (this.#opened < this.#sockets.length) {
      this.check()
      if (performance.now() > endMs)
        throw new Error(`${this.#opened} of ${this.#sockets.length} connections were opened`)
      await sleep(1)
    }
  }
}
