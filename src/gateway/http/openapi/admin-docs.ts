/** What the documentation says of the routes of operators. Pure data. */
import { limits } from '../../../model/limits.ts'
import { json, jsonBody, type RouteDocs } from './route-docs.ts'
import { fields, list, noun, orNull, text, u32, whole } from './schema.ts'
import { changeErrors } from './topic-docs.ts'

const quota = (of: string) => orNull(u32(`Bytes of keys and values a second that it may ${of}; 0 or null: unlimited.`))

export const adminDocs = {
  listProducers: {
    id: 'listProducers',
    tag: 'admin',
    about: 'Idempotent producers, and what each sent last to which partition.',
    answers: { 200: json('By id, then topic and partition.', fields({ producers: list(noun('Producer')) })) },
    errors: ['OVERLOADED', 'SHARD_DOWN', 'SHARD_DIED']
  },
  forgetProducer: {
    id: 'forgetProducer',
    tag: 'admin',
    about: 'Forget a producer: its next use starts afresh.',
    path: { id: { about: 'Producer id.', schema: text() } },
    answers: { 204: { about: 'It is forgotten.' } },
    errors: ['NAME_INVALID', 'PRODUCER_NOT_FOUND', ...changeErrors]
  },
  runRetention: {
    id: 'runRetention',
    tag: 'admin',
    about: 'Drop at once the segments that have had their time; with cold storage, move them there.',
    answers: { 204: { about: 'They cannot be read any more, or are there.' } },
    errors: changeErrors
  },
  runCompaction: {
    id: 'runCompaction',
    tag: 'admin',
    about: 'Compact at once every topic whose policy says so.',
    answers: { 204: { about: 'The pass is over.' } },
    errors: ['COMPACTION_INCOMPLETE', ...changeErrors]
  },
  tieredSegments: {
    id: 'listColdSegments',
    tag: 'admin',
    about: 'Base offsets of the segments in cold storage.',
    path: {
      topic: { about: 'Name of the topic.', schema: noun('TopicName') },
      partition: { about: 'Numbered from 0.', schema: u32() }
    },
    answers: { 200: json('Ascending; none of what is not there.', fields({ segments: list(whole()) })) },
    errors: ['NAME_INVALID', 'OVERLOADED', 'SHARD_DOWN', 'SHARD_DIED']
  },
  createKey: {
    id: 'createKey',
    tag: 'admin',
    about: 'Create a key; its secret is told once, here.',
    body: jsonBody(
      fields(
        {
          name: text(`For people: 1 to ${limits.nameBytesMax} bytes.`),
          acls: list(noun('KeyRule'), 'Empty: it may do nothing.', { maxItems: limits.keyRulesMax })
        },
        { produce_bytes_per_sec: quota('produce'), consume_bytes_per_sec: quota('consume') }
      )
    ),
    answers: {
      201: json(
        'It works.',
        fields({ key: noun('Key'), secret: text('The broker keeps hashes of it: nobody can ask again.') })
      )
    },
    errors: ['NAME_INVALID', 'FIELD_RANGE', 'KEYS_TOO_MANY', 'DISK_FULL']
  },
  listKeys: {
    id: 'listKeys',
    tag: 'admin',
    about: 'List the keys, without secrets, revoked ones too.',
    answers: { 200: json('Oldest first.', fields({ keys: list(noun('Key')) })) }
  },
  revokeKey: {
    id: 'revokeKey',
    tag: 'admin',
    about: 'Revoke a key: it stops working at once.',
    path: { key_id: { about: 'Id of the key.', schema: text() } },
    answers: { 204: { about: 'Nothing more is done for it, for good; also if it was revoked already.' } },
    errors: ['KEY_NOT_FOUND', 'DISK_FULL']
  },
  replication: {
    id: 'readReplication',
    tag: 'admin',
    about: 'Who has which copies; one broker alone has no others.',
    answers: { 200: json('As this broker sees it.', noun('Replication')) }
  }
} as const satisfies Record<string, RouteDocs>
