/**
 * The rows of the table of settings that say how records are kept: segments and their upkeep, the journal, cold
 * storage. Data only; main thread and CLI. schema.ts puts the table together.
 */
import { bytes, duration, integer, optional, text, toggle } from './kinds.ts'
import { DAY_MS, GIB, HOUR_MS, MIB, SECOND_MS, TIB, type Schema } from './setting-spec.ts'

/** Partitions, segments, retention and compaction. */
export const logSettings = {
  shards: {
    flag: '--shards',
    group: 'The log',
    kind: optional(integer({ min: 1, max: 1023 }, 'threads'), 'auto'),
    fallback: null,
    text:
      'Threads that own the partitions; auto is what the data directory has, or one per core less one; ' +
      'another number changes it at the start'
  },
  segmentBytes: {
    flag: '--segment-bytes',
    group: 'The log',
    kind: bytes({ min: 128, max: TIB }),
    fallback: 64 * MIB,
    text: 'Size at which a segment of a topic ends, for topics that do not say it themselves'
  },
  segmentMs: {
    flag: '--segment-ms',
    group: 'The log',
    kind: duration({ min: 100, max: 3_650 * DAY_MS }),
    fallback: 7 * DAY_MS,
    text: 'Age at which a segment ends even if it is small, so that quiet topics age out too'
  },
  flushEveryRecords: {
    flag: '--flush-every-records',
    group: 'The log',
    kind: integer({ min: 1, max: 1_000_000 }, 'records'),
    fallback: 1,
    text: 'Sync to disk once that many records of a shard wait; 1 answers a produce only after its sync'
  },
  flushIntervalMs: {
    flag: '--flush-interval',
    group: 'The log',
    kind: duration({ min: 1, max: HOUR_MS }),
    fallback: SECOND_MS,
    text: 'Longest wait for that sync; matters only when --flush-every-records is above 1'
  },
  retentionCheckIntervalMs: {
    flag: '--retention-check-interval',
    group: 'The log',
    kind: duration({ min: 10, max: 365 * DAY_MS }),
    fallback: 30 * SECOND_MS,
    text: 'Time between two retention passes'
  },
  compactionCheckIntervalMs: {
    flag: '--compaction-check-interval',
    group: 'The log',
    kind: duration({ min: 10, max: 365 * DAY_MS }),
    fallback: 60 * SECOND_MS,
    text: 'Time between two compaction passes'
  },
  segmentDeleteGraceMs: {
    flag: '--segment-delete-grace',
    group: 'The log',
    kind: duration({ min: 0, max: 365 * DAY_MS }),
    fallback: 60 * SECOND_MS,
    text: 'Time between dropping a segment and removing its files'
  },
  defaultTombstoneRetentionMs: {
    flag: '--default-tombstone-retention-ms',
    group: 'The log',
    kind: integer({ min: 0, max: Number.MAX_SAFE_INTEGER }, 'ms'),
    fallback: DAY_MS,
    text: 'How long compaction keeps a tombstone, for topics that do not say it themselves'
  },
  diskReserveBytes: {
    flag: '--disk-reserve-bytes',
    group: 'The log',
    kind: optional(bytes({ min: 0, max: TIB }), 'auto'),
    fallback: null,
    text: 'Free space below which produce gets 507 while all else goes on; auto is the journal budget and one segment'
  }
} as const satisfies Partial<Schema>

/** Where records are written first, and when they are settled into segment files. */
export const journalSettings = {
  journalSlotBytes: {
    flag: '--journal-slot-bytes',
    group: 'The journal',
    kind: bytes({ min: 64 * MIB, max: GIB }),
    fallback: 128 * MIB,
    text: 'Size of one journal slot'
  },
  journalFirstSlotBytes: {
    flag: '--journal-first-slot-bytes',
    group: 'The journal',
    kind: bytes({ min: MIB, max: GIB }),
    fallback: 8 * MIB,
    text: 'Size of the first slot of a new shard: it is filled before the broker listens, so it is small'
  },
  journalFillAheadBytes: {
    flag: '--journal-fill-ahead-bytes',
    group: 'The journal',
    kind: bytes({ min: 0, max: 16 * GIB }),
    fallback: 256 * MIB,
    text: 'Slots filled with zeros ahead of the writer, per shard: writing into them is fastest'
  },
  journalBudgetBytes: {
    flag: '--journal-budget-bytes',
    group: 'The journal',
    kind: optional(bytes({ min: 256 * MIB, max: TIB }), 'auto'),
    fallback: null,
    text:
      'Journal over all shards before produce is slowed to the speed of settling, at least four slots a shard; ' +
      'auto is the least of 3 GiB, an eighth of the memory and 5 % of the disk'
  },
  settleIdleMs: {
    flag: '--settle-idle',
    group: 'The journal',
    kind: duration({ min: 10, max: 365 * DAY_MS }),
    fallback: 60 * SECOND_MS,
    text: 'A shard that wrote nothing for that long has its sealed slots settled'
  },
  settleAgeMs: {
    flag: '--settle-age',
    group: 'The journal',
    kind: duration({ min: 10, max: 365 * DAY_MS }),
    fallback: 600 * SECOND_MS,
    text: 'A sealed slot is settled after that long at the latest'
  }
} as const satisfies Partial<Schema>

/** Where sealed segments may be moved to. */
export const coldStorageSettings = {
  coldStorageDir: {
    flag: '--cold-storage-dir',
    group: 'Cold storage',
    kind: optional(text('<path>', 'a directory; not together with --cold-storage'), 'none'),
    fallback: null,
    text: 'Directory that segments are moved to when they have had their time, instead of being dropped'
  },
  coldStorage: {
    flag: '--cold-storage',
    group: 'Cold storage',
    kind: optional(text('<s3://bucket/prefix>', 's3://bucket/prefix; not together with --cold-storage-dir'), 'none'),
    fallback: null,
    text: 'S3-compatible bucket that segments are moved to when they have had their time, instead of being dropped'
  },
  coldStorageEndpoint: {
    flag: '--cold-storage-endpoint',
    group: 'Cold storage',
    kind: optional(text('<url>', 'an http or https address; together with --cold-storage'), 'none'),
    fallback: null,
    text: 'Address of the bucket service; none is the one that AWS has for the region'
  },
  coldStorageRegion: {
    flag: '--cold-storage-region',
    group: 'Cold storage',
    kind: text('<region>', 'the name of a region'),
    fallback: 'us-east-1',
    text: 'Region of the bucket'
  },
  coldStoragePathStyle: {
    flag: '--cold-storage-path-style',
    group: 'Cold storage',
    kind: toggle(),
    fallback: false,
    text: 'Name the bucket in the path instead of the host name, as most services other than AWS want it'
  },
  coldCacheBytes: {
    flag: '--cold-cache-bytes',
    group: 'Cold storage',
    kind: bytes({ min: MIB, max: TIB }),
    fallback: GIB,
    text: 'Local disk that copies of cold segments may take while they are read'
  }
} as const satisfies Partial<Schema>
