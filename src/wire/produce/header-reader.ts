/**
 * Reads the headers of a record a second time, from where they stand in a body that was scanned: they go to a ring from
 * there, so a scan keeps three numbers of them however many there are. Nothing can fail: the scan has checked them.
 */

/** One name or value: a range of the body, and what stands there. */
export interface HeaderPart {
  start: number
  end: number
  /** Of the text, without escapes. −1: the value is null. */
  bytes: number
  isEscaped: boolean
}

export interface HeaderReader {
  readonly name: HeaderPart
  readonly value: HeaderPart
  /** Goes to headers that begin at source[at]. The source is borrowed until close(). */
  open(source: Buffer, at: number): void
  /** Reads the next pair; whoever calls knows how many there are. */
  next(): void
  /** Lets go of the source. */
  close(): void
}

/** A part of no length. */
export function emptyPart(): HeaderPart {
  return { start: 0, end: 0, bytes: 0, isEscaped: false }
}
