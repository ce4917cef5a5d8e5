/**
 * Base64 in place, byte by byte: no string is made of what a body holds. Pure; any thread.
 * Standard alphabet (RFC 4648, section 4). Padding may be there or not, all of it or none; nothing else is skipped. The bits
 * that the last digit has too many are not looked at, as most decoders do.
 */

const PADDING = 0x3d
const NO_DIGIT = 0x80

/** By byte: the value of a digit, or NO_DIGIT. */
const digitValues = new Uint8Array(256).fill(NO_DIGIT)
Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/').forEach((digit, value) => {
  digitValues[digit] = value
})

/** Where the digits of source[start, end) end: padding is there only where it makes the length whole. */
function digitsEnd(source: Buffer, start: number, end: number): number {
  if (end === start || ((end - start) & 3) !== 0 || source[end - 1] !== PADDING) return end
  return source[end - 2] === PADDING ? end - 2 : end - 1
}

/** Bytes that source[start, end) decodes to, or −1: it is no base64. */
export function base64Bytes(source: Buffer, start: number, end: number): number {
  const last = digitsEnd(source, start, end)
  let seen = 0
  for (let at = start; at < last; at++) seen |= digitValues[source[at] as number] as number
  const spare = (last - start) & 3
  if (seen >= NO_DIGIT || spare === 1) return -1
  return ((last - start) >>> 2) * 3 + (spare === 0 ? 0 : spare - 1)
}

/**
 * Decodes source[start, end), which base64Bytes has accepted, to target[at…]. It may lie over the source from `start` on.
 * @returns the position after the last byte.
 */
export function decodeBase64(source: Buffer, start: number, end: number, target: Buffer, at: number): number {
  const last = digitsEnd(source, start, end)
  const wholeEnd = last - ((last - start) & 3)
  let from = start
  let to = at
  for (; from < wholeEnd; from += 4) {
    const bits =
      ((digitValues[source[from] as number] as number) << 18) |
      ((digitValues[source[from + 1] as number] as number) << 12) |
      ((digitValues[source[from + 2] as number] as number) << 6) |
      (digitValues[source[from + 3] as number] as number)
    target[to] = bits >>> 16
    target[to + 1] = bits >>> 8
    target[to + 2] = bits
    to += 3
  }
  if (last === wholeEnd) return to
  const first = digitValues[source[from] as number] as number
  const second = digitValues[source[from + 1] as number] as number
  target[to++] = (first << 2) | (second >>> 4)
  if (last - from === 2) return to
  target[to++] = (second << 4) | ((digitValues[source[from + 2] as number] as number) >>> 2)
  return to
}
