/**
 * The one table of HTTP routes. Both engines, the documentation and its test read it. Main thread.
 */
import {
  forgetProducer,
  listProducers,
  replication,
  runCompaction,
  runRetention,
  tieredSegments
} from './admin-routes.ts'
import { consume } from './reads/consume-exchange.ts'
import { confluentRoutes } from './confluent/table.ts'
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
import { openApi } from './openapi-route.ts'
import { adminDocs } from './openapi/admin-docs.ts'
import { groupDocs } from './openapi/group-docs.ts'
import { healthDocs } from './openapi/health-docs.ts'
import { recordDocs } from './openapi/record-docs.ts'
import { schemaDocs } from './openapi/schema-docs.ts'
import { topicDocs } from './openapi/topic-docs.ts'
import { produce } from './produce/produce-exchange.ts'
import { route, streamRoute, type Route } from './route.ts'
import { streamGroup } from './streams/group-stream.ts'
import { streamTopic } from './streams/topic-stream.ts'
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
} from './schemas/schema-routes.ts'
import {
  addPartitions,
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

export const routes: readonly Route[] = [
  route('POST', '/topics', createTopic, 'create topic', topicDocs.create),
  route('GET', '/topics', listTopics, 'list topics', topicDocs.list),
  route('GET', '/topics/:name', describeTopic, 'describe topic', topicDocs.describe),
  route('DELETE', '/topics/:name', deleteTopic, 'delete topic', topicDocs.delete),
  route('GET', '/topics/:name/config', topicConfig, 'read topic config', topicDocs.config),
  route('PUT', '/topics/:name/config', changeTopicConfig, 'change topic config', topicDocs.changeConfig),
  route('POST', '/topics/:name/partitions', addPartitions, 'add partitions', topicDocs.addPartitions),
  route('POST', '/topics/:name/produce', produce, 'produce', recordDocs.produce),
  route('GET', '/topics/:name/consume', consume, 'consume', recordDocs.consume),
  streamRoute('/topics/:name/stream', streamTopic, 'consume', recordDocs.stream),
  route('GET', '/topics/:name/offsets', offsets, 'list offsets', recordDocs.offsets),
  route('POST', '/groups/:group/commit', commitOffset, 'use group', groupDocs.commit),
  route('GET', '/groups/:group/offsets', groupOffsets, 'use group', groupDocs.offsets),
  route('GET', '/groups/:group/consume', groupConsume, 'use group', groupDocs.consume),
  route('POST', '/groups/:group/join', joinGroup, 'use group', groupDocs.join),
  route('POST', '/groups/:group/heartbeat', heartbeat, 'use group', groupDocs.heartbeat),
  route('POST', '/groups/:group/leave', leaveGroup, 'use group', groupDocs.leave),
  route('GET', '/groups/:group/assignment', groupAssignment, 'use group', groupDocs.assignment),
  streamRoute('/groups/:group/stream', streamGroup, 'use group', groupDocs.stream),
  route('POST', '/groups/:group/reset', resetGroup, 'use group', groupDocs.reset),
  route('GET', '/groups/:group', describeGroup, 'use group', groupDocs.describe),
  route('DELETE', '/groups/:group', removeGroup, 'use group', groupDocs.remove),
  route('GET', '/groups', listGroups, 'use group', groupDocs.list),
  route('POST', '/admin/reset-offsets', resetOffsets, 'reset offsets', groupDocs.resetTopic),
  route('POST', '/topics/:name/delete-records', deleteRecords, 'delete records', topicDocs.deleteRecords),
  route('GET', '/admin/producers', listProducers, 'manage producers', adminDocs.listProducers),
  route('POST', '/admin/run-retention', runRetention, 'run cleaning', adminDocs.runRetention),
  route('GET', '/admin/tiered/:topic/:partition', tieredSegments, 'list cold segments', adminDocs.tieredSegments),
  route('POST', '/admin/run-compaction', runCompaction, 'run cleaning', adminDocs.runCompaction),
  route('DELETE', '/admin/producers/:id', forgetProducer, 'manage producers', adminDocs.forgetProducer),
  route('POST', '/admin/keys', createKey, 'manage keys', adminDocs.createKey),
  route('GET', '/admin/keys', listKeys, 'manage keys', adminDocs.listKeys),
  route('DELETE', '/admin/keys/:key_id', revokeKey, 'manage keys', adminDocs.revokeKey),
  route('POST', '/schemas', registerSchema, 'register schema', schemaDocs.register),
  route('GET', '/schemas', listSchemas, 'list schemas', schemaDocs.list),
  route('GET', '/schemas/:schema_id', schemaById, 'read schema', schemaDocs.byId),
  route('GET', '/subjects', listSubjects, 'list schemas', schemaDocs.subjects),
  route('GET', '/subjects/:subject/versions', subjectVersions, 'read schema', schemaDocs.versions),
  route('GET', '/subjects/:subject/versions/:version', subjectVersion, 'read schema', schemaDocs.version),
  route('GET', '/subjects/:subject/config', subjectCompatibility, 'read schema', schemaDocs.mode),
  route('PUT', '/subjects/:subject/config', setSubjectCompatibility, 'manage compatibility', schemaDocs.setMode),
  route('GET', '/admin/schemas/config', generalCompatibility, 'manage compatibility', schemaDocs.generalMode),
  route('PUT', '/admin/schemas/config', setGeneralCompatibility, 'manage compatibility', schemaDocs.setGeneralMode),
  ...confluentRoutes,
  route('GET', '/metrics', metrics, 'metrics', healthDocs.metrics),
  route('GET', '/raft', replication, 'read replication', adminDocs.replication),
  route('GET', '/healthz', healthz, 'health', healthDocs.healthz),
  route('GET', '/readyz', readyz, 'health', healthDocs.readyz),
  route('GET', '/openapi.json', openApi, 'describe api', healthDocs.openApi)
]
