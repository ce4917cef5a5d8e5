/** The request of `millrace produce`: records with headers, in either encoding, numbered or not. */
import {
  writeExact,
  type Answer,
  type HttpClient,
  type ProduceRecord,
  type ProduceResult,
  type Whole
} from '../client/http/http-client.ts'
import { UsageError } from './io.ts'

/** How key, value and values of headers are written in the request. */
export type RecordEncoding = 'utf8' | 'base64'

/** A header: null has no value. */
export type Header = readonly [name: string, value: string | null]

/** What all records of a command have. */
export interface SharedFields extends Omit<ProduceRecord, 'value'> {
  readonly headers?: readonly Header[]
}

interface OutgoingRecord extends SharedFields {
  readonly value: string
  /** Of records whose producer numbers them. */
  readonly sequence?: Whole
}

/** `name=value`, or `name` for one without a value. @throws UsageError */
export function headersOf(words: readonly string[]): Header[] {
  return words.map(word => {
    const end = word.indexOf('=')
    const name = end === -1 ? word : word.slice(0, end)
    if (name === '') throw new UsageError(`--header '${word}' has no name: write name=value`)
    return [name, end === -1 ? null : word.slice(end + 1)]
  })
}

/** @param request.producerId null: the records are not numbered. */
export function produceRecords(
  client: HttpClient,
  topic: string,
  request: {
    readonly records: readonly OutgoingRecord[]
    readonly encoding: RecordEncoding
    readonly producerId: string | null
  }
): Promise<Answer<{ readonly results: readonly ProduceResult[] }>> {
  const { records, encoding, producerId } = request
  const members = [
    ...(producerId === null ? [] : [`"producer_id":${JSON.stringify(producerId)}`]),
    ...(encoding === 'utf8' ? [] : [`"encoding":"${encoding}"`]),
    `"records":[${records.map(record => writeExact({ ...record })).join(',')}]`
  ]
  return client.call('POST', `/topics/${encodeURIComponent(topic)}/produce`, `{${members.join(',')}}`)
}
