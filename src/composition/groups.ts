/** Consumer groups as the composition root builds them, and what the clock does to them. Main thread. */
import { randomBytes } from 'node:crypto'
import { systemClock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { Engine } from '../broker/engine.ts'
import { clampToEnds } from '../broker/group-clamp.ts'
import { GroupFlush } from '../broker/group-flush.ts'
import { Groups } from '../broker/groups.ts'
import type { Settings } from '../config/settings.ts'
import type { Catalog } from '../control/catalog.ts'
import { Coordinator } from '../control/groups/coordinator.ts'
import { GroupTable } from '../control/groups/group-table.ts'
import { shardOf } from '../model/ids.ts'
import { limits } from '../model/limits.ts'
import type { Store } from '../store/store.ts'

/** Of a member id that the broker picks: 24 hexadecimal digits. */
const MEMBER_ID_BYTES = 12

export interface GroupComposition {
  readonly groups: Groups
  readonly groupFlush: GroupFlush
  /** For metrics. */
  readonly groupTable: GroupTable
  readonly coordinator: Coordinator
  /** Begins to look for silent members and to write what is committed. The shards must have started. */
  start(): Promise<void>
  /** Ends both, and writes the rest. Nothing may be committed any more. */
  stop(): Promise<void>
}

export interface GroupCompositionParts {
  readonly settings: Settings
  readonly logger: Logger
  readonly store: Store
  readonly catalog: Catalog
  readonly engine: Engine
  readonly shardCount: number
  /** Shards that lost some of their log at their last start, in here until their offsets were looked at. */
  readonly cutShards: Set<number>
}

export function buildGroups(composition: GroupCompositionParts): GroupComposition {
  const { settings, logger, store, catalog, engine } = composition
  const table = new GroupTable(store.image)
  const coordinator = new Coordinator(topic => catalog.topicNamed(topic)?.partitionCount ?? 0)
  const newMemberId = (): string => `m_${randomBytes(MEMBER_ID_BYTES).toString('hex')}`
  const parts = { table, coordinator, catalog, store, engine, clock: systemClock, newMemberId, logger }
  const groups = new Groups(parts)
  const groupFlush = new GroupFlush({ table, store, logger })
  let sweep: NodeJS.Timeout | null = null
  return {
    groups,
    groupFlush,
    groupTable: table,
    coordinator,
    async start() {
      await clampCut(composition, table)
      groupFlush.start()
      sweep = setInterval(() => {
        void groups.evictSilent(settings.coordMemberTimeoutMs)
        void clampCut(composition, table)
      }, limits.memberSweepMs)
      sweep.unref()
    },
    async stop() {
      if (sweep !== null) clearInterval(sweep)
      await groupFlush.stop()
    }
  }
}

/** Looks at the offsets of what was cut, also when a shard starts anew while the broker runs. What fails is tried again. */
async function clampCut(parts: GroupCompositionParts, table: GroupTable): Promise<void> {
  const { cutShards, shardCount, logger } = parts
  if (cutShards.size === 0) return
  const cut = new Set(cutShards)
  try {
    await clampToEnds({ ...parts, table }, ({ firstHandle }, partition) =>
      cut.has(shardOf(firstHandle + partition, shardCount))
    )
    for (const shard of cut) cutShards.delete(shard)
  } catch (error) {
    logger.warn({ err: error }, 'committed offsets of a cut log could not be compared with its end; tried again')
  }
}
