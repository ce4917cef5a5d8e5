/** The use cases of groups, of both kinds, over a store that can be held up, an engine without records, and a clock that is moved. */
import { silentLogger } from '../../../src/base/logger.ts'
import { ClassicGroups } from '../../../src/broker/classic-groups.ts'
import type { Engine, EngineRead } from '../../../src/broker/engine.ts'
import { GroupFlush } from '../../../src/broker/group-flush.ts'
import { GroupOwnership } from '../../../src/broker/group-ownership.ts'
import { Groups } from '../../../src/broker/groups.ts'
import { Catalog } from '../../../src/control/catalog.ts'
import { ClassicTable } from '../../../src/control/groups/classic/classic-table.ts'
import { Coordinator } from '../../../src/control/groups/coordinator.ts'
import { GroupTable } from '../../../src/control/groups/group-table.ts'
import type { StoreChange } from '../../../src/control/store-image.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import type { Principal } from '../../../src/model/principal.ts'
import { submitOutcomes, type ReadCaller } from '../../../src/model/requests.ts'
import { create, emptyImage } from '../control/topics.ts'

/** A key that may read topics whose names begin so. */
export function keyOf(keyId: string, prefix = '', rest: Partial<Principal> = {}): Principal {
  const mayRead = (name: string): boolean => name.startsWith(prefix)
  return { keyId, isRevoked: false, isAdmin: false, mayRead, mayWrite: mayRead, ...rest }
}

export const mine = keyOf('key_mine')
export const theirs = keyOf('key_theirs')
export const admin = keyOf('key_admin', '', { isAdmin: true })

export function stage() {
  const catalog = new Catalog(emptyImage)
  const orders = create(catalog, 'orders', 4)
  create(catalog, 'secret', 2)
  const table = new GroupTable(emptyImage)
  const coordinator = new Coordinator(topic => catalog.topicNamed(topic)?.partitionCount ?? 0)
  const commits: StoreChange[] = []
  /** While set, commits wait for it; it may reject. */
  const store = {
    image: emptyImage,
    gate: null as Promise<void> | null,
    async commit(changes: readonly StoreChange[]) {
      commits.push(...changes)
      await this.gate
    },
    close: () => Promise.resolve()
  }
  let ends = 10
  // The calls that groups make of an engine. No record can be read.
  const engine = {
    read(_: EngineRead, caller: ReadCaller) {
      queueMicrotask(() => caller.onReadFailed(new BrokerError('SHARD_DOWN', { shard: 0 })))
      return submitOutcomes.taken
    },
    publishSoon: () => undefined,
    offsetsAt: (topic: { partitionCount: number }) =>
      Promise.resolve(
        Array.from({ length: topic.partitionCount }, (_, partition) => ({
          partition,
          earliest: 2,
          latest: ends,
          found: null
        }))
      )
  } as unknown as Engine
  let nowMs = 0
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
  let members = 0
  const logs: object[] = []
  const logger = { ...silentLogger, warn: (fields: object) => logs.push(fields) }
  const classic = new ClassicTable(prefix => `${prefix}-${members++}`)
  const ownership = new GroupOwnership({ table, store })
  const newMemberId = (): string => `m_${members++}`
  const parts = { table, ownership, coordinator, classic, catalog, store, engine, clock, newMemberId, logger }
  const flush = new GroupFlush({ table, store, logger })
  return {
    catalog,
    orders,
    table,
    coordinator,
    store,
    commits,
    logs,
    parts,
    groups: new Groups(parts),
    flush,
    classicGroups: new ClassicGroups({ ...parts, flush }),
    setEnds: (offset: number) => (ends = offset),
    passTime: (ms: number) => (nowMs += ms)
  }
}
