/**
 * A file of an archive as it will be: parts of files that are there, and bytes made for it, one behind the other. Reads
 * them in pieces; memory is one piece. Owned by one dump.
 */
import { crc32c } from '../../base/crc32c.ts'
import { DiskError } from '../../disk/disk.ts'
import type { SegmentFiles } from '../../log/segment-files.ts'

const PIECE_BYTES = 1024 * 1024

/** Bytes made for the archive, or bytes [position, position + byteCount) of a file of the data directory. */
export type DumpPart =
  | { readonly kind: 'made'; readonly bytes: Buffer }
  /** `path` is relative to the data directory. */
  | { readonly kind: 'range'; readonly path: string; readonly position: number; readonly byteCount: number }

export interface DumpFile {
  /** In the archive, and in the data directory that is made of it. */
  readonly path: string
  readonly topic: number | null
  readonly parts: readonly DumpPart[]
}

function bytesOfPart(part: DumpPart): number {
  return part.kind === 'made' ? part.bytes.length : part.byteCount
}

/** Length of the file in the archive. */
export function bytesOfFile({ parts }: DumpFile): number {
  return parts.reduce((sum, part) => sum + bytesOfPart(part), 0)
}

/** The file in pieces, each in memory of its own. @throws DiskError; EIO also if a file ends before its committed length. */
export function* piecesOf(file: DumpFile, files: SegmentFiles): Generator<Buffer, void, undefined> {
  let left = bytesOfFile(file)
  let piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, left))
  let filled = 0
  for (const part of file.parts) {
    const partBytes = bytesOfPart(part)
    for (let at = 0; at < partBytes;) {
      const count = Math.min(partBytes - at, piece.length - filled)
      fill(piece.subarray(filled, filled + count), part, at, files)
      at += count
      filled += count
      if (filled < piece.length) continue
      left -= filled
      yield piece
      piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, left))
      filled = 0
    }
  }
}

function fill(target: Buffer, part: DumpPart, at: number, files: SegmentFiles): void {
  if (part.kind === 'made') {
    part.bytes.copy(target, 0, at, at + target.length)
    return
  }
  const file = files.file(part.path)
  const read = file.read('segment.read', target, 0, target.length, part.position + at)
  if (read < target.length) throw new DiskError('EIO', 'segment.read', `${file.path} ends before its committed length`)
}

/** CRC32C of the whole file. @param onBytes hears how much was read. @throws as piecesOf */
export function checksumOf(file: DumpFile, files: SegmentFiles, onBytes: (bytes: number) => void): number {
  let sum = 0
  for (const piece of piecesOf(file, files)) {
    sum = crc32c(piece, 0, piece.length, sum)
    onBytes(piece.length)
  }
  return sum
}
