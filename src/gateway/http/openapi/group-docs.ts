/** What the documentation says of the routes of consumer groups. Pure data. */
import { limits } from '../../../model/limits.ts'
import { events, readAnswers, readErrors, readQuery, streamQuery } from './record-docs.ts'
import { json, jsonBody, type Parameters, type RouteDocs } from './route-docs.ts'
import { choice, fields, list, noun, orNull, text, time, u32, u64, whole } from './schema.ts'
import { lookErrors } from './topic-docs.ts'

/** The name in a path of a group. */
const groupPath = {
  group: { about: 'Name of the group.', schema: noun('TopicName') }
} as const satisfies Parameters

/** Of what may make a group. */
const makingErrors = [
  'NAME_INVALID',
  'TOPIC_NOT_FOUND',
  'GROUP_OWNED',
  'GROUPS_TOO_MANY',
  'DISK_FULL',
  'OVERLOADED'
] as const

const memberId = text('As the answer to the join has it.')

export const groupDocs = {
  commit: {
    id: 'commitOffset',
    tag: 'groups',
    about: 'Record the next offset to read.',
    details:
      'It shows at once and is on disk within a second. A group comes to be with its first commit or join. ' +
      'With `member_id` and `generation`, as of the answer with the assignment, it is taken only from a member that knows of the last assignment.',
    path: groupPath,
    body: jsonBody(
      fields(
        { topic: noun('TopicName'), partition: u32(), offset: u64('The next to read.') },
        { member_id: orNull(memberId), generation: orNull(u64('Of the assignment; with `member_id`.')) }
      )
    ),
    answers: { 204: { about: 'It is noted.' } },
    errors: [
      'PARTITION_RANGE',
      'MEMBER_NOT_FOUND',
      'MEMBER_OWNED',
      'GENERATION_STALE',
      'GROUP_OFFSETS_TOO_MANY',
      ...makingErrors
    ]
  },
  offsets: {
    id: 'listCommittedOffsets',
    tag: 'groups',
    about: 'Committed offsets on topics that the key can read.',
    path: groupPath,
    answers: { 200: json('None of a group that is not there.', noun('CommittedOffsets')) },
    errors: ['GROUP_OWNED']
  },
  consume: {
    id: 'consumeAsGroup',
    tag: 'groups',
    about: 'Read a partition from the committed offset; commits nothing.',
    path: groupPath,
    query: { ...readQuery, topic: { about: 'Name of the topic.', schema: noun('TopicName'), isRequired: true } },
    answers: readAnswers,
    errors: ['GROUP_OWNED', 'TOPIC_NOT_FOUND', ...readErrors]
  },
  join: {
    id: 'joinGroup',
    tag: 'groups',
    about: 'Join, and receive partitions.',
    path: groupPath,
    body: jsonBody(
      fields(
        { topics: list(noun('TopicName'), '', { minItems: 1, maxItems: limits.memberTopicsMax }) },
        { member_id: orNull(text('Left out: the broker picks one.')) }
      )
    ),
    answers: {
      200: json(
        'It is a member.',
        fields({ member_id: text(), generation: whole(), assignment: list(noun('Partition')) })
      )
    },
    errors: ['FIELD_RANGE', 'GROUP_KIND', 'MEMBER_OWNED', 'MEMBERS_TOO_MANY', ...makingErrors]
  },
  heartbeat: {
    id: 'heartbeat',
    tag: 'groups',
    about: 'Stay a member; learn about rebalances.',
    path: groupPath,
    body: jsonBody(fields({ member_id: memberId, generation: u64('That the member knows.') })),
    answers: { 200: json('What became of the member.', noun('Heartbeat')) },
    errors: ['GROUP_OWNED', 'MEMBER_OWNED']
  },
  leave: {
    id: 'leaveGroup',
    tag: 'groups',
    about: 'Leave; the group rebalances.',
    path: groupPath,
    body: jsonBody(fields({ member_id: memberId })),
    answers: { 204: { about: 'It is no member, also if it was none.' } },
    errors: ['GROUP_OWNED', 'MEMBER_OWNED']
  },
  assignment: {
    id: 'readAssignment',
    tag: 'groups',
    about: "The member's current partitions.",
    path: groupPath,
    query: { member_id: { about: 'Of the member.', schema: memberId, isRequired: true } },
    answers: { 200: json('They are its own.', noun('Assignment')) },
    errors: ['GROUP_NOT_FOUND', 'GROUP_OWNED', 'MEMBER_NOT_FOUND', 'MEMBER_OWNED']
  },
  stream: {
    id: 'streamGroup',
    tag: 'groups',
    about: "The records of the member's partitions as server-sent events; commits nothing.",
    details:
      'It begins where the group has committed. `event: assignment` tells which partitions they are, at the beginning and ' +
      'after each change; `event: end` why the stream ends. While the client takes it, the member needs no heartbeats.',
    path: groupPath,
    query: { member_id: { about: 'Of the member.', schema: memberId, isRequired: true }, ...streamQuery },
    answers: { 200: events('Open until either side ends it.') },
    errors: ['GROUP_NOT_FOUND', 'GROUP_OWNED', 'MEMBER_NOT_FOUND', 'MEMBER_OWNED', 'TOPIC_NOT_FOUND', 'OVERLOADED']
  },
  reset: {
    id: 'resetGroup',
    tag: 'groups',
    about: 'Commit where a topic begins, ends, or was at a time.',
    path: groupPath,
    body: jsonBody(
      fields(
        {
          topic: noun('TopicName'),
          to: {
            oneOf: [
              choice(['earliest', 'latest']),
              fields({ timestamp_ms: time('The first record at or after it, in Unix milliseconds; else the end.') })
            ]
          }
        },
        { partition: orNull(u32('Left out: all of the topic.')) }
      )
    ),
    answers: { 200: json('What is committed in those partitions now.', noun('CommittedOffsets')) },
    errors: [
      'PARTITION_RANGE',
      'GROUP_OFFSETS_TOO_MANY',
      'READ_FAILED',
      'COLD_UNAVAILABLE',
      'SHARD_DOWN',
      'SHARD_DIED',
      ...makingErrors
    ]
  },
  describe: {
    id: 'describeGroup',
    tag: 'groups',
    about: 'Members, generation and lag of a group.',
    path: groupPath,
    answers: { 200: json('The group.', noun('Group')) },
    errors: ['GROUP_NOT_FOUND', 'GROUP_OWNED']
  },
  remove: {
    id: 'deleteGroup',
    tag: 'groups',
    about: 'Forget a group and its offsets.',
    path: groupPath,
    answers: { 204: { about: 'It is forgotten.' } },
    errors: ['GROUP_NOT_FOUND', 'GROUP_OWNED', 'GROUP_NOT_EMPTY', 'DISK_FULL', 'OVERLOADED']
  },
  list: {
    id: 'listGroups',
    tag: 'groups',
    about: 'Members, generation and lag of all groups that the key owns.',
    answers: {
      200: json(
        'In the order in which they were made; of an administrator all.',
        fields({ groups: list(noun('Group')) })
      )
    }
  },
  resetTopic: {
    id: 'resetOffsets',
    tag: 'groups',
    about: 'Move every group on a topic back to its first offset.',
    body: jsonBody(fields({ topic: noun('TopicName') })),
    answers: { 200: json('How much was moved.', fields({ groups_affected: whole(), entries_reset: whole() })) },
    errors: ['TOPIC_NOT_FOUND', 'DISK_FULL', ...lookErrors]
  }
} as const satisfies Record<string, RouteDocs>
