/** Consumer groups as the composition root builds them, and what the clock does to them. Main thread. */
import { randomBytes } from 'node:crypto'
import { systemClock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { Engine } from '../broker/engine.ts'
import { ClassicGroups } from '../broker/classic-groups.ts'
import { clampToEnds } from '../broker/group-clamp.ts'
import { GroupFlush } from '../broker/group-flush.ts'
import { GroupOwnership } from '../broker/group-ownership.ts'
import { Groups } from '../broker/groups.ts'
import type { Settings } from '../config/settings.ts'
import type { Catalog } from '../control/catalog.ts'
import { ClassicTable } from '../control/groups/classic/classic-table.ts'
import { Coordinator } from '../control/groups/coordinator.ts'
import { GroupTable } from '../control/groups/group-table.ts'
import { handleOf } from '../model/handles.ts'
import { shardOf } from '../model/ids.ts'
import { limits } from '../model/limits.ts'
import type { Store } from '../store/store.ts'

/** Of what nobody can guess of a member id: 24 hexadecimal digits. */
const MEMBER_ID_BYTES = 12

export interface GroupComposition {
  readonly groups: Groups
  readonly classicGroups: ClassicGroups
  readonly groupFlush: GroupFlush
  /** For metrics. */
  readonly groupTable: GroupTable
  readonly coordinator: Coordinator
  readonly classic: ClassicTable
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
  const randomId = (): string => randomBytes(MEMBER_ID_BYTES).toString('hex')
  const classic = new ClassicTable(prefix => `${prefix.slice(0, limits.nameBytesMax)}-${randomId()}`)
  const ownership = new GroupOwnership({ table, store })
  const groupFlush = new GroupFlush({ table, store, logger })
  const shared = { table, ownership, coordinator, classic, catalog, clock: systemClock, logger }
  const groups = new Groups({ ...shared, store, engine, newMemberId: () => `m_${randomId()}` })
  const classicGroups = new ClassicGroups({ ...shared, store, flush: groupFlush })
  let sweep: NodeJS.Timeout | null = null
  return {
    groups,
    classicGroups,
    groupFlush,
    groupTable: table,
    coordinator,
    classic,
    async start() {
      await clampCut(composition, table)
      groupFlush.start()
      sweep = setInterval(() => {
        void groups.evictSilent(settings.coordMemberTimeoutMs)
        void classicGroups.expireSilent()
        void clampCut(composition, table)
      }, limits.memberSweepMs)
      sweep.unref()
    },
    async stop() {
      if (sweep !== null) clearInterval(sweep)
      classicGroups.stop()
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
    await clampToEnds({ ...parts, table }, (topic, partition) =>
      cut.has(shardOf(handleOf(topic, partition), shardCount))
    )
    for (const shard of cut) cutShards.delete(shard)
  } catch (error) {
    logger.warn({ err: error }, 'committed offsets of a cut log could not be compared with its end; tried again')
  }
}
