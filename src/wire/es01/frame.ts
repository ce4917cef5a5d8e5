/**
 * ES01 frames: header, opcodes, length limits. Pure, any thread. All integers are big-endian.
 *
 *   at  bytes  field
 *    0    4    length, u32: bytes that follow, so ≥ 5
 *    4    4    request_id, u32, echoed in the answer
 *    8    1    opcode, u8
 *    9    n    payload
 */
import { readU32, writeU32 } from './bytes.ts'

/** Bytes of the length field. */
export const LENGTH_BYTES = 4
/** Bytes before the payload. */
export const FRAME_HEADER_BYTES = 9
/** The least that `length` may say: request_id and opcode. */
export const FRAME_LENGTH_MIN = 5

/** What a frame is. An answer is its request with bit 7 set. */
export const opcodes = {
  produce: 0x01,
  consume: 0x02,
  ping: 0x03,
  produced: 0x81,
  consumed: 0x82,
  pong: 0x83,
  error: 0xff
} as const

/** What the header of a frame says beside its length. */
export interface FrameHead {
  readonly requestId: number
  readonly opcode: number
}

/** Is that an opcode that only a broker may send? */
export function isAnswerOpcode(opcode: number): boolean {
  return (
    opcode === opcodes.produced || opcode === opcodes.consumed || opcode === opcodes.pong || opcode === opcodes.error
  )
}

/** Is that an opcode that a client may send? */
export function isRequestOpcode(opcode: number): boolean {
  return opcode === opcodes.produce || opcode === opcodes.consume || opcode === opcodes.ping
}

/** Writes a frame header at target[at…]. @returns the position after it, where `payloadBytes` bytes must follow. */
export function writeFrameHeader(
  target: Uint8Array,
  at: number,
  requestId: number,
  opcode: number,
  payloadBytes: number
): number {
  writeU32(target, at, FRAME_LENGTH_MIN + payloadBytes)
  writeU32(target, at + 4, requestId)
  target[at + 8] = opcode
  return at + FRAME_HEADER_BYTES
}

/** Puts another request id into a whole frame that begins at `at`. */
export function patchRequestId(frame: Uint8Array, at: number, requestId: number): void {
  writeU32(frame, at + 4, requestId)
}

/** @returns a whole frame around a copy of the payload. */
export function encodeFrame(requestId: number, opcode: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length)
  frame.set(payload, writeFrameHeader(frame, 0, requestId, opcode, payload.length))
  return frame
}

/** One frame as it was read. */
export interface Frame extends FrameHead {
  readonly payload: Buffer
}

/**
 * Cuts a stream of bytes into frames, for a reader that trusts its peer more than a listener may.
 * Invariant: memory grows by doubling with the bytes that arrived, never by an announced length.
 */
export class FrameReader {
  readonly #lengthMax: number
  #bytes: Buffer = Buffer.alloc(0)
  #start = 0
  #end = 0

  /** @param lengthMax a frame that says more is a broken stream. */
  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax
  }

  /** Bytes that no frame has taken yet: of a handshake, or of a frame that is not whole. A view until the next push. */
  get rest(): Buffer {
    return this.#bytes.subarray(this.#start, this.#end)
  }

  /** Takes a copy of the chunk. Payloads given out before are invalid from here on. */
  push(chunk: Uint8Array): void {
    if (this.#end + chunk.length > this.#bytes.length) {
      const held = this.#end - this.#start
      const room = held + chunk.length
      const target = room <= this.#bytes.length ? this.#bytes : Buffer.allocUnsafeSlow(Math.max(2 * room, 16 * 1024))
      this.#bytes.copy(target, 0, this.#start, this.#end)
      this.#bytes = target
      this.#start = 0
      this.#end = held
    }
    this.#bytes.set(chunk, this.#end)
    this.#end += chunk.length
  }

  /** Drops that many bytes of the rest. */
  skip(bytes: number): void {
    this.#start += bytes
  }

  /** @returns the next whole frame (its payload is a view until the next push), null, or a text if the stream is broken. */
  next(): Frame | string | null {
    const held = this.#end - this.#start
    if (held < LENGTH_BYTES) return null
    const length = readU32(this.#bytes, this.#start)
    if (length < FRAME_LENGTH_MIN || length > this.#lengthMax) return `a frame says it has ${length} bytes`
    if (held < LENGTH_BYTES + length) return null
    const at = this.#start
    this.#start += LENGTH_BYTES + length
    return {
      requestId: readU32(this.#bytes, at + 4),
      opcode: this.#bytes[at + 8] as number,
      payload: this.#bytes.subarray(at + FRAME_HEADER_BYTES, this.#start)
    }
  }
}
