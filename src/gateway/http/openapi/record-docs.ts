/** What the documentation says of producing, consuming and looking for offsets. Pure data. */
import { limits } from '../../../model/limits.ts'
import type { readNames } from '../reads/consume-exchange.ts'
import type { offsetNames } from '../offset-routes.ts'
import type { startNames } from '../reads/start-offset.ts'
import type { streamNames } from '../streams/stream-form.ts'
import { EVENT_STREAM_TYPE } from '../streams/stream-head.ts'
import {
  json,
  jsonOrMsgpack,
  jsonOrMsgpackBody,
  type AnswerDocs,
  type Parameter,
  type RouteDocs
} from './route-docs.ts'
import { choice, fields, list, noun, orNull, text, time, u32, u64 } from './schema.ts'
import { lookErrors, topicPath } from './topic-docs.ts'

/** The partition that is read. */
const partitionQuery = { about: 'Numbered from 0.', schema: u32() } as const satisfies Parameter

const brought = 'What is out of range is brought to the nearest value that is allowed.'

/** Of every read, whether it begins at an offset or where a group is. */
export const readQuery = {
  partition: { ...partitionQuery, isRequired: true },
  max_records: {
    about: `At most so many records, up to --max-fetch-records. ${brought}`,
    schema: u64('', { default: limits.fetchRecordsDefault })
  },
  max_bytes: {
    about: `At most so many bytes, up to --max-fetch-bytes; one record comes in any case. ${brought}`,
    schema: u64('', { default: limits.fetchBytesDefault })
  },
  encoding: {
    about:
      'How keys, values and values of headers are written: as text, or exactly, whatever their bytes. Not for MessagePack.',
    schema: choice(['utf8', 'utf-8', 'base64'], '', { default: 'utf8' })
  },
  max_wait_ms: {
    about: `Milliseconds to wait until there is something to read, up to ${limits.readWaitMsMax}. ${brought}`,
    schema: u64('', { default: 0 })
  },
  min_bytes: { about: `How much to wait for, up to max_bytes. ${brought}`, schema: u64('', { default: 1 }) }
} as const satisfies Readonly<Record<(typeof readNames)[number], Parameter>>

/** Where a read begins. */
const startQuery = {
  offset: {
    about: 'Where to begin. Either it or timestamp_ms is asked for.',
    schema: { oneOf: [u64(), choice(['earliest', 'latest'])] }
  },
  timestamp_ms: {
    about: 'Begin at the first record at or after it; behind the last one if none is so late.',
    schema: time('Unix milliseconds.')
  }
} as const satisfies Readonly<Record<(typeof startNames)[number], Parameter>>

/** What a read may be refused with, beside its name. */
export const readErrors = ['PARTITION_RANGE', 'RATE_LIMITED', 'READ_FAILED', 'COLD_UNAVAILABLE', ...lookErrors] as const

/** The answer of a read. */
export const readAnswers = {
  200: jsonOrMsgpack('Records, in the order of their offsets.', noun('ReadAnswer'))
} as const

/** How a stream reads. */
export const streamQuery = {
  encoding: {
    about: 'How keys, values and values of headers are written: as text, or exactly, whatever their bytes.',
    schema: readQuery.encoding.schema
  },
  max_bytes: {
    about: `It reads at most so many bytes at once, up to ${limits.streamReadBytesMax}; one record comes in any case. ${brought}`,
    schema: u64('', { default: limits.streamReadBytesMax })
  }
} as const satisfies Readonly<Record<(typeof streamNames)[number], Parameter>>

/** The answer of a stream. */
export function events(about: string): AnswerDocs {
  const more =
    'To whoever names text/event-stream in Accept also what is refused for now, as a stream that ends at once: ' +
    'EventSource comes again behind it.'
  return { about: `${about} ${more}`, content: { [EVENT_STREAM_TYPE]: text('Server-sent events.') } }
}

/** Parameters of the stream of a topic alone. */
type TopicStreamName = 'partition' | 'last_event_id'

export const recordDocs = {
  produce: {
    id: 'produce',
    tag: 'records',
    about: 'Append records; answered when they are on disk.',
    details:
      'All are written or none. With a `producer_id` a request may be sent again until it is answered, and its records are in the log once.',
    path: topicPath,
    body: jsonOrMsgpackBody(
      fields(
        { records: list(noun('RecordToProduce'), '', { maxItems: limits.requestRecordsMax }) },
        {
          encoding: orNull(
            choice(['utf8', 'base64'], 'How keys, values and values of headers are written. Not for MessagePack.', {
              default: 'utf8'
            })
          ),
          producer_id: orNull(text('Of an idempotent producer, whose records all have a sequence.'))
        }
      )
    ),
    answers: {
      200: jsonOrMsgpack(
        'Where each record is, in the order of the request.',
        fields({ results: list(noun('ProduceResult')) })
      )
    },
    errors: [
      'BODY_NOT_MSGPACK',
      'TOPIC_NOT_FOUND',
      'RECORDS_TOO_MANY',
      'RECORD_TOO_LARGE',
      'RATE_LIMITED',
      'SEQUENCE_INVALID',
      'PARTITION_RANGE',
      'NAME_INVALID',
      'PRODUCERS_TOO_MANY',
      'PRODUCER_OWNED',
      'SCHEMA_MISSING',
      'SCHEMA_MISMATCH',
      'VALIDATION_LIMIT',
      'SEQUENCE_GAP',
      'SEQUENCE_TOO_LOW',
      'DISK_FULL',
      'WRITE_FAILED',
      ...lookErrors
    ]
  },
  consume: {
    id: 'consume',
    tag: 'records',
    about: 'Read a partition from an offset or a time.',
    path: topicPath,
    query: { ...readQuery, ...startQuery },
    answers: readAnswers,
    errors: ['TOPIC_NOT_FOUND', 'FIELD_RANGE', ...readErrors]
  },
  stream: {
    id: 'streamTopic',
    tag: 'records',
    about: 'The records of one or all partitions as server-sent events, as they come.',
    details:
      'The data of each event is a record as a read has it. Its id is where the next one begins, in every partition. ' +
      '`event: skipped` tells what was passed over, `{partition, requested, earliest, latest}`, and `event: end` why the stream ends, ' +
      '`{code, error}`. A comment comes when there is nothing for a while.',
    path: topicPath,
    query: {
      partition: {
        ...partitionQuery,
        about: `Numbered from 0; left out: all of the topic, ${limits.streamPartitionsMax} at most.`
      },
      offset: {
        about:
          'Where to begin: a number only in a partition that is named. latest unless it or timestamp_ms is asked for.',
        schema: startQuery.offset.schema
      },
      timestamp_ms: startQuery.timestamp_ms,
      last_event_id: {
        about:
          'The same as the header Last-Event-ID, where that is not sent: for a new EventSource, which cannot send it.',
        schema: text()
      },
      ...streamQuery
    } satisfies Readonly<Record<(typeof startNames | typeof streamNames)[number] | TopicStreamName, Parameter>>,
    headers: {
      'Last-Event-ID': {
        about: 'Go on behind the event with this id; offset and timestamp_ms count no more.',
        schema: text()
      }
    },
    answers: { 200: events('Open until either side ends it.') },
    errors: ['TOPIC_NOT_FOUND', 'PARTITION_RANGE', 'FIELD_RANGE', 'READ_FAILED', 'COLD_UNAVAILABLE', ...lookErrors]
  },
  offsets: {
    id: 'listOffsets',
    tag: 'topics',
    about: 'Where partitions begin and end, and the first record at a time.',
    path: topicPath,
    query: {
      partition: { ...partitionQuery, about: 'Numbered from 0; left out: all of the topic.' },
      timestamp_ms: { about: 'Also tell of the first record at or after it.', schema: time('Unix milliseconds.') }
    } satisfies Readonly<Record<(typeof offsetNames)[number], Parameter>>,
    answers: {
      200: json('One partition if it was named, else all.', {
        oneOf: [noun('PartitionOffsets'), fields({ partitions: list(noun('PartitionOffsets')) })]
      })
    },
    errors: ['TOPIC_NOT_FOUND', 'PARTITION_RANGE', 'FIELD_RANGE', 'READ_FAILED', 'COLD_UNAVAILABLE', ...lookErrors]
  }
} as const satisfies Record<string, RouteDocs>
