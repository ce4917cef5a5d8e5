/**
 * The one table of HTTP routes. Both engines, the documentation and its test read it. Main thread.
 */
import type { Operation } from '../../model/access.ts'
import type { BodySink } from './engine.ts'
import {
  forgetProducer,
  listProducers,
  replication,
  runCompaction,
  runRetention,
  tieredSegments
} from './admin-routes.ts'
import { consume } from './consume-exchange.ts'
import type { Exchange } from './exchange.ts'
import {
  commitOffset,
  describeGroup,
  groupAssignment,
  groupConsume,
  groupOffsets,
  heartbeat,
  joinGroup,
  leaveGroup,
  listGroups,
  removeGroup,
  resetGroup,
  resetOffsets
} from './group-routes.ts'
import { createKey, listKeys, revokeKey } from './key-routes.ts'
import { metrics } from './metrics-route.ts'
import { offsets } from './offset-routes.ts'
import { produce } from './produce-exchange.ts'
import {
  generalCompatibility,
  listSchemas,
  listSubjects,
  registerSchema,
  schemaById,
  setGeneralCompatibility,
  setSubjectCompatibility,
  subjectCompatibility,
  subjectVersion,
  subjectVersions
} from './schema-routes.ts'
import {
  changeTopicConfig,
  createTopic,
  deleteRecords,
  deleteTopic,
  describeTopic,
  healthz,
  listTopics,
  readyz,
  topicConfig
} from './topic-routes.ts'

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Segments as they stand, `:name` for any one segment. */
  readonly pattern: string
  /** What it is for access: model/access.ts says what that takes. The use case that it calls asks for it. */
  readonly operation: Operation
  /** One sentence for the documentation. */
  readonly about: string
  /** Served also while the broker is not ready, and to everybody. */
  readonly isHealth: boolean
  /** Answers, or returns who takes the body and answers later. What it throws becomes the answer. */
  readonly run: (exchange: Exchange) => BodySink | null
}

function route(
  method: Route['method'],
  pattern: string,
  run: Route['run'],
  operation: Operation,
  about: string
): Route {
  return { method, pattern, run, operation, about, isHealth: operation === 'health' }
}

export const routes: readonly Route[] = [
  route('POST', '/topics', createTopic, 'create topic', 'Create a topic.'),
  route('GET', '/topics', listTopics, 'list topics', 'List the topics.'),
  route(
    'GET',
    '/topics/:name',
    describeTopic,
    'describe topic',
    'Partitions, offsets, sizes and configuration of a topic.'
  ),
  route('DELETE', '/topics/:name', deleteTopic, 'delete topic', 'Delete a topic and its data.'),
  route('GET', '/topics/:name/config', topicConfig, 'read topic config', 'The resolved configuration of a topic.'),
  route(
    'PUT',
    '/topics/:name/config',
    changeTopicConfig,
    'change topic config',
    'Change it; omitted fields keep their value.'
  ),
  route('POST', '/topics/:name/produce', produce, 'produce', 'Append records; answered when they are on disk.'),
  route('GET', '/topics/:name/consume', consume, 'consume', 'Read a partition from an offset.'),
  route(
    'GET',
    '/topics/:name/offsets',
    offsets,
    'list offsets',
    'Where partitions begin and end, and the first record at a time.'
  ),
  route('POST', '/groups/:group/commit', commitOffset, 'use group', 'Record the next offset to read.'),
  route(
    'GET',
    '/groups/:group/offsets',
    groupOffsets,
    'use group',
    'Committed offsets on topics that the key can read.'
  ),
  route(
    'GET',
    '/groups/:group/consume',
    groupConsume,
    'use group',
    'Read a partition from the committed offset; commits nothing.'
  ),
  route('POST', '/groups/:group/join', joinGroup, 'use group', 'Join, and receive partitions.'),
  route('POST', '/groups/:group/heartbeat', heartbeat, 'use group', 'Stay a member; learn about rebalances.'),
  route('POST', '/groups/:group/leave', leaveGroup, 'use group', 'Leave; the group rebalances.'),
  route('GET', '/groups/:group/assignment', groupAssignment, 'use group', "The member's current partitions."),
  route(
    'POST',
    '/groups/:group/reset',
    resetGroup,
    'use group',
    'Commit where a topic begins, ends, or was at a time.'
  ),
  route('GET', '/groups/:group', describeGroup, 'use group', 'Members, generation and lag of a group.'),
  route('DELETE', '/groups/:group', removeGroup, 'use group', 'Forget a group and its offsets.'),
  route('GET', '/groups', listGroups, 'use group', 'The same of all groups that the key owns.'),
  route(
    'POST',
    '/admin/reset-offsets',
    resetOffsets,
    'reset offsets',
    'Move every group on a topic back to its first offset.'
  ),
  route(
    'POST',
    '/topics/:name/delete-records',
    deleteRecords,
    'delete records',
    'Drop the records of a partition below an offset.'
  ),
  route(
    'GET',
    '/admin/producers',
    listProducers,
    'manage producers',
    'Idempotent producers, and what each sent last to which partition.'
  ),
  route(
    'POST',
    '/admin/run-retention',
    runRetention,
    'run cleaning',
    'Drop at once the segments that have had their time.'
  ),
  route(
    'GET',
    '/admin/tiered/:topic/:partition',
    tieredSegments,
    'list cold segments',
    'Base offsets of the segments in cold storage.'
  ),
  route(
    'POST',
    '/admin/run-compaction',
    runCompaction,
    'run cleaning',
    'Compact at once every topic whose policy says so.'
  ),
  route(
    'DELETE',
    '/admin/producers/:id',
    forgetProducer,
    'manage producers',
    'Forget one: its next use starts afresh.'
  ),
  route('POST', '/admin/keys', createKey, 'manage keys', 'Create a key; its secret is told once, here.'),
  route('GET', '/admin/keys', listKeys, 'manage keys', 'List the keys, without secrets, revoked ones too.'),
  route('DELETE', '/admin/keys/:key_id', revokeKey, 'manage keys', 'Revoke a key: it stops working at once.'),
  route(
    'POST',
    '/schemas',
    registerSchema,
    'register schema',
    'Add a version to a subject; it must suit the ones before.'
  ),
  route('GET', '/schemas', listSchemas, 'list schemas', 'All versions of all subjects that the key can read.'),
  route('GET', '/schemas/:schema_id', schemaById, 'read schema', 'The schema that has an id.'),
  route('GET', '/subjects', listSubjects, 'list schemas', 'Names of the subjects that the key can read.'),
  route('GET', '/subjects/:subject/versions', subjectVersions, 'read schema', 'The versions that a subject has.'),
  route(
    'GET',
    '/subjects/:subject/versions/:version',
    subjectVersion,
    'read schema',
    'A version of a subject by its number, or the latest.'
  ),
  route(
    'GET',
    '/subjects/:subject/config',
    subjectCompatibility,
    'read schema',
    'The compatibility mode of a subject; null: the general one.'
  ),
  route('PUT', '/subjects/:subject/config', setSubjectCompatibility, 'manage compatibility', 'Choose it.'),
  route(
    'GET',
    '/admin/schemas/config',
    generalCompatibility,
    'manage compatibility',
    'The compatibility mode of subjects that have none of their own.'
  ),
  route('PUT', '/admin/schemas/config', setGeneralCompatibility, 'manage compatibility', 'Choose it.'),
  route('GET', '/metrics', metrics, 'metrics', 'What the broker counts, in Prometheus text format.'),
  route('GET', '/raft', replication, 'read replication', 'Who has which copies; one broker alone has no others.'),
  route('GET', '/healthz', healthz, 'health', 'The process lives; with the number of topics.'),
  route('GET', '/readyz', readyz, 'health', 'The broker serves requests.')
]
