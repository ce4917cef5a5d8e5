/**
 * What `millrace consume` does: reads partitions from a place, or from where a group is, over the HTTP API, until --max or
 * the ends of their logs; with --wait-ms it waits there for more. Records go to stdout; what a reader could not see from
 * them, that nothing is committed or that a place is beyond the end, to stderr. Main thread.
 */
import { groupOffsets } from '../client/http/group-calls.ts'
import type { Answer, ConsumeAnswer, HttpClient, Whole } from '../client/http/http-client.ts'
import { beyondEndText, formatPosition, formatSkipped } from './format.ts'
import { print, type CliIo } from './io.ts'
import { placeQuery, type Place } from './place.ts'
import { formatRecord, type RecordForm } from './record-text.ts'

/** Records asked for at once; the broker may give fewer, and the loop goes on. */
const REQUEST_RECORDS_MAX = 1_000

/** An answer, and how its fields are written. */
type Body = ConsumeAnswer & { readonly encoding?: string }

/** Where reading begins. */
type Start = Place | { readonly group: string }

export interface Reading extends RecordForm {
  readonly topic: string
  /** null: all, one after the other. */
  readonly partition: number | null
  readonly start: Start
  /** The most records to read, of all partitions together. */
  readonly max: number
  /** 0 where all partitions are read. */
  readonly waitMs: number
  readonly isJson: boolean
}

/** Rejects with HttpClientError. */
export async function consume(client: HttpClient, reading: Reading, io: CliIo): Promise<void> {
  const { topic, start } = reading
  const partitions = reading.partition === null ? await partitionsOf(client, topic) : [reading.partition]
  const group = typeof start === 'object' && 'group' in start ? start.group : null
  const committed = group === null ? null : ((await groupOffsets(client, group)).body.offsets[topic] ?? {})
  let left = reading.max
  for (const [i, partition] of partitions.entries()) {
    if (left === 0) {
      await print(io.stderr, `millrace: --max is reached: ${partitions.length - i} partition(s) were not read\n`)
      return
    }
    left -= await consumePartition({ client, reading, partition, left, io }, first => {
      const isUnknown = committed !== null && committed[partition] === undefined
      return isUnknown
        ? `group '${group}' has nothing committed in partition ${partition}, and begins at offset ${first}`
        : null
    })
  }
}

async function partitionsOf(client: HttpClient, topic: string): Promise<number[]> {
  const { body } = await client.describeTopic(topic)
  return body.partitions.map(({ id }) => id)
}

interface PartitionParts {
  readonly client: HttpClient
  readonly reading: Reading
  readonly partition: number
  /** The most records to read. */
  readonly left: number
  readonly io: CliIo
}

/**
 * What follows the first answer is read by offset: of a group too, since nothing is committed in between.
 * @param remark on the offset that it begins at. @returns how many records were read.
 */
async function consumePartition(parts: PartitionParts, remark: (first: Whole) => string | null): Promise<number> {
  const { client, reading, partition, left, io } = parts
  const { isJson, waitMs } = reading
  const isOne = reading.partition !== null
  let place = reading.start
  let count = 0
  for (;;) {
    const { body, text } = await readOnce(client, { ...reading, partition }, place, left - count)
    if (place === reading.start) {
      const remarks = [remark(body.records[0]?.offset ?? body.next_offset), beyondEnd(body, partition)]
      for (const words of remarks) if (words !== null) await print(io.stderr, `millrace: ${words}\n`)
    }
    count += body.records.length
    await print(io.stdout, isJson ? `${text}\n` : linesOf(body, reading, isOne ? '' : `partition=${partition} `))
    if (count >= left || isAtEnd(body, place, waitMs)) {
      if (!isJson) await print(io.stdout, `${formatPosition(body, count, isOne ? null : partition)}\n`)
      return count
    }
    place = { offset: body.next_offset }
  }
}

/** The API takes any offset; who mistyped one would wait for records that never come. */
function beyondEnd({ records, next_offset: asked, high_watermark: end }: Body, partition: number): string | null {
  return records.length === 0 && asked > end ? beyondEndText(asked, partition, end) : null
}

function readOnce(
  client: HttpClient,
  { topic, partition, waitMs, encoding, isJson }: Reading & { readonly partition: number },
  place: Start,
  leftCount: number
): Promise<Answer<Body>> {
  const isOfGroup = typeof place === 'object' && 'group' in place
  // For people bytes come exactly, and are shown as text where they are text.
  const asked = encoding ?? (isJson ? 'utf8' : 'base64')
  const query = [
    ...(isOfGroup ? [`topic=${encodeURIComponent(topic)}`] : []),
    `partition=${partition}`,
    ...(isOfGroup ? [] : [placeQuery(place)]),
    `max_records=${Math.min(leftCount, REQUEST_RECORDS_MAX)}`,
    ...(asked === 'utf8' ? [] : [`encoding=${asked}`]),
    ...(waitMs === 0 ? [] : [`max_wait_ms=${waitMs}`])
  ].join('&')
  const path = isOfGroup ? `/groups/${encodeURIComponent(place.group)}` : `/topics/${encodeURIComponent(topic)}`
  return client.call('GET', `${path}/consume?${query}`)
}

function linesOf(answer: Body, form: RecordForm, label: string): string {
  const skipped = formatSkipped(answer, label)
  const isBase64 = answer.encoding === 'base64'
  const lines = answer.records.map(record => `${label}${formatRecord(record, isBase64, form)}`)
  return (skipped === null ? lines : [skipped, ...lines]).map(line => `${line}\n`).join('')
}

/**
 * The end is the high watermark of the answer, or a next offset that does not move: then asking again cannot help. Who
 * waits is at the end when a whole wait has brought nothing.
 */
function isAtEnd(answer: Body, asked: Start, waitMs: number): boolean {
  const isBehind = answer.next_offset < answer.high_watermark
  if (typeof asked !== 'object' || !('offset' in asked))
    return !isBehind && (waitMs === 0 || answer.records.length === 0)
  const isStuck = answer.next_offset <= asked.offset
  return isStuck || (waitMs === 0 && !isBehind)
}
