/** Starts a listener over a fake broker on a port of its own, and raw sockets against it; all is closed with the test. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { ByteBudget } from '../../../../src/base/byte-budget.ts'
import { silentLogger } from '../../../../src/base/logger.ts'
import type { Logger } from '../../../../src/base/logger.ts'
import { createEs01Gateway } from '../../../../src/gateway/es01/gateway.ts'
import type { Es01Gateway } from '../../../../src/gateway/es01/gateway.ts'
import type { Certificates } from '../../../../src/gateway/shared/certificates.ts'
import type { Es01Settings, Es01Timeouts } from '../../../../src/gateway/es01/settings.ts'
import { FrameReader } from '../../../../src/wire/es01/frame.ts'
import { encodeHello } from '../../../../src/wire/es01/handshake.ts'
import { FakeBroker } from './fake-broker.ts'

const MIB = 1024 * 1024

/** Settings of the daemon's defaults, on a port of the system's choice. */
export const defaultSettings: Es01Settings = {
  bindBinary: '127.0.0.1:0',
  auth: 'disabled',
  maxRecordBytes: 8 * MIB,
  maxFetchBytes: 8 * MIB,
  maxFetchRecords: 10_000,
  binaryMaxConnectionsPerIp: 256,
  binaryIdleTimeoutMs: 600_000
}

export interface Fixture {
  readonly broker: FakeBroker
  readonly gateway: Es01Gateway
  readonly requestBudget: ByteBudget
  readonly replyBudget: ByteBudget
  readonly port: number
  /** A socket that has sent nothing. */
  open(): Promise<RawClient>
  /** A socket whose hello was accepted. */
  greet(): Promise<RawClient>
}

export interface FixtureOptions {
  readonly settings?: Partial<Es01Settings>
  readonly timeouts?: Partial<Es01Timeouts>
  readonly requestBytes?: number
  readonly replyBytes?: number
  readonly connectionsMax?: number
  readonly logger?: Logger
  readonly certificates?: Certificates
}

/** Calls until it answers true, once per turn of the event loop; fails with the claim after ten seconds. */
export async function until(claim: string, condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 10_000
  while (!condition()) {
    assert.ok(performance.now() < deadlineMs, `waited in vain until ${claim}`)
    await new Promise(resolve => setImmediate(resolve))
  }
}

export async function startGateway(t: TestContext, options: FixtureOptions = {}): Promise<Fixture> {
  const broker = new FakeBroker()
  const requestBudget = new ByteBudget(options.requestBytes ?? 256 * MIB)
  const replyBudget = new ByteBudget(options.replyBytes ?? 128 * MIB)
  const settings = { ...defaultSettings, ...options.settings }
  const gateway = createEs01Gateway({
    broker,
    settings,
    requestBudget,
    replyBudget,
    logger: options.logger ?? silentLogger,
    timeouts: { lingerMs: 200, ...options.timeouts },
    ...(options.certificates === undefined ? {} : { certificates: options.certificates }),
    ...(options.connectionsMax === undefined ? {} : { connectionsMax: options.connectionsMax })
  })
  const { port } = await gateway.listen()
  const clients: RawClient[] = []
  const open = async (): Promise<RawClient> => {
    const client = await RawClient.connect(port)
    clients.push(client)
    return client
  }
  t.after(async () => {
    for (const client of clients) client.socket.destroy()
    broker.release()
    await gateway.stop(5_000)
    await until('all connections are gone', () => gateway.connectionCount === 0)
    broker.release()
    await until('all request bytes were given back', () => requestBudget.usedBytes === 0)
    await until('all reply bytes were given back', () => replyBudget.usedBytes === 0)
  })
  const greet = async (): Promise<RawClient> => {
    const client = await open()
    client.send(encodeHello('', 0))
    assert.deepEqual((await client.take(13)).toString('hex'), '45533031000000000000000000')
    return client
  }
  return { broker, gateway, requestBudget, replyBudget, port, open, greet }
}

/** A frame as a test compares it. */
export interface PlainFrame {
  readonly id: number
  readonly opcode: number
  readonly payload: Buffer
}

/** A plain socket and what came from it. */
export class RawClient {
  readonly socket: Socket
  isClosed = false
  hasEnded = false
  readonly #reader = new FrameReader(256 * MIB)

  static async connect(port: number): Promise<RawClient> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true })
    const client = new RawClient(socket)
    await once(socket, 'connect')
    return client
  }

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', chunk => this.#reader.push(chunk))
    // A reset is one of the ways in which a connection may end here; the tests look at `isClosed`.
    socket.on('error', () => {})
    socket.on('end', () => {
      this.hasEnded = true
      socket.end()
    })
    socket.on('close', () => (this.isClosed = true))
  }

  /** Bytes that arrived and were not taken. */
  get restBytes(): number {
    return this.#reader.rest.length
  }

  send(bytes: Uint8Array): void {
    this.socket.write(bytes)
  }

  async take(count: number): Promise<Buffer> {
    await until(`${count} bytes came`, () => this.#reader.rest.length >= count || this.isClosed)
    const bytes = Buffer.from(this.#reader.rest.subarray(0, count))
    this.#reader.skip(bytes.length)
    return bytes
  }

  /** The next frame; fails if the connection closes first. */
  async frame(): Promise<PlainFrame> {
    let found: PlainFrame | null = null
    await until('a frame came', () => {
      const frame = this.#reader.next()
      if (frame !== null && typeof frame !== 'string') {
        found = { id: frame.requestId, opcode: frame.opcode, payload: Buffer.from(frame.payload) }
      }
      return found !== null || this.isClosed
    })
    assert.ok(found !== null, 'the connection was closed before the frame came')
    return found
  }

  async frames(count: number): Promise<PlainFrame[]> {
    const found: PlainFrame[] = []
    while (found.length < count) found.push(await this.frame())
    return found
  }

  /** The text of the next frame, which is an error frame with that id. */
  async errorText(id: number): Promise<string> {
    const frame = await this.frame()
    assert.deepEqual([frame.id, frame.opcode], [id, 0xff], frame.payload.toString())
    return frame.payload.toString('utf8')
  }

  async closed(): Promise<void> {
    await until('the connection was closed', () => this.isClosed)
  }
}
