/**
 * What tiered storage asks of a place that keeps objects: the interface of the directory store and of the bucket store,
 * and the one error they throw. Types only, but for ColdError; any thread, each store belongs to one.
 *
 * An object is written whole, once, and never changed; its key is checked by keys.ts. Callers give up a local file
 * only after verify() of its object: a put that returned says that the object is stored, not that it reads back.
 */

/**
 * unavailable: the store does not answer, or not now; the same call may succeed later.
 * missing:     the store answers, and has no such object.
 * damaged:     the object is there and is not what the caller knows of it: other size, other bytes.
 * refused:     nothing was done, and trying again does not help until a person changes something: a key that is none,
 *              a local file that is not what the caller said of it, a bucket that is not there, no permission.
 */
export type ColdErrorCode = 'unavailable' | 'missing' | 'damaged' | 'refused'

/** What a store could not do. `message` names the object and the store, never a secret; `cause` is for the log. */
export class ColdError extends Error {
  override readonly name = 'ColdError'
  readonly code: ColdErrorCode
  constructor(code: ColdErrorCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

/** Size and checksum of an object as they were read. */
export interface ReadObject {
  readonly bytes: number
  /** CRC32C of all bytes, u32. */
  readonly crc32c: number
}

/** The most bytes of one object: a segment never has more. */
export const OBJECT_BYTES_MAX = 2 ** 31 - 1

/** The most bytes of one read(): it is held in memory. */
export const READ_BYTES_MAX = 64 * 1024 * 1024

/** The most keys that list() returns: some 100 MB. More are refused, not cut off. */
export const LIST_KEYS_MAX = 1_000_000

/**
 * A place for objects. Methods reject with ColdError; what goes wrong with the *local* file of put and fetch is a
 * DiskError. Calls may run side by side, each with at most a part of an object in memory (PIECE_BYTES_MAX).
 * Local files are read and written synchronously, piece by piece, with other work of the thread in between.
 */
export interface ObjectStore {
  /**
   * Stores the first `bytes` bytes of the local file `path` under `key`, in place of what was there. On success the
   * object is durable. On failure the key has what it had before, or (unavailable only) the whole new object.
   *
   * @param bytes true length; the file may be longer.
   * @param crc32c of these bytes. Another one is `refused`: the local file is not what the caller thinks.
   */
  put(key: string, path: string, bytes: number, crc32c: number): Promise<void>
  /** @returns exactly `bytes` bytes from `position` on, the caller's own. `damaged` if the object ends before. */
  read(key: string, position: number, bytes: number): Promise<Buffer>
  /**
   * Copies the object to the new local file `targetPath` (EEXIST if it is there), which is not synced. After a
   * failure there is no file. @returns what was read: the caller compares it. `damaged` if larger than maxBytes.
   */
  fetch(key: string, targetPath: string, maxBytes: number): Promise<ReadObject>
  /** Reads the whole object back. @throws ColdError `damaged` unless it is exactly that, `missing` if it is gone. */
  verify(key: string, bytes: number, crc32c: number): Promise<void>
  /** Keys below the folder `prefix` (`orders~17/3/`; empty: all), by code unit. Files that are no objects are left out. */
  list(prefix: string): Promise<string[]>
  /** Takes an object away, durably. One that is not there is no error: so a removal may be repeated. */
  remove(key: string): Promise<void>
  /**
   * Takes away what puts left behind that a kill cut off; puts of this store in progress stay. For the start of a
   * broker: a store (directory, or bucket and prefix) belongs to one broker alone. @returns how many there were.
   */
  sweep(): Promise<number>
  /** Ends what is in progress with `unavailable`, and lets go of connections. Later calls reject likewise. */
  close(): void
  /** For logs: where the objects are; no secrets. */
  describe(): string
}
