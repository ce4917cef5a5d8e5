/**
 * Messages between the main thread and the store thread. Structured clones of plain values; never an Error.
 */
import type { StoreChange, StoreImage } from '../control/store-image.ts'
import type { ErrorDetails, Written } from '../model/errors.ts'
import type { StoreOpenCode } from './store-open-error.ts'

/** workerData of the store thread. */
export interface StoreThreadStart {
  readonly dataDir: string
}

export interface CommitRequest {
  readonly kind: 'commit'
  readonly id: number
  readonly changes: readonly StoreChange[]
}

/** `close` comes last: what was asked before it is still done. */
export type StoreRequest = CommitRequest | { readonly kind: 'close' }

/** What became of one commit; `wire` is the number of the error table. */
export type CommitResult =
  | { readonly id: number; readonly isCommitted: true }
  | {
      readonly id: number
      readonly isCommitted: false
      readonly wire: number
      readonly details: ErrorDetails
      readonly written: Written
    }

export type StoreReply =
  | { readonly kind: 'opened'; readonly image: StoreImage }
  | { readonly kind: 'refused'; readonly code: StoreOpenCode; readonly message: string }
  | { readonly kind: 'committed'; readonly results: readonly CommitResult[] }
  | {
      readonly kind: 'log'
      readonly level: 'debug' | 'warn' | 'error'
      readonly fields: object
      readonly message: string
    }
  | { readonly kind: 'closed' }
