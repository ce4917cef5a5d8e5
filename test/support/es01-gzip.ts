/** ES01 over gzip as plainly as possible: frames compressed by hand, answers inflated, and a thread pool that is busy. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { encodeHello } from '../../src/wire/es01/handshake.ts'
import { encodeFrame, FRAME_HEADER_BYTES } from '../../src/wire/es01/frame.ts'
import type { PlainFrame, RawClient } from '../unit/gateway/es01/fixture.ts'
import { atEnd } from './clean-up.ts'
import { temporaryDirectory } from './temporary-directory.ts'

/** The same frame with another payload. @param change by default: gzip. */
export function withPayload(frame: Buffer, change: (payload: Buffer) => Buffer = gzipSync): Buffer {
  return encodeFrame(frame.readUInt32BE(4), frame[8] ?? 0, change(frame.subarray(FRAME_HEADER_BYTES)))
}

/** Says hello on a socket that has sent nothing, and asks for gzip. */
export async function agreeOnGzip(client: RawClient, token = ''): Promise<RawClient> {
  client.send(encodeHello(token, 1))
  assert.equal((await client.take(13)).toString('hex'), '45533031000000000100000000')
  return client
}

/** The next frame, inflated. */
export async function plainFrame(client: RawClient): Promise<PlainFrame> {
  const frame = await client.frame()
  return { ...frame, payload: gunzipSync(frame.payload) }
}

/** The text of the next frame, which is an error frame with that id. */
export async function plainErrorText(client: RawClient, id: number): Promise<string> {
  const frame = await plainFrame(client)
  assert.deepEqual([frame.id, frame.opcode], [id, 0xff], frame.payload.toString())
  return frame.payload.toString('utf8')
}

/** Many zeros in few bytes: members of 64 MiB each, one behind the other. */
export function zeros(members: number): Buffer {
  return Buffer.concat(new Array<Buffer>(members).fill(gzipSync(Buffer.alloc(64 * 1024 * 1024))))
}

/**
 * Blocks every thread of Node's pool, each in the opening of a pipe that nobody writes to, until `free`: what is to be done
 * in the pool waits, and a test can look at what happens meanwhile.
 */
export function occupyPool(t: TestContext): { free(): Promise<void> } {
  const pipe = join(temporaryDirectory(t), 'pipe')
  execFileSync('mkfifo', [pipe])
  const threads = Number(process.env['UV_THREADPOOL_SIZE'] ?? 4)
  const blocked = Array.from({ length: threads }, () => open(pipe, 'r').then(file => file.close()))
  let freed: Promise<void> | null = null
  const free = async (): Promise<void> => {
    // Opened for both it waits for nobody, and nobody who reads waits any more.
    const writer = openSync(pipe, 'r+')
    await Promise.all(blocked)
    closeSync(writer)
  }
  const freeOnce = (): Promise<void> => (freed ??= free())
  atEnd(t, freeOnce)
  return { free: freeOnce }
}
