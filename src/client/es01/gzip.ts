/**
 * Payloads of a connection on which gzip was agreed: each is a gzip stream of its own, the nine bytes before it are not.
 * Any thread with an event loop. What is small both ways is done at once, because handing it over costs more than the
 * work; the rest on the pool of Node.js, so that the event loop goes on meanwhile.
 */
import { constants, gunzip, gunzipSync, gzip, gzipSync } from 'node:zlib'
import { limits } from '../../model/limits.ts'
import { FRAME_HEADER_BYTES, FRAME_LENGTH_MIN } from '../../wire/es01/frame.ts'
import { writeU32 } from '../../wire/es01/bytes.ts'

/** The last field of a gzip stream: the length of what it holds, modulo 2^32. */
const ISIZE_BYTES = 4
/** A connection is asked for gzip where it is the narrow part, and the records of a batch are alike: fast is good enough. */
const deflating = { level: constants.Z_BEST_SPEED }

/** @returns the frame with its payload deflated: a new one; the frame given must not change until then. */
export function deflateFrame(frame: Buffer): Buffer | Promise<Buffer> {
  const payload = frame.subarray(FRAME_HEADER_BYTES)
  if (payload.length <= limits.inflateAtOnceBytesMax) return withPayload(frame, gzipSync(payload, deflating))
  return new Promise((resolve, reject) => {
    gzip(payload, deflating, (error, deflated) => {
      if (error === null) resolve(withPayload(frame, deflated))
      else reject(error)
    })
  })
}

function withPayload(frame: Buffer, payload: Buffer): Buffer {
  const made = Buffer.concat([frame.subarray(0, FRAME_HEADER_BYTES), payload])
  writeU32(made, 0, FRAME_LENGTH_MIN + payload.length)
  return made
}

/**
 * @param payload may be a view that is valid during the call alone. @param bytesMax inflating to more fails.
 * @returns the payload inflated. @throws Error, or rejects with it: no gzip stream, or too much.
 */
export function inflatePayload(payload: Buffer, bytesMax: number): Buffer | Promise<Buffer> {
  const inflated = inflateAtOnce(payload)
  if (inflated !== null) return inflated
  return new Promise((resolve, reject) => {
    gunzip(Buffer.from(payload), { maxOutputLength: bytesMax }, (error, inflated) => {
      if (error === null) resolve(inflated)
      else reject(error)
    })
  })
}

/** @returns null: it is much, or turned out to be, because what a stream says of itself is a claim. */
function inflateAtOnce(payload: Buffer): Buffer | null {
  const { inflateAtOnceBytesMax, inflatedAtOnceBytesMax } = limits
  if (payload.length > inflateAtOnceBytesMax || payload.length < ISIZE_BYTES) return null
  if (payload.readUInt32LE(payload.length - ISIZE_BYTES) > inflatedAtOnceBytesMax) return null
  try {
    return gunzipSync(payload, { maxOutputLength: inflatedAtOnceBytesMax })
  } catch (error) {
    if (error instanceof RangeError && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') return null
    throw error
  }
}
