/**
 * Objects in an S3-compatible bucket (`--cold-storage s3://bucket/prefix`). On a thread with an event loop that may
 * block for a read of a local file; requests run beside its other work. Loaded only when a bucket is configured.
 *
 * Invariants: an upload is in parts of PIECE_BYTES_MAX, one in memory at a time; it becomes the object only when the
 * checksum of the local bytes was right; what fails is aborted, and what a kill leaves is aborted by the next sweep.
 * Each object bears its size and CRC32C as metadata, which a put compares at its end. Only verify() and fetch() read
 * the bytes themselves.
 */
import { assert } from '../base/assert.ts'
import { crc32c } from '../base/crc32c.ts'
import type { Disk, DiskFile } from '../disk/disk.ts'
import { checkFolder, checkKey, isKey } from './keys.ts'
import { ColdError, READ_BYTES_MAX, type ObjectStore, type ReadObject } from './object-store.ts'
import {
  PIECE_BYTES_MAX,
  assertObjectSize,
  checkLocal,
  compareRead,
  hex,
  listKey,
  measure,
  readLocal,
  tooLarge,
  writeNew,
  wrongSize
} from './pieces.ts'
import { S3Bucket, type ObjectHead, type ObjectMetadata, type S3BucketOptions, type UploadedPart } from './s3-bucket.ts'
import { isUnsupported } from './s3-errors.ts'

export interface S3StoreOptions extends S3BucketOptions {
  readonly disk: Disk
  /** Stands before each key: empty, or ends with a slash (parseBucketAddress). */
  readonly prefix: string
}

/** Names under which an object bears what it should be. */
const CHECKSUM_FIELD = 'millrace-crc32c'
const BYTES_FIELD = 'millrace-bytes'

/** A local file on its way to the bucket. */
interface Upload extends ReadObject {
  /** Whole: with the prefix. */
  readonly key: string
  readonly file: DiskFile
}

/** A store in a bucket. Sends nothing before it is used. */
export function createS3Store(options: S3StoreOptions): ObjectStore {
  return new S3Store(options)
}

class S3Store implements ObjectStore {
  readonly #disk: Disk
  readonly #bucket: S3Bucket
  readonly #prefix: string
  readonly #address: string
  /** Uploads of this store in progress: not for the sweep. */
  readonly #uploadIds = new Set<string>()

  constructor(options: S3StoreOptions) {
    assert(options.prefix === '' || options.prefix.endsWith('/'), 'a prefix ends with a slash')
    this.#disk = options.disk
    this.#bucket = new S3Bucket(options)
    this.#prefix = options.prefix
    this.#address = `s3://${options.bucket}/${options.prefix}`
  }

  async put(key: string, path: string, bytes: number, checksum: number): Promise<void> {
    const fullKey = this.#fullKey(key)
    assertObjectSize(bytes)
    const file = this.#disk.open('segment.open', path)
    try {
      const upload = { key: fullKey, file, bytes, crc32c: checksum }
      if (bytes <= PIECE_BYTES_MAX) await this.#putWhole(upload)
      else await this.#putInParts(upload)
    } finally {
      file.close()
    }
    checkHead(key, await this.#bucket.head(fullKey), bytes, checksum)
  }

  async read(key: string, position: number, bytes: number): Promise<Buffer> {
    assert(position >= 0 && bytes >= 1 && bytes <= READ_BYTES_MAX, 'a read has a position and at least a byte')
    return await this.#bucket.read(this.#fullKey(key), position, bytes)
  }

  async fetch(key: string, targetPath: string, bytesMax: number): Promise<ReadObject> {
    const fullKey = this.#fullKey(key)
    const head = await this.#bucket.head(fullKey)
    if (head.bytes > bytesMax) throw tooLarge(key, head.bytes, bytesMax)
    return await writeNew(this.#disk, targetPath, this.#pieces(fullKey, head))
  }

  async verify(key: string, bytes: number, checksum: number): Promise<void> {
    const fullKey = this.#fullKey(key)
    const head = await this.#bucket.head(fullKey)
    checkHead(key, head, bytes, checksum)
    compareRead(key, await measure(this.#pieces(fullKey, head)), bytes, checksum)
  }

  async list(prefix: string): Promise<string[]> {
    checkFolder(prefix)
    const keys: string[] = []
    for await (const fullKey of this.#bucket.keys(this.#prefix + prefix)) {
      const key = fullKey.slice(this.#prefix.length)
      if (isKey(key)) listKey(keys, key)
    }
    return keys.sort()
  }

  async remove(key: string): Promise<void> {
    await this.#bucket.remove(this.#fullKey(key))
  }

  async sweep(): Promise<number> {
    let count = 0
    try {
      for await (const upload of this.#bucket.unfinishedUploads(this.#prefix)) {
        if (!isKey(upload.key.slice(this.#prefix.length)) || this.#uploadIds.has(upload.uploadId)) continue
        await this.#bucket.abortUpload(upload)
        count++
      }
    } catch (error) {
      // A service that cannot say which uploads are unfinished has its own rule for them.
      if (!(error instanceof ColdError) || !isUnsupported(error.cause)) throw error
    }
    return count
  }

  close(): void {
    this.#bucket.close()
  }

  describe(): string {
    return `${this.#address} (${this.#bucket.where})`
  }

  async #putWhole(upload: Upload): Promise<void> {
    const body = Buffer.allocUnsafe(upload.bytes)
    await readLocal(upload.file, body, body.length, 0)
    checkLocal(upload.file.path, crc32c(body, 0, body.length), upload.crc32c)
    await this.#bucket.put(upload.key, body, metadataOf(upload))
  }

  async #putInParts(upload: Upload): Promise<void> {
    const uploadId = await this.#bucket.beginUpload(upload.key, metadataOf(upload))
    this.#uploadIds.add(uploadId)
    try {
      await this.#complete(upload, uploadId, await this.#putParts(upload, uploadId))
    } catch (error) {
      await this.#giveUp(upload.key, uploadId)
      throw error
    } finally {
      this.#uploadIds.delete(uploadId)
    }
  }

  async #putParts({ key, file, bytes, crc32c: expected }: Upload, uploadId: string): Promise<UploadedPart[]> {
    const parts: UploadedPart[] = []
    const piece = Buffer.allocUnsafe(PIECE_BYTES_MAX)
    let checksum = 0
    for (let done = 0; done < bytes; done += piece.length) {
      const length = Math.min(piece.length, bytes - done)
      await readLocal(file, piece, length, done)
      checksum = crc32c(piece, 0, length, checksum)
      parts.push(await this.#bucket.putPart({ key, uploadId }, parts.length + 1, piece.subarray(0, length)))
    }
    checkLocal(file.path, checksum, expected)
    return parts
  }

  /** An answer that was lost is no failure: if the object is there, the upload was completed. */
  async #complete(upload: Upload, uploadId: string, parts: readonly UploadedPart[]): Promise<void> {
    try {
      await this.#bucket.completeUpload({ key: upload.key, uploadId }, parts)
    } catch (error) {
      if (!(await this.#isStored(upload))) throw error
    }
  }

  async #isStored({ key, bytes, crc32c: checksum }: Upload): Promise<boolean> {
    try {
      checkHead(key, await this.#bucket.head(key), bytes, checksum)
      return true
    } catch (error) {
      if (error instanceof ColdError) return false
      throw error
    }
  }

  /** What cannot be aborted now is left to the next sweep: the error that led here is the one to tell. */
  async #giveUp(key: string, uploadId: string): Promise<void> {
    try {
      await this.#bucket.abortUpload({ key, uploadId })
    } catch (error) {
      if (!(error instanceof ColdError)) throw error
    }
  }

  /** All of the object, as long as it is the one of `head`. */
  async *#pieces(key: string, head: ObjectHead): AsyncGenerator<Buffer> {
    for (let position = 0; position < head.bytes; position += PIECE_BYTES_MAX) {
      yield await this.#bucket.read(key, position, Math.min(PIECE_BYTES_MAX, head.bytes - position), head.tag)
    }
  }

  #fullKey(key: string): string {
    checkKey(key)
    return this.#prefix + key
  }
}

function metadataOf({ bytes, crc32c: checksum }: ReadObject): ObjectMetadata {
  return { [BYTES_FIELD]: String(bytes), [CHECKSUM_FIELD]: hex(checksum) }
}

/** What an object says of itself, without its bytes. One that another tool copied may say nothing: then its size counts. */
function checkHead(key: string, head: ObjectHead, bytes: number, checksum: number): void {
  if (head.bytes !== bytes) throw wrongSize(key, head.bytes, bytes)
  const said = head.metadata[CHECKSUM_FIELD]
  if (said === undefined || said === hex(checksum)) return
  throw new ColdError('damaged', `object ${key} was stored with checksum ${said}, not ${hex(checksum)}`)
}
