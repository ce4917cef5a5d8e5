/**
 * Places in a log, as `--offset`, `--from` and `--to` take them: one grammar for all commands. Pure. A bare number is always an
 * offset; a time says that it is one, by its unit or by being ISO 8601.
 */
import type { Whole } from '../client/http/http-client.ts'
import { isoMsOf, u64, unixMs, wholeOf } from './common-options.ts'
import { UsageError } from './io.ts'

/** The first record, the end, an offset, or the first record at or after a time in Unix ms. */
export type Place = 'earliest' | 'latest' | { readonly offset: Whole } | { readonly timestampMs: Whole }

/** How --help writes the value of such an option. */
export const placeWords =
  'earliest, latest, an offset, 1700000000000ms (Unix), or ISO 8601 such as 2026-01-31T08:30:00Z'

/** @throws UsageError */
export function placeOf(text: string, flag: string): Place {
  if (text === 'earliest' || text === 'latest') return text
  if (/^-?\d+$/.test(text)) return { offset: wholeOf(text, flag, u64) ?? 0 }
  if (/^-?\d+ms$/.test(text)) return { timestampMs: wholeOf(text.slice(0, -2), flag, unixMs) ?? 0 }
  const timestampMs = isoMsOf(text)
  if (timestampMs !== null) return { timestampMs }
  throw new UsageError(`${flag} '${text}' is no place: write ${placeWords}`)
}

/** The parameters of a read or a stream that begin there. */
export function placeQuery(place: Place): string {
  if (typeof place === 'string') return `offset=${place}`
  return 'offset' in place ? `offset=${place.offset}` : `timestamp_ms=${place.timestampMs}`
}
