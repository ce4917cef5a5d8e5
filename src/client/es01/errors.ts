/** Errors of the ES01 client: one class, told apart by `kind`. */
import type { Written } from '../../model/errors.ts'

/**
 * refused: the broker answered with an error frame, or refused the handshake; the connection goes on unless it was the
 * handshake. connection: it could not be made, or was lost. timeout: no answer in time; a late one is dropped.
 * protocol: the peer does not speak ES01 as specified; the connection is closed.
 */
export type Es01ErrorKind = 'refused' | 'connection' | 'timeout' | 'protocol'

/** A request that did not succeed. `written` says what may be concluded about records that were to be produced. */
export class Es01Error extends Error {
  override readonly name = 'Es01Error'
  readonly kind: Es01ErrorKind
  readonly written: Written

  constructor(kind: Es01ErrorKind, written: Written, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
    this.written = written
  }
}

/** What the broker appends to a message when records may be in the log nevertheless. */
const WRITTEN_NOTE = /\(written: (yes|unknown)\)$/

/** @returns the error of an error frame: its message tells whether anything may have been written. */
export function refusal(message: string): Es01Error {
  const note = WRITTEN_NOTE.exec(message)?.[1]
  // A bug of the broker is known to nobody in detail, so its outcome is not either.
  const isUnknown = note === 'unknown' || message.startsWith('internal error')
  return new Es01Error('refused', note === 'yes' ? 'yes' : isUnknown ? 'unknown' : 'no', message)
}
