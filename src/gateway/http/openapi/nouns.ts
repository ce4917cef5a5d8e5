/**
 * The nouns of the API: what answers and bodies are made of, by the name under which the description has them. Pure data.
 * Objects say nothing of fields beyond theirs: clients pass over what they do not know, since answers may get more.
 */
import { errorTable } from '../../../model/errors.ts'
import { groupKinds, groupStates } from '../../../model/groups.ts'
import { limits } from '../../../model/limits.ts'
import { grantActions } from '../../../model/principal.ts'
import { compatibilityModes, schemaTypes } from '../../../model/schemas.ts'
import { cleanupPolicies, partitioners, timestampTypes } from '../../../model/topic.ts'
import { confluentTypes } from '../../../wire/json/confluent-json.ts'
import type { NounName } from './noun-names.ts'
import {
  choice,
  fields,
  list,
  noun,
  orNull,
  table,
  text,
  time,
  u32,
  u64,
  whole,
  type Schema,
  type Schemas
} from './schema.ts'

const errorFields = {
  error: text('For people.'),
  code: choice(Object.keys(errorTable), 'For programs.'),
  retry: choice(
    ['never', 'same', 'refresh'],
    'never: the same request fails again. same: it may succeed later. refresh: look the topic up first.'
  ),
  written: choice(['no', 'yes', 'unknown'], 'Whether anything of the request is in the log.'),
  request_id: text('Of this refusal; the log of the broker has it.', { pattern: '^[0-9a-f]{8}$' })
}

const never = 'null: never.'

const configFields = {
  retention_ms: orNull(u64(`Age at which records go, in milliseconds; ${never}`)),
  retention_bytes: orNull(u64(`Bytes of a partition above which its oldest segments go; ${never}`)),
  cleanup_policy: choice(cleanupPolicies),
  segment_bytes: whole('Size at which a segment is closed.', {
    minimum: limits.segmentBytesMin,
    maximum: limits.segmentBytesMax
  }),
  tombstone_retention_ms: u64('How long a compacted topic keeps what says that a key is gone.')
}

/** The seed does not have them. */
const ownFields: Schemas = {
  validate_schema: {
    type: 'boolean',
    description: 'Records must match the latest schema of the subject <topic>-value.'
  },
  message_timestamp_type: choice(
    timestampTypes,
    "Whether records of Kafka's clients have the times of their producer, or of their append."
  ),
  max_message_bytes: whole("Bytes of a batch of Kafka's clients, and of one record of others.", { minimum: 1 }),
  segment_ms: u64('Age at which a segment is closed, in milliseconds.'),
  partitioner: choice(
    partitioners,
    'Hash of keys that says where records go. It changes only while the topic is empty.'
  )
}

const clearable = (description: string, cleared = 'never'): Schema => {
  return { type: ['integer', 'null'], minimum: -1, description: `${description} −1: ${cleared}. null: as it is.` }
}

const configPatch = {
  ...configFields,
  ...ownFields,
  retention_ms: clearable('Age at which records go, in milliseconds, up to 2^64 − 1.'),
  retention_bytes: clearable('Bytes of a partition above which its oldest segments go, up to 2^64 − 1.'),
  max_message_bytes: clearable(
    "Bytes of a batch of Kafka's clients, and of one record of others, from 1.",
    "the broker's"
  ),
  segment_ms: clearable('Age at which a segment is closed, in milliseconds, from 1 to 2^64 − 1.', "the broker's")
}

const partition = u32('Numbered from 0.')
const keyText = orNull(text('null: the record has none.'))
const headers = list(
  { type: 'array', prefixItems: [text(), orNull(text())], items: false, minItems: 2, maxItems: 2 },
  'Names and values, in order; names may repeat.'
)
const place = { topic: noun('TopicName'), partition }

const partitionDescription = fields({
  id: partition,
  start_offset: whole('First offset that can be read.'),
  end_offset: whole('Behind the last record.'),
  segment_count: whole(),
  size_bytes: whole('On disk.')
})

/** Schemas by name. */
export const nouns: Readonly<Record<NounName, Schema>> = {
  Error: fields(errorFields, {}, 'Every refusal.'),
  NotReady: fields(errorFields, {
    status: choice(['starting', 'unavailable', 'stopping']),
    message: text('What is missing.'),
    progress: { type: 'number', minimum: 0, maximum: 1, description: 'Of a start.' }
  }),
  TopicName: text(`1 to ${limits.nameBytesMax} of A-Z a-z 0-9 . _ -, and neither . nor ..`),
  Topic: fields({ name: noun('TopicName'), partitions: u32('How many.') }),
  TopicConfig: fields(
    configFields,
    ownFields,
    'What counts for a topic: what it was given, and the defaults of the broker. What is not always there says nothing where it is not.'
  ),
  TopicConfigPatch: fields(
    {},
    Object.fromEntries(Object.entries(configPatch).map(([name, schema]) => [name, orNullOnce(schema)])),
    'What is left out or null keeps its value.'
  ),
  TopicDescription: fields({
    name: noun('TopicName'),
    partitions: list(partitionDescription),
    config: noun('TopicConfig')
  }),
  RecordToProduce: fields(
    { value: text('Empty: it says that the key is gone. In MessagePack keys and values are bin, or str.') },
    {
      key: keyText,
      partition: orNull(u32('Left out: by the key, or the next one in turn.')),
      headers: orNull({ ...headers, maxItems: limits.recordHeadersMax }),
      sequence: orNull(whole('Of an idempotent producer: each is one more than the last in its partition.'))
    }
  ),
  ProduceResult: fields(
    { partition, offset: whole() },
    { duplicate: { type: 'boolean', description: 'True where the record was there already: only then it is told.' } }
  ),
  Headers: headers,
  Record: fields(
    { partition, offset: whole(), timestamp_ms: time('When it was produced.'), key: keyText, value: text() },
    { headers: noun('Headers') }
  ),
  Skipped: fields(
    {
      requested: u64('Where the read stood.'),
      earliest: whole('Where it went on.'),
      latest: whole('The high watermark.')
    },
    {},
    'Records were passed over that are gone or damaged: only then it is there.'
  ),
  ReadAnswer: fields(
    {
      records: list(noun('Record')),
      next_offset: u64('Where to go on: never compute it.'),
      high_watermark: whole('Behind the last record that can be read.')
    },
    {
      skipped: noun('Skipped'),
      encoding: choice(['base64'], 'How keys, values and values of headers are written, if not as text.')
    }
  ),
  PartitionOffsets: fields(
    { partition, earliest: whole('First offset that can be read.'), latest: whole('Behind the last record.') },
    {
      offset: whole('Of the first record at or after the time that was asked for; `latest` if none is so late.'),
      timestamp_ms: orNull(time('Of that record; null: there is none.'))
    }
  ),
  CommittedOffsets: fields(
    {
      offsets: table(table(u64('Next offset to read.'), 'By the number of the partition.'), 'By the name of the topic.')
    },
    {
      metadata: table(
        table(text('What a Kafka client noted beside the offset.'), 'By the number of the partition.'),
        'By the name of the topic; where something is noted.'
      )
    }
  ),
  Partition: fields(place),
  Assignment: fields({ generation: whole(), assignment: list(noun('Partition'), 'By topic, then partition.') }),
  Heartbeat: {
    oneOf: [
      fields({ status: choice(['ok']), generation: whole() }),
      fields({
        status: choice(
          ['rebalance_required', 'unknown_member'],
          'rebalance_required: fetch the assignment again. unknown_member: join again.'
        ),
        current_generation: whole('Of the group now; 0: nobody knows the group.')
      })
    ]
  },
  Group: fields({
    group: text(),
    owner: text('Id of the key that it belongs to.'),
    kind: orNull(choice(groupKinds, 'What its members speak; null: it has none.')),
    state: choice(groupStates, 'Whether its members have what is theirs to read. Those that speak HTTP always have.'),
    generation: whole(),
    members: list(fields({ member_id: text(), topics: list(noun('TopicName')), partition_count: whole() })),
    lag_records: orNull(whole('Records behind the committed offsets; null: not known.')),
    lag_seconds: orNull({ type: 'number', minimum: 0, description: 'Age of the oldest of them; null: not known.' })
  }),
  Producer: fields({
    producer_id: text(),
    partitions: list(fields({ ...place, last_seen_sequence: whole(), last_offset: whole() }))
  }),
  KeyRule: fields({
    action: choice(grantActions, 'Each includes the ones before; admin on a prefix is worth write there.'),
    topic_prefix: text('`*`, or a name: it covers that name, and those that go on behind one of . _ -')
  }),
  Key: fields({
    key_id: text('', { pattern: '^key_[0-9a-f]{12}$' }),
    name: text('For people.'),
    acls: list(noun('KeyRule')),
    produce_bytes_per_sec: orNull(u32('null: unlimited.')),
    consume_bytes_per_sec: orNull(u32('null: unlimited.')),
    created_at_ms: time('When it was made.'),
    disabled: { type: 'boolean', description: 'It was revoked, for good.' }
  }),
  SchemaVersion: fields({
    id: whole('The same text may have several.'),
    subject: noun('TopicName'),
    type: choice(schemaTypes),
    schema: text(),
    created_at_ms: time('When it was registered.')
  }),
  ConfluentVersion: fields(
    { subject: noun('TopicName'), version: u32('From 1.'), id: whole(), schema: text() },
    { schemaType: choice(Object.values(confluentTypes), 'Left out of Avro.') }
  ),
  ConfluentError: fields({
    error_code: u32('The status, or the status and two digits.'),
    message: text('For people.')
  }),
  Compatibility: fields({ compatibility: orNull(choice(compatibilityModes, 'null: none of its own.')) }),
  Replication: fields({
    node_id: orNull(whole('null: this broker stands alone.')),
    members: list(whole('A node id.')),
    partitions: list(
      fields({
        ...place,
        role: choice(['leader', 'follower', 'candidate']),
        term: whole(),
        leader: orNull(whole('Node id; null: none is known.')),
        commit_index: whole(),
        last_log_index: whole(),
        caught_up: list(whole('A node id.')),
        has_quorum: { type: ['boolean', 'null'], description: 'null: only a leader knows.' }
      })
    ),
    replicating: { type: 'boolean', description: 'Whether what is acknowledged is on more than one machine.' }
  }),
  Health: fields(
    { status: choice(['ok']), topics_count: whole() },
    {
      troubles: list(text(), 'What is tried again in vain; where keys are asked for, only an administrator sees what.')
    }
  )
}

/** Fields that have a null already keep it. */
function orNullOnce(schema: Schema): Schema {
  return Array.isArray(schema.type) ? schema : orNull(schema)
}
