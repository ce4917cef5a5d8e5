/**
 * The resolved configuration: what every part of the daemon is built from. schema.ts gives each field its flag,
 * default, range, unit and text; this is only the shape. Bytes are bytes, times are milliseconds.
 */
export interface Settings {
  // Where and how to listen
  readonly dataDir: string
  readonly bind: string
  /** null: no ES01 listener. */
  readonly bindBinary: string | null
  /** Listeners of the Kafka protocol (config/kafka-listeners.ts); empty: none. */
  readonly bindKafka: readonly string[]
  readonly auth: 'disabled' | 'required'
  readonly allowRemoteUnauthenticated: boolean
  readonly allowedHost: readonly string[]
  readonly tlsCert: string | null
  readonly tlsKey: string | null
  readonly corsOrigin: readonly string[]
  /** auto: uWebSockets.js where it loads, node:http elsewhere. */
  readonly httpEngine: 'auto' | 'uws' | 'node'

  // The log
  /** null: what the data directory was made with, or one per available core less one. */
  readonly shards: number | null
  readonly segmentBytes: number
  /** A segment ends at this age even if it is small. */
  readonly segmentMs: number
  readonly flushEveryRecords: number
  readonly flushIntervalMs: number
  readonly retentionCheckIntervalMs: number
  readonly compactionCheckIntervalMs: number
  readonly segmentDeleteGraceMs: number
  readonly defaultTombstoneRetentionMs: number
  /** Free space below which produce is refused. null: what reserveBytes of auto-sizes.ts gives. */
  readonly diskReserveBytes: number | null

  // The journal
  readonly journalSlotBytes: number
  readonly journalFirstSlotBytes: number
  /** Bytes of zero-filled slots kept ready ahead of the writer, per shard. */
  readonly journalFillAheadBytes: number
  /** Bytes of journal over all shards before produce is slowed. null: what budgetBytes of auto-sizes.ts gives. */
  readonly journalBudgetBytes: number | null
  readonly settleIdleMs: number
  readonly settleAgeMs: number

  // Cold storage
  readonly coldStorageDir: string | null
  /** `s3://bucket/prefix` as written. */
  readonly coldStorage: string | null
  readonly coldStorageEndpoint: string | null
  readonly coldStorageRegion: string
  readonly coldStoragePathStyle: boolean
  readonly coldCacheBytes: number

  // Limits
  readonly maxRequestBodyBytes: number
  readonly maxRecordBytes: number
  readonly maxFetchBytes: number
  readonly maxFetchRecords: number
  readonly binaryMaxConnectionsPerIp: number
  readonly binaryIdleTimeoutMs: number
  readonly autoCreateTopics: boolean
  readonly shutdownTimeoutMs: number
  /** HTTP connections at once. null: what httpConnectionsMax of auto-sizes.ts gives. */
  readonly httpMaxConnections: number | null
  readonly coordMemberTimeoutMs: number
  /** Data files open at once, over all shards. null: what openFilesMax of auto-sizes.ts gives. */
  readonly maxOpenFiles: number | null

  // Memory (the budget table)
  readonly requestRingBytes: number
  readonly readRingBytes: number
  readonly replyRingBytes: number
  readonly encodeBufferBytes: number
  /** All request bytes held on the main thread: bodies and frames not yet in a ring. */
  readonly requestMemoryBytes: number
  /** All reply bytes reserved for requests in progress. */
  readonly replyMemoryBytes: number
  /** Table of keys of one compaction. */
  readonly compactionMemoryBytes: number

  // Raft of the seed: named, refused
  readonly raftNodeId: number | null
  readonly raftBind: string | null
  readonly raftPeer: readonly string[]
  readonly raftSharedSecret: string | null

  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
}
