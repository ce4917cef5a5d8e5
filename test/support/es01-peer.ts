/**
 * A peer that speaks ES01 as the test says: for what a real broker does rarely or never. One per test, on 127.0.0.1,
 * closed with it.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { encodeFrame, FrameReader, opcodes, type Frame } from '../../src/wire/es01/frame.ts'
import { encodeHelloReply, readHello } from '../../src/wire/es01/handshake.ts'
import type { Es01Address } from './broker.ts'
import { atEnd } from './clean-up.ts'

/** One connection of a client, whose hello was accepted. */
export interface PeerConnection {
  /** From 0, in the order in which they came. */
  readonly index: number
  readonly socket: Socket
  /** Feature bits that its hello asked for. */
  readonly asked: number
  answer(requestId: number, opcode: number, payload: Buffer): void
  refuse(requestId: number, message: string): void
  /** Closes without a further answer. */
  drop(): void
}

export interface PeerOptions {
  /** Feature bits that are accepted. */
  readonly accepts?: number
  readonly onFrame: (frame: Frame, connection: PeerConnection) => void
}

/** Payloads of frames are the listener's to keep. */
export async function startPeer(t: TestContext, { accepts = 0, onFrame }: PeerOptions): Promise<Es01Address> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    const index = sockets.size
    sockets.add(socket)
    // What a client does to its connection is looked at from its side.
    socket.on('error', () => {})
    const reader = new FrameReader(64 * 1024 * 1024)
    let connection: PeerConnection | null = null
    socket.on('data', chunk => {
      reader.push(chunk)
      if (connection === null) {
        const hello = readHello(reader.rest, 0, reader.rest.length)
        if (hello.kind !== 'complete') return
        reader.skip(hello.bytes)
        socket.write(encodeHelloReply(0, accepts & hello.features, ''))
        connection = connectionOf(index, socket, hello.features)
      }
      for (let frame = reader.next(); frame !== null && !socket.destroyed; frame = reader.next()) {
        assert.ok(typeof frame !== 'string', String(frame))
        onFrame({ ...frame, payload: Buffer.from(frame.payload) }, connection)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return { host: '127.0.0.1', port: address.port }
}

function connectionOf(index: number, socket: Socket, asked: number): PeerConnection {
  const answer = (requestId: number, opcode: number, payload: Buffer): void => {
    socket.write(encodeFrame(requestId, opcode, payload))
  }
  return {
    index,
    socket,
    asked,
    answer,
    refuse: (requestId, message) => answer(requestId, opcodes.error, Buffer.from(message)),
    drop: () => socket.destroy()
  }
}

/** The payload of an answer to a produce. */
export function producedPayload(
  results: readonly { readonly partition: number; readonly offset: number; readonly duplicate?: boolean }[]
): Buffer {
  const payload = Buffer.alloc(4 + 13 * results.length)
  payload.writeUInt32BE(results.length)
  for (const [i, { partition, offset, duplicate = false }] of results.entries()) {
    payload.writeUInt32BE(partition, 4 + 13 * i)
    payload.writeBigUInt64BE(BigInt(offset), 8 + 13 * i)
    payload[16 + 13 * i] = duplicate ? 1 : 0
  }
  return payload
}
