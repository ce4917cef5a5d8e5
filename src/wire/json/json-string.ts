/**
 * Turns the inside of a JSON string into UTF-8 bytes. Pure; any thread. The text was checked by JsonCursor before:
 * here nothing is refused. Runs without escapes are copied as they are.
 */
import { copyBytes } from '../../base/copy.ts'
import type { JsonCursor } from './json-cursor.ts'
import { isHighSurrogate, isLowSurrogate, readHex4 } from './json-cursor.ts'

const BACKSLASH = 0x5c
const REPLACEMENT = 0xfffd

/** What the byte after the backslash stands for; `"`, `\` and `/` stand for themselves. */
function simpleEscape(byte: number): number {
  switch (byte) {
    case 0x62:
      return 0x08
    case 0x66:
      return 0x0c
    case 0x6e:
      return 0x0a
    case 0x72:
      return 0x0d
    case 0x74:
      return 0x09
    default:
      return byte
  }
}

function writeCodePoint(codePoint: number, target: Buffer, at: number): number {
  if (codePoint < 0x80) {
    target[at] = codePoint
    return at + 1
  }
  if (codePoint < 0x800) {
    target[at] = 0xc0 | (codePoint >>> 6)
    target[at + 1] = 0x80 | (codePoint & 0x3f)
    return at + 2
  }
  if (codePoint < 0x10000) {
    target[at] = 0xe0 | (codePoint >>> 12)
    target[at + 1] = 0x80 | ((codePoint >>> 6) & 0x3f)
    target[at + 2] = 0x80 | (codePoint & 0x3f)
    return at + 3
  }
  target[at] = 0xf0 | (codePoint >>> 18)
  target[at + 1] = 0x80 | ((codePoint >>> 12) & 0x3f)
  target[at + 2] = 0x80 | ((codePoint >>> 6) & 0x3f)
  target[at + 3] = 0x80 | (codePoint & 0x3f)
  return at + 4
}

/**
 * Decodes source[start, end), the inside of a checked JSON string, to target[at…].
 * Half a surrogate pair becomes U+FFFD, as Buffer.from(string) makes it.
 *
 * @returns the position after the last byte written: at + stringBytes of the cursor.
 */
export function decodeJsonString(source: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let from = start
  let to = at
  while (from < end) {
    let runEnd = from
    while (runEnd < end && source[runEnd] !== BACKSLASH) runEnd++
    to = copyBytes(source, from, runEnd, target, to)
    if (runEnd >= end) break
    const kind = source[runEnd + 1] as number
    if (kind !== 0x75) {
      target[to++] = simpleEscape(kind)
      from = runEnd + 2
      continue
    }
    let codePoint = readHex4(source, runEnd + 2)
    from = runEnd + 6
    if (isHighSurrogate(codePoint) && from + 6 <= end && source[from] === BACKSLASH && source[from + 1] === 0x75) {
      const low = readHex4(source, from + 2)
      if (isLowSurrogate(low)) {
        codePoint = 0x10000 + ((codePoint & 0x3ff) << 10) + (low & 0x3ff)
        from += 6
      }
    }
    if (codePoint >= 0xd800 && codePoint <= 0xdfff) codePoint = REPLACEMENT
    to = writeCodePoint(codePoint, target, to)
  }
  return to
}

/** The string that the cursor has scanned last, as text. */
export function jsonText(cursor: JsonCursor): string {
  const decoded = Buffer.allocUnsafe(cursor.stringBytes)
  const end = decodeJsonString(cursor.bytes, cursor.stringStart, cursor.stringEnd, decoded, 0)
  return decoded.toString('utf8', 0, end)
}
