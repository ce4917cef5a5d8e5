/**
 * Gzip streams of ES01 payloads, both ways, at once or on the thread pool of Node. Main thread; no state.
 *
 * What is done at once is small, so that no other connection waits for it. What is larger is done elsewhere, in one piece
 * where its length is known: each piece goes to the thread pool by itself. Output is bounded in every case.
 */
import { constants, gunzip, gunzipSync, gzip, gzipSync } from 'node:zlib'
import { BrokerError, toBrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'

/** Header and trailer of a gzip member: less is none. */
const MEMBER_BYTES_MIN = 18
/** The last field of a member: the length of what it holds, modulo 2^32. */
const ISIZE_BYTES = 4
/** Pieces of what may have any length. */
const PIECE_BYTES = 64 * 1024
/** A byte more than a stream may hold, since zlib begins a further piece when one is full. */
const SPARE_BYTES = 1
/** The most that deflate makes of one byte. */
const INFLATED_PER_BYTE_MAX = 1032
/** Answers are compressed for speed. */
const LEVEL = 1

/** tooLarge: there is more than the bound. A BrokerError: it is no gzip stream, as its text says, or this machine failed. */
export type Inflated = Buffer | 'tooLarge' | BrokerError

/** @returns what the stream in bytes[start, end) says it holds. A claim: streams of several members, or a liar's, hold more. */
export function claimedBytes(bytes: Buffer, start: number, end: number): number {
  return end - start < MEMBER_BYTES_MIN ? 0 : bytes.readUInt32LE(end - ISIZE_BYTES)
}

/**
 * @returns the memory that `inflateLater` takes at most for that bound: one piece for all of it, and a second one, which a
 * stream that holds more fills before it is stopped.
 */
export function inflatingBytes(outputBytesMax: number): number {
  return 2 * pieceBytes(outputBytesMax)
}

function pieceBytes(outputBytesMax: number): number {
  return outputBytesMax + SPARE_BYTES
}

/** @returns the most that a payload of so many bytes can have as a gzip stream: stored blocks, header and trailer. */
export function gzippedBytesMax(bytes: number): number {
  return bytes + Math.floor(bytes / 1000) + 64
}

/** Inflates bytes[start, end) at once. The caller has seen that it is small; `outputBytesMax` is so too. */
export function inflateNow(bytes: Buffer, start: number, end: number, outputBytesMax: number): Inflated {
  try {
    return gunzipSync(bytes.subarray(start, end), { maxOutputLength: outputBytesMax })
  } catch (error) {
    return failureOf(error)
  }
}

/** Inflates as much as bytes[start, end), the first bytes of a stream, tell. The caller takes few. */
export function inflatePrefix(bytes: Buffer, start: number, end: number): Inflated {
  try {
    const maxOutputLength = (end - start) * INFLATED_PER_BYTE_MAX
    return gunzipSync(bytes.subarray(start, end), { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength })
  } catch (error) {
    return failureOf(error)
  }
}

/**
 * Inflates on the thread pool. `input` must not change until `done` is called, which is never at once. The memory for
 * `outputBytesMax` is taken before anything is known of the stream: the caller has reserved `inflatingBytes` of it.
 */
export function inflateLater(input: Buffer, outputBytesMax: number, done: (inflated: Inflated) => void): void {
  const chunkSize = pieceBytes(outputBytesMax)
  gunzip(input, { maxOutputLength: outputBytesMax, chunkSize }, (error, output) => {
    done(error === null ? output : failureOf(error))
  })
}

/** Compresses a small payload at once. */
export function deflateNow(payload: Buffer): Buffer {
  return gzipSync(payload, { level: LEVEL })
}

/**
 * Compresses a payload of any size: at once if it is small, else on the thread pool. It must not change until `done` is
 * called. An error is one of this machine, such as no memory: any bytes can be compressed.
 */
export function deflate(payload: Buffer, done: (compressed: Buffer | BrokerError) => void): void {
  if (payload.length <= limits.inflateAtOnceBytesMax) {
    // Not around `done`: what fails there is not of this stream.
    let compressed: Buffer | BrokerError
    try {
      compressed = deflateNow(payload)
    } catch (error) {
      compressed = toBrokerError(error)
    }
    return done(compressed)
  }
  gzip(payload, { level: LEVEL, chunkSize: PIECE_BYTES }, (error, compressed) => {
    done(error === null ? compressed : toBrokerError(error))
  })
}

function failureOf(error: unknown): 'tooLarge' | BrokerError {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code === 'ERR_BUFFER_TOO_LARGE') return 'tooLarge'
  if (code === 'Z_DATA_ERROR' || code === 'Z_BUF_ERROR' || code === 'Z_NEED_DICT') {
    return new BrokerError('GZIP_INVALID', { problem: (error as Error).message })
  }
  return toBrokerError(error)
}
