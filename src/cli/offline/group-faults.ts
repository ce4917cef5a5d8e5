/**
 * Which part of a group is damaged, to the byte where two copies allow it. Pure over the bytes of one group.
 *
 * The directory stands in a group twice. Where the two differ, the one whose checksum is right says which bytes of the
 * other are wrong; where they agree, the fault is in the header or the trailer itself.
 */
import { crc32c } from '../../base/crc32c.ts'
import {
  GROUP_HEADER_BYTES,
  GROUP_TRAILER_BYTES,
  readGroupHeader,
  readGroupTrailer,
  type DirectoryEntry
} from '../../log/group-format.ts'
import type { ByteRange } from './findings.ts'

/** A part of a group that is not as it was written; positions from the start of the group. */
export interface GroupFault extends ByteRange {
  readonly part:
    | 'header'
    | 'directory'
    | 'header and directory'
    | 'padding'
    | 'copy of the directory'
    | 'copy of the directory and trailer'
    | 'trailer'
}

/** Every damaged part but the bodies, whose runs are checked one by one. @param bytes the group, whole. */
export function groupFaults(bytes: Buffer, entries: readonly DirectoryEntry[], seed: number): GroupFault[] {
  const header = readGroupHeader(bytes, 0, seed)
  const trailer = readGroupTrailer(bytes, bytes.length, seed)
  const directoryBytes = header?.directoryBytes ?? trailer?.directoryBytes ?? 0
  const parts = partsOf(bytes, directoryBytes)
  const faults: GroupFault[] = []
  if (header === null) faults.push(headFault(bytes, parts, seed))
  const bodyBytes = header?.bodyBytes ?? entries.reduce((sum, entry) => sum + entry.bytes, 0)
  const padding = nonZero(bytes, parts.directoryEnd + bodyBytes, parts.copyStart)
  if (padding !== null) faults.push({ part: 'padding', ...padding })
  if (trailer === null) faults.push(tailFault(bytes, parts, seed))
  return faults
}

interface Parts {
  readonly directoryEnd: number
  readonly copyStart: number
  readonly trailerStart: number
}

function partsOf(bytes: Buffer, directoryBytes: number): Parts {
  const trailerStart = bytes.length - GROUP_TRAILER_BYTES
  return {
    directoryEnd: GROUP_HEADER_BYTES + directoryBytes,
    copyStart: trailerStart - directoryBytes,
    trailerStart
  }
}

function headFault(bytes: Buffer, parts: Parts, seed: number): GroupFault {
  const { directoryEnd, copyStart, trailerStart } = parts
  const differing = difference(bytes, GROUP_HEADER_BYTES, directoryEnd, copyStart)
  if (differing === null) return { part: 'header', startByte: 0, endByte: GROUP_HEADER_BYTES }
  const sum = crc32c(bytes, copyStart, trailerStart, crc32c(bytes, 8, GROUP_HEADER_BYTES, seed))
  if (sum === bytes.readUInt32BE(4)) return { part: 'directory', ...differing }
  return { part: 'header and directory', startByte: 0, endByte: directoryEnd }
}

function tailFault(bytes: Buffer, parts: Parts, seed: number): GroupFault {
  const { directoryEnd, copyStart, trailerStart } = parts
  const differing = difference(bytes, copyStart, trailerStart, GROUP_HEADER_BYTES)
  if (differing === null) return { part: 'trailer', startByte: trailerStart, endByte: bytes.length }
  const sum = crc32c(bytes, GROUP_HEADER_BYTES, directoryEnd, crc32c(bytes, trailerStart + 8, bytes.length, seed))
  if (sum === bytes.readUInt32BE(trailerStart + 4)) return { part: 'copy of the directory', ...differing }
  return { part: 'copy of the directory and trailer', startByte: copyStart, endByte: bytes.length }
}

/** From the first to the last byte of [start, end) that is not what stands from `other` on; null if all are. */
function difference(bytes: Buffer, start: number, end: number, other: number): ByteRange | null {
  return range(start, end, at => bytes[at] !== bytes[other + at - start])
}

function nonZero(bytes: Buffer, start: number, end: number): ByteRange | null {
  return range(start, end, at => bytes[at] !== 0)
}

function range(start: number, end: number, isWrong: (at: number) => boolean): ByteRange | null {
  let first = -1
  let last = -1
  for (let at = start; at < end; at++) {
    if (!isWrong(at)) continue
    if (first < 0) first = at
    last = at
  }
  return first < 0 ? null : { startByte: first, endByte: last + 1 }
}
