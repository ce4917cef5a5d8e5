/** The frame in front of what a connection has received. Main thread; no state but the buffer's. */
import { readU32 } from '../../wire/es01/bytes.ts'
import {
  FRAME_HEADER_BYTES,
  FRAME_LENGTH_MIN,
  isAnswerOpcode,
  isRequestOpcode,
  LENGTH_BYTES,
  type FrameHead
} from '../../wire/es01/frame.ts'
import type { ReceiveBuffer } from '../shared/receive-buffer.ts'

/** none: not even its length is there. part: that is. A reason to close the connection; or the head of a frame that is whole. */
export type FrameFront = 'none' | 'part' | 'frameLength' | 'unknownOpcode' | FrameHead

/** Looks at the bytes from `receive.start` on, and notes in `receive.expectedBytes` how many the frame has, as far as is known. */
export function frameInFront(receive: ReceiveBuffer, lengthMax: number): FrameFront {
  const { bytes, start, pendingBytes } = receive
  receive.expectedBytes = LENGTH_BYTES
  if (pendingBytes < LENGTH_BYTES) return 'none'
  const length = readU32(bytes, start)
  if (length < FRAME_LENGTH_MIN || length > lengthMax) return 'frameLength'
  receive.expectedBytes = LENGTH_BYTES + length
  if (pendingBytes < FRAME_HEADER_BYTES) return 'part'
  const opcode = bytes[start + FRAME_HEADER_BYTES - 1] as number
  if (!isRequestOpcode(opcode) && !isAnswerOpcode(opcode)) return 'unknownOpcode'
  if (pendingBytes < receive.expectedBytes) return 'part'
  return { requestId: readU32(bytes, start + LENGTH_BYTES), opcode }
}
