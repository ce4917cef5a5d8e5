/**
 * The APIs that this listener has: one row each. What is advertised to clients is this table, with the versions that the
 * codec of each API has. Main thread.
 */
import type { KafkaHandler } from './handler.ts'
import { alterConfigsHandler, incrementalAlterConfigsHandler } from './handlers/alter-configs.ts'
import { apiVersionsHandler } from './handlers/api-versions.ts'
import { createPartitionsHandler } from './handlers/create-partitions.ts'
import { createTopicsHandler } from './handlers/create-topics.ts'
import { deleteGroupsHandler } from './handlers/delete-groups.ts'
import { deleteRecordsHandler } from './handlers/delete-records.ts'
import { deleteTopicsHandler } from './handlers/delete-topics.ts'
import { describeClusterHandler } from './handlers/describe-cluster.ts'
import { describeConfigsHandler } from './handlers/describe-configs.ts'
import { describeGroupsHandler } from './handlers/describe-groups.ts'
import { fetchHandler } from './handlers/fetch.ts'
import { findCoordinatorHandler } from './handlers/find-coordinator.ts'
import { heartbeatHandler } from './handlers/heartbeat.ts'
import { initProducerIdHandler } from './handlers/init-producer-id.ts'
import { joinGroupHandler } from './handlers/join-group.ts'
import { leaveGroupHandler } from './handlers/leave-group.ts'
import { listGroupsHandler } from './handlers/list-groups.ts'
import { listOffsetsHandler } from './handlers/list-offsets.ts'
import { metadataHandler } from './handlers/metadata.ts'
import { offsetCommitHandler } from './handlers/offset-commit.ts'
import { offsetDeleteHandler } from './handlers/offset-delete.ts'
import { offsetFetchHandler } from './handlers/offset-fetch.ts'
import { offsetForLeaderEpochHandler } from './handlers/offset-for-leader-epoch.ts'
import { produceHandler } from './handlers/produce.ts'
import { saslAuthenticateHandler } from './handlers/sasl-authenticate.ts'
import { saslHandshakeHandler } from './handlers/sasl-handshake.ts'
import { syncGroupHandler } from './handlers/sync-group.ts'

/** In the order of their keys. */
const rows: readonly KafkaHandler[] = [
  produceHandler,
  fetchHandler,
  listOffsetsHandler,
  metadataHandler,
  offsetCommitHandler,
  offsetFetchHandler,
  findCoordinatorHandler,
  joinGroupHandler,
  heartbeatHandler,
  leaveGroupHandler,
  syncGroupHandler,
  describeGroupsHandler,
  listGroupsHandler,
  saslHandshakeHandler,
  apiVersionsHandler,
  createTopicsHandler,
  deleteTopicsHandler,
  deleteRecordsHandler,
  initProducerIdHandler,
  offsetForLeaderEpochHandler,
  describeConfigsHandler,
  alterConfigsHandler,
  saslAuthenticateHandler,
  createPartitionsHandler,
  deleteGroupsHandler,
  incrementalAlterConfigsHandler,
  offsetDeleteHandler,
  describeClusterHandler
]

/** By key of their API. */
export const kafkaHandlers: ReadonlyMap<number, KafkaHandler> = new Map(rows.map(row => [row.api.key, row]))
