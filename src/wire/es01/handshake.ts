/**
 * The first bytes of an ES01 connection, both directions. Pure, any thread. All integers are big-endian.
 *
 *   client → broker                          broker → client
 *   at  bytes  field                         at  bytes  field
 *    0    4    magic "ES01"                   0    4    magic "ES01"
 *    4    4    features requested, u32        4    1    status, u8
 *    8    4    token_len, u32, ≤ 1024         5    4    features accepted, u32
 *   12    n    token                          9    4    msg_len, u32
 *                                            13    n    msg, UTF-8
 */
import { limits } from '../../model/limits.ts'
import { readU32, writeU32 } from './bytes.ts'

/** "ES01" as a big-endian u32. */
const MAGIC = 0x4553_3031
/** Bytes of a hello before its token. */
export const HELLO_HEADER_BYTES = 12
/** Bytes of a hello reply before its message. */
export const HELLO_REPLY_HEADER_BYTES = 13
/** The longest message of a hello reply that a client takes: ours are far shorter. */
const MESSAGE_BYTES_MAX = 64 * 1024

/** Status of a hello reply. Non-zero: the connection is closed after the reply. */
export const helloStatuses = { ok: 0, badMagic: 1, authFailed: 2, authRequired: 3 } as const
export type HelloStatus = (typeof helloStatuses)[keyof typeof helloStatuses]

/** Bits of the features that a hello may ask for. gzip: payloads of both directions are gzip streams (spec 11.10). */
export const features = { gzip: 1 } as const

/**
 * What bytes[start, end) say of a hello: `bytes` is the length of the whole of it, or 0 while that is not known. Its last
 * `tokenBytes` are the token.
 */
export type HelloVerdict =
  | { readonly kind: 'incomplete'; readonly bytes: number }
  | { readonly kind: 'complete'; readonly bytes: number; readonly features: number; readonly tokenBytes: number }
  | { readonly kind: 'refused'; readonly status: HelloStatus; readonly message: string }

/** Reads a hello in place. A wrong magic is reported before a token that is too long. Nothing is kept. */
export function readHello(bytes: Uint8Array, start: number, end: number): HelloVerdict {
  const length = end - start
  if (length < HELLO_HEADER_BYTES) return { kind: 'incomplete', bytes: 0 }
  if (readU32(bytes, start) !== MAGIC) {
    return { kind: 'refused', status: helloStatuses.badMagic, message: 'the first four bytes must be ES01' }
  }
  const tokenBytes = readU32(bytes, start + 8)
  // Refused without being read.
  if (tokenBytes > limits.tokenBytesMax) {
    const message = `token_len is ${tokenBytes}: over the limit of ${limits.tokenBytesMax}`
    return { kind: 'refused', status: helloStatuses.authFailed, message }
  }
  const total = HELLO_HEADER_BYTES + tokenBytes
  if (length < total) return { kind: 'incomplete', bytes: total }
  return { kind: 'complete', bytes: total, features: readU32(bytes, start + 4), tokenBytes }
}

/** @returns a hello with that token (UTF-8), asking for these feature bits. */
export function encodeHello(token: string, features: number): Buffer {
  const tokenBytes = Buffer.from(token, 'utf8')
  const hello = Buffer.alloc(HELLO_HEADER_BYTES + tokenBytes.length)
  writeU32(hello, 0, MAGIC)
  writeU32(hello, 4, features)
  writeU32(hello, 8, tokenBytes.length)
  tokenBytes.copy(hello, HELLO_HEADER_BYTES)
  return hello
}

/** @returns a reply with that status, the accepted feature bits and a message for people. */
export function encodeHelloReply(status: HelloStatus, features: number, message: string): Buffer {
  const text = Buffer.from(message, 'utf8')
  const reply = Buffer.alloc(HELLO_REPLY_HEADER_BYTES + text.length)
  writeU32(reply, 0, MAGIC)
  reply[4] = status
  writeU32(reply, 5, features)
  writeU32(reply, 9, text.length)
  text.copy(reply, HELLO_REPLY_HEADER_BYTES)
  return reply
}

/** A whole hello reply. `bytes` is its length; `status` may be a number that this version does not know. */
export interface HelloReply {
  readonly bytes: number
  readonly status: number
  readonly features: number
  readonly message: string
}

/** @returns the reply at the start of `bytes`, null while it is incomplete, or a text if this is not ES01. */
export function readHelloReply(bytes: Buffer): HelloReply | string | null {
  if (bytes.length < HELLO_REPLY_HEADER_BYTES) return null
  if (readU32(bytes, 0) !== MAGIC) return 'the answer to the handshake does not begin with ES01'
  const messageBytes = readU32(bytes, 9)
  if (messageBytes > MESSAGE_BYTES_MAX) return `the message of the handshake has ${messageBytes} bytes`
  const total = HELLO_REPLY_HEADER_BYTES + messageBytes
  if (bytes.length < total) return null
  const message = bytes.toString('utf8', HELLO_REPLY_HEADER_BYTES, total)
  return { bytes: total, status: bytes[4] as number, features: readU32(bytes, 5), message }
}
