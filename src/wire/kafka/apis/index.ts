/** All APIs of the Kafka protocol that are known here, by name and by key. Any thread. */
import type { AnyApi } from '../message.ts'
import { alterConfigs, incrementalAlterConfigs } from './alter-configs.ts'
import { apiVersions } from './api-versions.ts'
import { createPartitions } from './create-partitions.ts'
import { createTopics } from './create-topics.ts'
import { deleteGroups } from './delete-groups.ts'
import { deleteRecords } from './delete-records.ts'
import { deleteTopics } from './delete-topics.ts'
import { describeCluster } from './describe-cluster.ts'
import { describeConfigs } from './describe-configs.ts'
import { describeGroups } from './describe-groups.ts'
import { fetch } from './fetch.ts'
import { findCoordinator } from './find-coordinator.ts'
import { heartbeat } from './heartbeat.ts'
import { initProducerId } from './init-producer-id.ts'
import { joinGroup } from './join-group.ts'
import { leaveGroup } from './leave-group.ts'
import { listGroups } from './list-groups.ts'
import { listOffsets } from './list-offsets.ts'
import { metadata } from './metadata.ts'
import { offsetCommit } from './offset-commit.ts'
import { offsetDelete } from './offset-delete.ts'
import { offsetFetch } from './offset-fetch.ts'
import { offsetForLeaderEpoch } from './offset-for-leader-epoch.ts'
import { produce } from './produce.ts'
import { saslAuthenticate } from './sasl-authenticate.ts'
import { saslHandshake } from './sasl-handshake.ts'
import { syncGroup } from './sync-group.ts'

/** In the order of their keys. */
export const apis = {
  produce,
  fetch,
  listOffsets,
  metadata,
  offsetCommit,
  offsetFetch,
  findCoordinator,
  joinGroup,
  heartbeat,
  leaveGroup,
  syncGroup,
  describeGroups,
  listGroups,
  saslHandshake,
  apiVersions,
  createTopics,
  deleteTopics,
  deleteRecords,
  initProducerId,
  offsetForLeaderEpoch,
  describeConfigs,
  alterConfigs,
  saslAuthenticate,
  createPartitions,
  deleteGroups,
  incrementalAlterConfigs,
  offsetDelete,
  describeCluster
}

const byKey: ReadonlyMap<number, AnyApi> = new Map(Object.values<AnyApi>(apis).map(api => [api.key, api]))

/** @returns the API of that key, or undefined: none that is known here. */
export function apiOfKey(key: number): AnyApi | undefined {
  return byKey.get(key)
}
