/** ES01 clients that misbehave: one that asks for much and never reads, one that stops in the middle of a frame. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { encodeConsumeFrame } from '../../src/wire/es01/consume.ts'
import { encodeProduceFrame } from '../../src/wire/es01/produce-frame.ts'
import { encodeHello } from '../../src/wire/es01/handshake.ts'
import { atEnd } from './clean-up.ts'

/** A socket past the handshake, not read. Destroyed when the test ends. */
async function openSocket(t: TestContext, address: { readonly host: string; readonly port: number }): Promise<Socket> {
  const socket = connect({ ...address, noDelay: true })
  atEnd(t, () => socket.destroy())
  // The broker may reset it at any time: that is what such a client deserves.
  socket.on('error', () => socket.destroy())
  socket.pause()
  await once(socket, 'connect')
  socket.write(encodeHello('', 0))
  return socket
}

/** Asks for a partition again and again, 8 MiB at most each, and reads not one byte of the answers. */
export async function openStuckReader(
  t: TestContext,
  address: { readonly host: string; readonly port: number },
  read: { readonly topic: string; readonly partition: number; readonly requests: number }
): Promise<Socket> {
  const socket = await openSocket(t, address)
  const { topic, partition, requests } = read
  for (let id = 0; id < requests; id++) {
    socket.write(encodeConsumeFrame(id, { topic, partition, offset: 0, maxRecords: 10_000, maxBytes: 8 * 1024 * 1024 }))
  }
  return socket
}

/** Sends the first half of a produce frame of that many bytes, and no more. */
export async function openHalfFrame(
  t: TestContext,
  address: { readonly host: string; readonly port: number },
  topic: string,
  bytes: number
): Promise<Socket> {
  const socket = await openSocket(t, address)
  const frame = encodeProduceFrame(1, topic, [{ value: Buffer.alloc(bytes, 'h'), partition: 0 }])
  socket.write(frame.subarray(0, frame.length >> 1))
  return socket
}
