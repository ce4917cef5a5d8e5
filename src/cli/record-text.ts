/**
 * Records as commands show them: exact bytes come as base64 and are shown as text where they are text. Pure.
 *
 *   --encoding   asked of the broker   shown to people                           a record of NDJSON
 *   left out     base64                text, or name_base64=… for what is none   text, or all of it base64 with "encoding":"base64"
 *   base64       base64                name_base64=…                             base64, with "encoding":"base64"
 *   utf8         utf8                  text, with U+FFFD for what is none        the same
 */
import { Option } from 'commander'
import { writeExact, type ConsumedRecord } from '../client/http/http-client.ts'
import { textOf, type OptionTexts } from './common-options.ts'
import { showText, showTime } from './format.ts'

/** What --encoding says; null: it was left out. */
export type WantedEncoding = 'utf8' | 'base64' | null

/** How records are shown to people. */
export interface RecordForm {
  readonly encoding: WantedEncoding
  /** With the time of each. */
  readonly showsTime: boolean
}

/** A key, a value or the value of a header. */
interface Field {
  readonly text: string
  readonly isBase64: boolean
}

type FieldReader = (field: string) => Field

/** The option of all commands that show records. */
export function encodingOption(): Option {
  const text = 'how keys and values are shown (default: as text, and in base64 what is no text)'
  return new Option('--encoding <encoding>', text).choices(['utf8', 'base64'])
}

/** The option of commands that show records to people. */
export function timestampsOption(): Option {
  return new Option('--timestamps', 'show the time of each record; with --json it is there anyway')
}

/** The value of --encoding. Commander has checked it. */
export function wantedEncoding(options: OptionTexts): WantedEncoding {
  const text = textOf(options['encoding'])
  return text === 'utf8' || text === 'base64' ? text : null
}

/** The bytes as text, or null if they are no UTF-8. */
function textOfBytes(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    // TextDecoder throws only this, and only for bytes that are no UTF-8.
    if (!(error instanceof TypeError)) throw error
    return null
  }
}

/** @param isBase64 how the broker's answer has its fields. */
function fieldReader(isBase64: boolean, wanted: WantedEncoding): FieldReader {
  if (!isBase64 || wanted !== null) return text => ({ text, isBase64 })
  return field => {
    const text = textOfBytes(Buffer.from(field, 'base64'))
    return text === null ? { text: field, isBase64 } : { text, isBase64: false }
  }
}

function word(name: string, { text, isBase64 }: Field): string {
  return isBase64 ? `${name}_base64=${text}` : `${name}=${showText(text)}`
}

/**
 * `offset=0 timestamp=… key=alice header:trace=af01 value=…`; what a record does not have is not there, and a header
 * without a value has no `=`. The value is last, since it may have spaces.
 */
export function formatRecord(record: ConsumedRecord, isBase64: boolean, { encoding, showsTime }: RecordForm): string {
  const read = fieldReader(isBase64, encoding)
  const { offset, key, value, headers = [] } = record
  const words = headers.map(([name, text]) => {
    const label = `header:${showText(name)}`
    return text === null ? label : word(label, read(text))
  })
  const ownKey = key === null ? [] : [word('key', read(key))]
  const time = showsTime ? [`timestamp=${showTime(record.timestamp_ms)}`] : []
  return [`offset=${offset}`, ...time, ...ownKey, ...words, word('value', read(value))].join(' ')
}

/** A record as one line of JSON, its numbers exact. */
export function recordJson(record: ConsumedRecord, isBase64: boolean, wanted: WantedEncoding): string {
  const read = fieldReader(isBase64, wanted)
  const { key, value, headers } = record
  const fields = [key, value, ...(headers ?? []).map(([, text]) => text)]
  if (fields.some(field => field !== null && read(field).isBase64)) {
    return writeExact({ ...record, encoding: 'base64' })
  }
  const shown = (field: string | null): string | null => (field === null ? null : read(field).text)
  const shownHeaders = headers?.map(([name, text]) => [name, shown(text)])
  return writeExact({
    ...record,
    key: shown(key),
    value: shown(value),
    ...(shownHeaders === undefined ? {} : { headers: shownHeaders })
  })
}

/** Tells whether a record has this key, byte for byte. */
export function keyMatcher(key: string, isBase64: boolean): (record: ConsumedRecord) => boolean {
  const wanted = isBase64 ? Buffer.from(key).toString('base64') : key
  return record => record.key === wanted
}
