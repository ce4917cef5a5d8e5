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

/** Opening words of error frames after which the records may be in the log nevertheless. */
const UNKNOWN_OUTCOMES = ['unavailable', 'internal error']

/** @returns the error of an error frame: its message tells whether anything may have been written. */
export function refusal(message: string): Es01Error {
  const written = UNKNOWN_OUTCOMES.some(words => message.startsWith(words)) ? 'unknown' : 'no'
  return new Es01Error('refused', written, message)
}
