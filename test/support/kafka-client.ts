/**
 * A client of the Kafka protocol for tests: one connection, any API in any version, and the very bytes where they matter.
 * It says what a test tells it to, also what no real client would.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { FRAME_SIZE_BYTES, readResponseHeader, requestFrame } from '../../src/wire/kafka/headers.ts'
import type { Api } from '../../src/wire/kafka/message.ts'
import type { FieldTable, ReadOf, WriteOf } from '../../src/wire/kafka/schema.ts'
import { atEnd } from './clean-up.ts'

/** A response as it came. */
export interface RawResponse {
  /** −1: it has none; a bare token may be empty. */
  readonly correlationId: number
  /** Without its size. */
  readonly bytes: Buffer
}

export class KafkaClient {
  readonly socket: Socket
  #nextId = 1
  #received: Buffer = Buffer.alloc(0)
  readonly #waiting: ((response: RawResponse | null) => void)[] = []
  readonly #ready: RawResponse[] = []
  #isClosed = false

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', chunk => this.#take(chunk))
    socket.on('close', () => {
      this.#isClosed = true
      for (const waiter of this.#waiting.splice(0)) waiter(null)
    })
    // The broker may reset it: a test looks at what came, and whether it is closed.
    socket.on('error', () => socket.destroy())
  }

  /** Sends a request. @returns its correlation id. */
  send<Request extends FieldTable, Response extends FieldTable>(
    api: Api<Request, Response>,
    apiVersion: number,
    body: WriteOf<Request>
  ): number {
    const correlationId = this.#nextId++
    this.socket.write(Buffer.concat(requestFrame(api, { apiVersion, correlationId, clientId: 'test' }, body)))
    return correlationId
  }

  /** The next response; null: the broker has closed the connection. */
  next(): Promise<RawResponse | null> {
    const ready = this.#ready.shift()
    if (ready !== undefined) return Promise.resolve(ready)
    if (this.#isClosed) return Promise.resolve(null)
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  /** One request and its response. */
  async call<Request extends FieldTable, Response extends FieldTable>(
    api: Api<Request, Response>,
    version: number,
    body: WriteOf<Request>
  ): Promise<ReadOf<Response>> {
    const id = this.send(api, version, body)
    const response = await this.next()
    assert.ok(response !== null, `${api.name} ${version} was answered by a close`)
    assert.equal(response.correlationId, id)
    return decodeResponse(api, version, response)
  }

  /** Resolves when the broker has closed the connection without a further response. */
  async closed(): Promise<void> {
    assert.equal(await this.next(), null)
  }

  #take(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk])
    while (this.#received.length >= FRAME_SIZE_BYTES) {
      const end = FRAME_SIZE_BYTES + this.#received.readInt32BE(0)
      if (this.#received.length < end) return
      const bytes = this.#received.subarray(FRAME_SIZE_BYTES, end)
      this.#received = this.#received.subarray(end)
      const response = { correlationId: bytes.length < 4 ? -1 : bytes.readInt32BE(0), bytes }
      const waiter = this.#waiting.shift()
      if (waiter === undefined) this.#ready.push(response)
      else waiter(response)
    }
  }
}

/** What a response says. */
export function decodeResponse<Request extends FieldTable, Response extends FieldTable>(
  api: Api<Request, Response>,
  version: number,
  { bytes }: RawResponse
): ReadOf<Response> {
  const header = readResponseHeader(api, version, bytes, 0, bytes.length)
  assert.ok(typeof header !== 'string', String(header))
  const body = api.response.decode(version, bytes, header.bodyStart, bytes.length)
  assert.ok(typeof body !== 'string', String(body))
  return body
}

/** host and port of `host:port`. */
export function placeOf(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
}

/** Connects; closed with the test. */
export async function connectKafka(t: TestContext, address: string): Promise<KafkaClient> {
  const client = await openKafka(address)
  atEnd(t, () => client.socket.destroy())
  return client
}

/** Connects; its end is the caller's affair, and nothing keeps it until the test is over. */
export async function openKafka(address: string): Promise<KafkaClient> {
  const socket = connect({ ...placeOf(address), noDelay: true })
  await once(socket, 'connect')
  return new KafkaClient(socket)
}
