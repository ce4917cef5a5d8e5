/**
 * Why a data directory could not be opened: one clear line for the person who started the broker or a tool.
 * Any thread; crosses threads as code and message. Never sent to a remote caller: it names paths.
 */

/**
 * in-use: another process, or this one, holds the lock. newer-format: written by a later version.
 * unusable: permissions, a full disk, not a directory. damaged: the store cannot be read as what it claims to be.
 */
export type StoreOpenCode = 'in-use' | 'newer-format' | 'unusable' | 'damaged'

/** The message is the whole line, path and reason; `cause` is for the log. */
export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError'
  readonly code: StoreOpenCode
  constructor(code: StoreOpenCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}
