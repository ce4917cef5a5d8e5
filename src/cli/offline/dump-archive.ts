/**
 * Writes an archive: a tar file, perhaps through gzip, under a name of its own until it is whole and synced. Memory is a
 * few pieces, whatever the archive holds. Main thread of the command line.
 *
 * Invariant: the name asked for is either what it was before, or the whole archive.
 */
import { randomBytes } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { pack, type Pack } from 'tar-stream'
import { DiskError, type Disk } from '../../disk/disk.ts'

/** Record batches deflate to about the same at 3 as at 6, in half of the time. */
const GZIP_LEVEL = 3

/** A file of the archive, its bytes made as they are wanted. */
export interface ArchiveEntry {
  readonly name: string
  readonly bytes: number
  readonly pieces: () => Iterable<Buffer>
}

export interface ArchivePlace {
  readonly disk: Disk
  /** Absolute. */
  readonly path: string
  readonly isGzip: boolean
  /** Unix ms, of every entry. */
  readonly createdMs: number
}

/** @returns size of the archive. @throws DiskError: then nothing is left of it. */
export async function writeArchive(place: ArchivePlace, entries: readonly ArchiveEntry[]): Promise<number> {
  const { disk, path, isGzip } = place
  const folder = dirname(path)
  const unfinished = join(folder, `.${basename(path)}.${randomBytes(4).toString('hex')}.partial`)
  const file = disk.create('archive.create', unfinished)
  let isOpen = true
  try {
    const archive = pack()
    let size = 0
    const sink = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
      for await (const chunk of chunks) {
        file.write('archive.write', chunk, 0, chunk.length, size)
        size += chunk.length
      }
    }
    const squeeze = isGzip ? createGzip({ level: GZIP_LEVEL }) : new PassThrough()
    await bothEnd(fill(archive, place.createdMs, entries), pipeline(archive, squeeze, sink))
    file.sync('archive.sync')
    file.close()
    isOpen = false
    disk.rename('archive.rename', unfinished, path)
    disk.syncDirectory('archive.directory-sync', folder)
    return size
  } catch (error) {
    if (isOpen) file.close()
    if (disk.exists(unfinished)) disk.remove('archive.remove', unfinished)
    throw error
  }
}

async function fill(archive: Pack, createdMs: number, entries: readonly ArchiveEntry[]): Promise<void> {
  const mtime = new Date(createdMs)
  try {
    for (const { name, bytes, pieces } of entries) {
      const entry = archive.entry({ name, size: bytes, mode: 0o600, mtime, type: 'file' })
      await pipeline(Readable.from(pieces(), { objectMode: false }), entry)
    }
    archive.finalize()
  } catch (error) {
    archive.destroy(error instanceof Error ? error : undefined)
    throw error
  }
}

/** Either side ends the other when it fails. @throws what the disk said, not what that did to the other side. */
async function bothEnd(...sides: readonly Promise<void>[]): Promise<void> {
  const failures = (await Promise.allSettled(sides)).filter(side => side.status === 'rejected')
  const failure = failures.find(({ reason }) => reason instanceof DiskError) ?? failures[0]
  if (failure !== undefined) throw failure.reason
}
