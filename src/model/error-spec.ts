/** What is known of an error beside its name: the shape of a row of the table in errors.ts. */

export type Retry = 'never' | 'same' | 'refresh'
export type Written = 'no' | 'yes' | 'unknown'

export interface ErrorSpec {
  /** Number in rings. Never reused. */
  readonly wire: number
  readonly kafka: number
  readonly http: number
  /** Words that open the message of an ES01 error frame. */
  readonly es01:
    'bad request' | 'not found' | 'forbidden' | 'rate limited' | 'internal error' | 'decode' | 'unavailable'
  readonly retry: Retry
  /** What the caller may conclude about the log. */
  readonly written: Written
  /** {named} placeholders are filled from the details. */
  readonly text: string
  /** The whole message of an ES01 error frame, where the protocol fixes it (spec 12). */
  readonly es01Text?: string
}

/** A row of the table: what is not given is 'never', `written: no` and no Kafka code. */
export const spec = (
  wire: number,
  http: number,
  es01: ErrorSpec['es01'],
  text: string,
  rest: Partial<Pick<ErrorSpec, 'kafka' | 'retry' | 'written' | 'es01Text'>> = {}
): ErrorSpec => ({ wire, http, es01, text, kafka: -1, retry: 'never', written: 'no', ...rest })
