/**
 * What the first bytes of a connection come to: who it is, what both sides will speak, and the reply. Main thread.
 * It looks at the bytes alone and keeps none of them; what follows is the connection's matter.
 */
import { limits } from '../../model/limits.ts'
import type { Principal } from '../../model/principal.ts'
import {
  encodeHelloReply,
  features,
  HELLO_HEADER_BYTES,
  helloStatuses,
  readHello,
  type HelloStatus
} from '../../wire/es01/handshake.ts'
import type { Doorkeeper } from './doorkeeper.ts'
import type { CloseReason } from './probe.ts'

/** Features that this broker has. Others that a client asks for are left out of the reply (spec 11.2). */
const OFFERED = features.gzip

/**
 * incomplete: there are to be `bytes` of it, as far as is known. refused: the connection is to be closed after the reply.
 * accepted: the hello has `bytes` bytes.
 */
export type Greeting =
  | { readonly kind: 'incomplete'; readonly bytes: number }
  | { readonly kind: 'refused'; readonly reply: Buffer; readonly reason: CloseReason }
  | {
      readonly kind: 'accepted'
      readonly bytes: number
      readonly reply: Buffer
      readonly who: Principal
      /** Are payloads of both directions gzip from here on? */
      readonly hasGzip: boolean
    }

/** Reads the hello in bytes[start, end), which are borrowed until return. */
export function greet(bytes: Buffer, start: number, end: number, doorkeeper: Doorkeeper): Greeting {
  const verdict = readHello(bytes, start, end)
  if (verdict.kind === 'incomplete') {
    return {
      kind: 'incomplete',
      bytes: verdict.bytes === 0 ? HELLO_HEADER_BYTES + limits.tokenBytesMax : verdict.bytes
    }
  }
  if (verdict.kind === 'refused') {
    return refused(verdict, verdict.status === helloStatuses.badMagic ? 'badMagic' : 'tokenTooLong')
  }
  const helloEnd = start + verdict.bytes
  const admission = doorkeeper.admit(bytes.subarray(helloEnd - verdict.tokenBytes, helloEnd))
  if (admission.who === null) {
    return refused(admission, admission.status === helloStatuses.authFailed ? 'authFailed' : 'authRequired')
  }
  const accepted = verdict.features & OFFERED
  return {
    kind: 'accepted',
    bytes: verdict.bytes,
    reply: encodeHelloReply(helloStatuses.ok, accepted, ''),
    who: admission.who,
    hasGzip: (accepted & features.gzip) !== 0
  }
}

function refused({ status, message }: { status: HelloStatus; message: string }, reason: CloseReason): Greeting {
  return { kind: 'refused', reply: encodeHelloReply(status, 0, message), reason }
}
