/**
 * Payloads of a connection on which gzip was agreed: each is a gzip stream of its own, the nine bytes before it are not.
 * Any thread with an event loop. Small ones are done at once, because handing them over costs more than the work; large
 * ones on the pool of Node.js, so that the event loop goes on meanwhile.
 */
import { constants, gunzip, gunzipSync, gzip, gzipSync } from 'node:zlib'
import { FRAME_HEADER_BYTES, FRAME_LENGTH_MIN } from '../../wire/es01/frame.ts'
import { writeU32 } from '../../wire/es01/bytes.ts'

/** Payloads of fewer bytes are done on the spot. */
const AT_ONCE_BYTES_END = 64 * 1024
/** A connection is asked for gzip where it is the narrow part, and the records of a batch are alike: fast is good enough. */
const deflating = { level: constants.Z_BEST_SPEED }

/** @returns the frame with its payload deflated: a new one; the frame given must not change until then. */
export function deflateFrame(frame: Buffer): Buffer | Promise<Buffer> {
  const payload = frame.subarray(FRAME_HEADER_BYTES)
  if (payload.length < AT_ONCE_BYTES_END) return withPayload(frame, gzipSync(payload, deflating))
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
  const bounded = { maxOutputLength: bytesMax }
  if (payload.length < AT_ONCE_BYTES_END) return gunzipSync(payload, bounded)
  return new Promise((resolve, reject) => {
    gunzip(Buffer.from(payload), bounded, (error, inflated) => {
      if (error === null) resolve(inflated)
      else reject(error)
    })
  })
}
