/** Ids of refused requests: what a caller is told, and the log can be searched for. Main thread. */
import { randomBytes } from 'node:crypto'

/** 2^32 divided by the golden ratio, odd: adding it goes through all numbers, near ones far apart. */
const STEP = 0x9e37_79b1

let last = randomBytes(4).readUInt32BE()

/** Eight hexadecimal digits; none comes again within 2^32. @cost no randomness is drawn: any refusal can have one. */
export function newRequestId(): string {
  last = (last + STEP) >>> 0
  return last.toString(16).padStart(8, '0')
}
