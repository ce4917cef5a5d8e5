/**
 * Objects go through memory in pieces: from a local file, into a local file, or past a checksum. On the thread of the
 * store; what the disk refuses leaves as the DiskError it is. No more than one piece of an object is held at a time.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { assert } from '../base/assert.ts'
import { crc32c } from '../base/crc32c.ts'
import { DiskError, type Disk, type DiskFile } from '../disk/disk.ts'
import { ColdError, LIST_KEYS_MAX, OBJECT_BYTES_MAX, type ReadObject } from './object-store.ts'

/** One read and write of a local file: short enough for the other work of the thread (about 1 ms), long enough for a disk. */
export const FILE_PIECE_BYTES = 1024 * 1024

/** The most memory that a piece takes: a part of an upload to a bucket. */
export const PIECE_BYTES_MAX = 8 * 1024 * 1024

/** Lengths are ours, not a user's: a wrong one is a bug. */
export function assertObjectSize(bytes: number): void {
  assert(Number.isSafeInteger(bytes) && bytes >= 0 && bytes <= OBJECT_BYTES_MAX, 'an object has 0 to 2^31 - 1 bytes')
}

/**
 * Reads file[position, position + length) into the start of `target`, in pieces, letting others run in between.
 * @throws ColdError `refused` if the file ends before.
 */
export async function readLocal(file: DiskFile, target: Buffer, length: number, position: number): Promise<void> {
  let done = 0
  while (done < length) {
    const wanted = Math.min(FILE_PIECE_BYTES, length - done)
    const count = file.read('segment.read', target, done, wanted, position + done)
    if (count < wanted) throw new ColdError('refused', `the local file ${file.path} ends at ${position + done + count}`)
    done += count
    await nextTurn()
  }
}

/** @throws ColdError `refused` unless both are equal: what was read of a local file is not what it should be. */
export function checkLocal(path: string, found: number, expected: number): void {
  if (found === expected) return
  throw new ColdError(
    'refused',
    `the local file ${path} is damaged: its checksum is ${hex(found)}, not ${hex(expected)}`
  )
}

/** Reads all pieces. @returns their size and checksum. */
export async function measure(pieces: AsyncIterable<Buffer>): Promise<ReadObject> {
  let bytes = 0
  let checksum = 0
  for await (const piece of pieces) {
    checksum = crc32c(piece, 0, piece.length, checksum)
    bytes += piece.length
  }
  return { bytes, crc32c: checksum }
}

/** @throws ColdError `damaged` unless the object that was read is the one expected. */
export function compareRead(key: string, found: ReadObject, bytes: number, checksum: number): void {
  if (found.bytes !== bytes) throw wrongSize(key, found.bytes, bytes)
  if (found.crc32c === checksum) return
  throw new ColdError('damaged', `object ${key} has checksum ${hex(found.crc32c)}, not ${hex(checksum)}`)
}

/** The error of an object with more or fewer bytes than it should have. */
export function wrongSize(key: string, found: number, bytes: number): ColdError {
  return new ColdError('damaged', `object ${key} has ${found} bytes, not ${bytes}`)
}

/** The error of an object that is larger than it may be. */
export function tooLarge(key: string, found: number, bytesMax: number): ColdError {
  return new ColdError('damaged', `object ${key} has ${found} bytes, more than ${bytesMax}`)
}

/** Adds a key to a list. @throws ColdError `refused` if the list is full. */
export function listKey(keys: string[], key: string): void {
  if (keys.length === LIST_KEYS_MAX) throw new ColdError('refused', `there are more than ${LIST_KEYS_MAX} objects`)
  keys.push(key)
}

/** Eight hexadecimal digits, as checksums are shown and kept with objects. */
export function hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0')
}

/** Writes the pieces to the new file `path`; after a failure, of either side, there is no file. Not synced. */
export async function writeNew(disk: Disk, path: string, pieces: AsyncIterable<Buffer>): Promise<ReadObject> {
  const file = disk.create('segment.create', path)
  try {
    try {
      return await writePieces(file, pieces)
    } finally {
      file.close()
    }
  } catch (error) {
    removeLeftover(disk, path)
    throw error
  }
}

async function writePieces(file: DiskFile, pieces: AsyncIterable<Buffer>): Promise<ReadObject> {
  let bytes = 0
  let checksum = 0
  for await (const piece of pieces) {
    checksum = crc32c(piece, 0, piece.length, checksum)
    file.write('segment.write', piece, 0, piece.length, bytes)
    bytes += piece.length
  }
  return { bytes, crc32c: checksum }
}

/** Removes a file that did not become what it should. That this fails too follows from the first failure, which counts. */
export function removeLeftover(disk: Disk, path: string): void {
  try {
    disk.remove('segment.remove', path)
  } catch (error) {
    if (!(error instanceof DiskError)) throw error
  }
}
