/** What the documentation says of the routes of topics. Pure data. */
import { limits } from '../../../model/limits.ts'
import { json, jsonBody, type Parameters, type RouteDocs } from './route-docs.ts'
import { fields, list, noun, orNull, u32, u64, whole } from './schema.ts'

/** The name in a path of a topic. */
export const topicPath = {
  name: { about: 'Name of the topic.', schema: noun('TopicName') }
} as const satisfies Parameters

/** Of a change that is on disk, or asked of a shard, before it is answered. */
export const changeErrors = ['DISK_FULL', 'OVERLOADED', 'SHARD_DOWN', 'SHARD_DIED'] as const
/** Of a look at what a shard has. */
export const lookErrors = ['OVERLOADED', 'SHARD_DOWN', 'SHARD_DIED'] as const

export const topicDocs = {
  create: {
    id: 'createTopic',
    tag: 'topics',
    about: 'Create a topic.',
    details: 'A topic made again under the name of a deleted one is a new topic: its offsets begin at 0.',
    body: jsonBody(
      fields(
        { name: noun('TopicName') },
        {
          partitions: orNull(u32('How many.', { minimum: 1, maximum: limits.partitionsMax, default: 1 })),
          config: orNull(noun('TopicConfigPatch'))
        }
      )
    ),
    answers: { 201: json('It is there, on disk.', noun('Topic')) },
    errors: ['NAME_INVALID', 'FIELD_RANGE', 'TOPIC_EXISTS', 'TOPICS_TOO_MANY', ...changeErrors]
  },
  list: {
    id: 'listTopics',
    tag: 'topics',
    about: 'List the topics.',
    answers: {
      200: json('Names of the topics that the key can read, sorted.', fields({ topics: list(noun('TopicName')) }))
    }
  },
  describe: {
    id: 'describeTopic',
    tag: 'topics',
    about: 'Partitions, offsets, sizes and configuration of a topic.',
    path: topicPath,
    answers: { 200: json('The topic.', noun('TopicDescription')) },
    errors: ['TOPIC_NOT_FOUND', ...lookErrors]
  },
  delete: {
    id: 'deleteTopic',
    tag: 'topics',
    about: 'Delete a topic and its data.',
    path: topicPath,
    answers: { 200: json('It is gone.', noun('Topic')) },
    errors: ['TOPIC_NOT_FOUND', ...changeErrors]
  },
  config: {
    id: 'readTopicConfig',
    tag: 'topics',
    about: 'The resolved configuration of a topic.',
    path: topicPath,
    answers: { 200: json('All of its fields.', noun('TopicConfig')) },
    errors: ['TOPIC_NOT_FOUND']
  },
  changeConfig: {
    id: 'changeTopicConfig',
    tag: 'topics',
    about: 'Change the configuration of a topic; omitted fields keep their value.',
    path: topicPath,
    body: jsonBody(noun('TopicConfigPatch')),
    answers: { 200: json('All of its fields, as they are now.', noun('TopicConfig')) },
    errors: ['TOPIC_NOT_FOUND', 'FIELD_RANGE', ...changeErrors]
  },
  addPartitions: {
    id: 'addPartitions',
    tag: 'topics',
    about: 'Give a topic more partitions.',
    details:
      'Those that there are keep their records. A key may go to another partition from then on: its records are in order before and after, not across.',
    path: topicPath,
    body: jsonBody(
      fields({
        partitions: u32('How many it is to have, more than it has.', { minimum: 1, maximum: limits.partitionsMax })
      })
    ),
    answers: { 200: json('They are there, on disk.', noun('Topic')) },
    errors: ['TOPIC_NOT_FOUND', 'FIELD_RANGE', ...changeErrors]
  },
  deleteRecords: {
    id: 'deleteRecords',
    tag: 'topics',
    about: 'Drop the records of a partition below an offset.',
    path: topicPath,
    body: jsonBody(fields({ partition: u32(), offset: u64('From 0 to the end of the partition.') })),
    answers: {
      200: json(
        'They cannot be read any more.',
        fields({ partition: u32(), start_offset: whole('Where the partition begins now: there, or later.') })
      )
    },
    errors: ['TOPIC_NOT_FOUND', 'PARTITION_RANGE', 'FIELD_RANGE', ...changeErrors]
  }
} as const satisfies Record<string, RouteDocs>
