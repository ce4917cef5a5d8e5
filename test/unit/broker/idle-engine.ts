/** What an engine answers that has nothing and does nothing: the part that stages of the broker share. */
import { submitOutcomes } from '../../../src/model/requests.ts'
import type { Engine } from '../../../src/broker/engine.ts'
import { noEpochs } from '../../../src/model/leader-epochs.ts'
import { unreplicated } from '../../../src/model/replication.ts'

export const idleEngine = {
  appendBatch: () => submitOutcomes.full,
  problems: () => [],
  troubles: () => [],
  progress: () => null,
  openTopic: () => Promise.resolve(),
  configureTopic: () => Promise.resolve(),
  dropTopic: () => Promise.resolve(),
  describeTopic: () => Promise.resolve([]),
  runRetention: () => Promise.resolve(),
  offsetsAt: () => Promise.resolve([]),
  deleteRecords: () => Promise.resolve(0),
  watch: () => ({ cancel: () => undefined }),
  replication: () => unreplicated,
  leaderEpochs: () => noEpochs,
  leaderEpochChanges: 0
} as const satisfies Partial<Engine>
