/** The groups of a broker that has none: for tests of what is not about groups. */
import type { ClassicGroupUseCases } from '../../src/model/classic-groups.ts'
import { BrokerError } from '../../src/model/errors.ts'
import type { GroupUseCases } from '../../src/model/groups.ts'

const refused = (): BrokerError => new BrokerError('GROUP_NOT_FOUND', { group: 'none' })

export const noGroups: GroupUseCases = {
  commit: () => Promise.reject(refused()),
  offsets: () => new Map(),
  metadata: () => new Map(),
  positionOf: () => null,
  join: () => Promise.reject(refused()),
  heartbeat: () => ({ status: 'unknown_member', generation: 0 }),
  leave: () => undefined,
  assignment() {
    throw refused()
  },
  attach: () => () => undefined,
  list: () => Promise.resolve([]),
  describe: () => Promise.reject(refused()),
  remove: () => Promise.reject(refused()),
  reset: () => Promise.reject(refused()),
  resetTopic: () => Promise.resolve({ groups: 0, entries: 0 })
}

export const noClassicGroups: ClassicGroupUseCases = {
  join: () => Promise.reject(refused()),
  sync: () => Promise.reject(refused()),
  heartbeat: () => 'UNKNOWN_MEMBER_ID',
  leave: () => [],
  commit: () => Promise.reject(refused()),
  deleteOffsets: () => Promise.reject(refused()),
  offsets: () => [],
  list: () => [],
  describe: () => null
}
