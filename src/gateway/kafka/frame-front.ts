/** The request in front of what a connection has received. Main thread; no state but the buffer's. */
import { checkFrameSize, foreignProtocolOf, FRAME_SIZE_BYTES, type ForeignProtocol } from '../../wire/kafka/headers.ts'
import type { ReceiveBuffer } from '../shared/receive-buffer.ts'

/**
 * none: not even its size is there. part: that is. whole: all of it. Or what is wrong: another protocol is spoken, or the
 * size cannot be.
 */
export type FrameFront =
  | { readonly kind: 'none' | 'part' | 'whole' }
  | { readonly kind: 'foreign'; readonly protocol: ForeignProtocol }
  | { readonly kind: 'size'; readonly problem: string }

const none = { kind: 'none' } as const
const part = { kind: 'part' } as const
const whole = { kind: 'whole' } as const

/**
 * Looks at the bytes from `receive.start` on, and notes in `receive.expectedBytes` how many the frame has, as far as is known.
 * @param isBare a token of SASL without a header: of any size.
 */
export function frameInFront(receive: ReceiveBuffer, bytesMax: number, isBare: boolean): FrameFront {
  const { bytes, start, pendingBytes } = receive
  receive.expectedBytes = FRAME_SIZE_BYTES
  if (pendingBytes < FRAME_SIZE_BYTES) return none
  const size = bytes.readInt32BE(start)
  const fault = isBare && size >= 0 && size <= bytesMax ? null : checkFrameSize(size, bytesMax)
  if (fault !== null) {
    const protocol = foreignProtocolOf(bytes, start)
    return protocol === null ? { kind: 'size', problem: fault } : { kind: 'foreign', protocol }
  }
  receive.expectedBytes = FRAME_SIZE_BYTES + size
  return pendingBytes < receive.expectedBytes ? part : whole
}
