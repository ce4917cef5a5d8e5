/** What the headers of a record may be, in whatever form a body has them, and the words for those that may not. Pure. */
import { limits } from '../../model/limits.ts'

export const NOT_A_PAIR = 'must be a pair [name, value]'

/** A name has at least one byte: an empty one says nothing, and tools take it for none. */
export function isNameLength(bytes: number): boolean {
  return bytes > 0 && bytes <= limits.headerNameBytesMax
}

/** Why a name of that length is refused. */
export function nameProblem(bytes: number): string {
  return `has ${bytes} bytes: allowed is 1 to ${limits.headerNameBytesMax}`
}

/** Why so many are refused. */
export function countProblem(count: number): string {
  return `has ${count} headers: allowed is up to ${limits.recordHeadersMax}`
}
