/**
 * THE table of settings: flag, environment variable, TOML key, kind, default, range, unit and text of each field of
 * Settings. Everything that names a setting is made from it: parsing, --help, `config explain`; the shipped
 * config/millrace.toml and docs/configuration.md are tested against it. Data only; main thread and CLI.
 */
import { address, bytes, choice, duration, integer, list, optional, text, toggle, type Kind } from './kinds.ts'
import type { Settings } from './settings.ts'

const KIB = 1024
const MIB = 1024 * KIB
const GIB = 1024 * MIB
const SECOND_MS = 1_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export const settingGroups = ['Listening and access', 'The log', 'Limits', 'Memory', 'Cluster', 'Logging'] as const
export type SettingGroup = (typeof settingGroups)[number]

export interface SettingSpec<T> {
  /** `--data-dir`. The environment variable and the TOML key follow from it: MILLRACE_DATA_DIR, data_dir. */
  readonly flag: string
  readonly group: SettingGroup
  readonly kind: Kind<T>
  readonly fallback: T
  /** What it does, for --help, the shipped file and the documentation: no full stop, one line. */
  readonly text: string
  /** The feature comes later: any value but the default refuses at start, because silence would mislead. */
  readonly later?: true
  /** Never shown, not even in a fault. */
  readonly isSecret?: true
  /** One more environment variable, read when the first is not set. */
  readonly extraEnv?: string
}

export type SettingField = keyof Settings
type Schema = { readonly [Field in SettingField]: SettingSpec<Settings[Field]> }

const listening = {
  dataDir: {
    flag: '--data-dir',
    group: 'Listening and access',
    kind: text('<path>', 'a directory; relative to the working directory'),
    fallback: './data',
    text: 'Where logs and catalog are kept; made if missing, locked while in use'
  },
  bind: {
    flag: '--bind',
    group: 'Listening and access',
    kind: address(),
    fallback: '127.0.0.1:9000',
    text: 'Address of the HTTP listener'
  },
  bindBinary: {
    flag: '--bind-binary',
    group: 'Listening and access',
    kind: optional(address(), 'off'),
    fallback: null,
    text: 'Address of the listener of the binary protocol (ES01)'
  },
  auth: {
    flag: '--auth',
    group: 'Listening and access',
    kind: choice(['disabled', 'required']),
    fallback: 'disabled',
    text: 'Whether every request needs an API key',
    later: true
  },
  allowRemoteUnauthenticated: {
    flag: '--allow-remote-unauthenticated',
    group: 'Listening and access',
    kind: toggle(),
    fallback: false,
    text: 'Serve other machines without authentication; without it a broker with auth disabled binds loopback only'
  },
  allowedHost: {
    flag: '--allowed-host',
    group: 'Listening and access',
    kind: list('<host>', 'a host name without port'),
    fallback: [],
    text: 'Further Host header served while auth is disabled'
  },
  tlsCert: {
    flag: '--tls-cert',
    group: 'Listening and access',
    kind: optional(text('<path>', 'a PEM file; together with --tls-key'), 'none'),
    fallback: null,
    text: 'Certificate chain for HTTPS and for TLS on the binary listener',
    later: true
  },
  tlsKey: {
    flag: '--tls-key',
    group: 'Listening and access',
    kind: optional(text('<path>', 'a PEM file; together with --tls-cert'), 'none'),
    fallback: null,
    text: 'Private key that belongs to the certificate',
    later: true
  },
  corsOrigin: {
    flag: '--cors-origin',
    group: 'Listening and access',
    kind: list('<origin>', 'an origin such as https://app.example'),
    fallback: [],
    text: 'Origin whose pages may call the HTTP API',
    later: true
  },
  httpEngine: {
    flag: '--http-engine',
    group: 'Listening and access',
    kind: choice(['auto', 'uws', 'node']),
    fallback: 'auto',
    text: 'HTTP server: uWebSockets.js (uws), node:http (node), or the first where it loads (auto)'
  }
} as const satisfies Partial<Schema>

const log = {
  shards: {
    flag: '--shards',
    group: 'The log',
    kind: optional(integer({ min: 1, max: 1023 }, 'threads'), 'auto'),
    fallback: null,
    text: 'Threads that own the partitions; auto is what the data directory was made with, or one per core less one'
  },
  segmentBytes: {
    flag: '--segment-bytes',
    group: 'The log',
    kind: bytes({ min: 128, max: 2 ** 40 }),
    fallback: 64 * MIB,
    text: 'Size at which a segment of a topic ends, for topics that do not say it themselves'
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
    text: 'Time between two retention passes',
    later: true
  },
  compactionCheckIntervalMs: {
    flag: '--compaction-check-interval',
    group: 'The log',
    kind: duration({ min: 10, max: 365 * DAY_MS }),
    fallback: 60 * SECOND_MS,
    text: 'Time between two compaction passes',
    later: true
  },
  segmentDeleteGraceMs: {
    flag: '--segment-delete-grace',
    group: 'The log',
    kind: duration({ min: 0, max: 365 * DAY_MS }),
    fallback: 60 * SECOND_MS,
    text: 'Time between dropping a segment and removing its files',
    later: true
  },
  defaultTombstoneRetentionMs: {
    flag: '--default-tombstone-retention-ms',
    group: 'The log',
    kind: integer({ min: 0, max: Number.MAX_SAFE_INTEGER }, 'ms'),
    fallback: DAY_MS,
    text: 'How long compaction keeps a tombstone, for topics that do not say it themselves'
  },
  coldStorageDir: {
    flag: '--cold-storage-dir',
    group: 'The log',
    kind: optional(text('<path>', 'a directory'), 'none'),
    fallback: null,
    text: 'Where sealed segments are moved to',
    later: true
  },
  journalSlotBytes: {
    flag: '--journal-slot-bytes',
    group: 'The log',
    kind: bytes({ min: 64 * MIB, max: GIB }),
    fallback: 128 * MIB,
    text: 'Size of one journal slot'
  },
  journalFirstSlotBytes: {
    flag: '--journal-first-slot-bytes',
    group: 'The log',
    kind: bytes({ min: MIB, max: GIB }),
    fallback: 8 * MIB,
    text: 'Size of the first slot of a new shard: it is filled before the broker listens, so it is small'
  },
  journalFillAheadBytes: {
    flag: '--journal-fill-ahead-bytes',
    group: 'The log',
    kind: bytes({ min: 0, max: 16 * GIB }),
    fallback: 256 * MIB,
    text: 'Slots filled with zeros ahead of the writer, per shard: writing into them is fastest'
  }
} as const satisfies Partial<Schema>

const limit = {
  maxRequestBodyBytes: {
    flag: '--max-request-body-bytes',
    group: 'Limits',
    kind: bytes({ min: KIB, max: 64 * MIB }),
    fallback: 10 * MIB,
    text: 'Largest HTTP request body'
  },
  maxRecordBytes: {
    flag: '--max-record-bytes',
    group: 'Limits',
    kind: bytes({ min: 1, max: 32 * MIB }),
    fallback: 8 * MIB,
    text: 'Largest record: bytes of key and value together'
  },
  maxFetchBytes: {
    flag: '--max-fetch-bytes',
    group: 'Limits',
    kind: bytes({ min: 1, max: 32 * MIB }),
    fallback: 8 * MIB,
    text: 'Ceiling of max_bytes of a consume; one record is always returned'
  },
  maxFetchRecords: {
    flag: '--max-fetch-records',
    group: 'Limits',
    kind: integer({ min: 1, max: 1_000_000, raisedTo: 1 }, 'records'),
    fallback: 10_000,
    text: 'Ceiling of max_records of a consume'
  },
  binaryMaxConnectionsPerIp: {
    flag: '--binary-max-connections-per-ip',
    group: 'Limits',
    kind: integer({ min: 1, max: 65_535, raisedTo: 1 }, 'connections'),
    fallback: 256,
    text: 'Connections of the binary protocol that one client address may hold'
  },
  binaryIdleTimeoutMs: {
    flag: '--binary-idle-timeout',
    group: 'Limits',
    kind: duration({ min: 10, max: 20 * DAY_MS }),
    fallback: 600 * SECOND_MS,
    text: 'A binary connection that sends nothing for that long is closed'
  },
  shutdownTimeoutMs: {
    flag: '--shutdown-timeout',
    group: 'Limits',
    kind: duration({ min: 10, max: HOUR_MS }),
    fallback: 30 * SECOND_MS,
    text: 'Longest time from SIGTERM or SIGINT to the end of the process'
  }
} as const satisfies Partial<Schema>

const memory = {
  requestRingBytes: {
    flag: '--request-ring-bytes',
    group: 'Memory',
    kind: bytes({ min: MIB, max: 256 * MIB, isPowerOfTwo: true }),
    fallback: 8 * MIB,
    text: 'Ring of produce requests to one shard'
  },
  readRingBytes: {
    flag: '--read-ring-bytes',
    group: 'Memory',
    kind: bytes({ min: 64 * KIB, max: 64 * MIB, isPowerOfTwo: true }),
    fallback: 256 * KIB,
    text: 'Ring of read requests to one shard'
  },
  replyRingBytes: {
    flag: '--reply-ring-bytes',
    group: 'Memory',
    // A quarter of it, the largest frame, must hold the results of the largest request.
    kind: bytes({ min: 8 * MIB, max: 256 * MIB, isPowerOfTwo: true }),
    fallback: 8 * MIB,
    text: 'Ring of answers from one shard'
  },
  encodeBufferBytes: {
    flag: '--encode-buffer-bytes',
    group: 'Memory',
    kind: bytes({ min: 8 * MIB, max: GIB }),
    fallback: 32 * MIB,
    text: 'Buffer in which one shard encodes batches; it also serves reads of the newest ones'
  },
  requestMemoryBytes: {
    flag: '--request-memory-bytes',
    group: 'Memory',
    kind: bytes({ min: 16 * MIB, max: 64 * GIB }),
    fallback: 256 * MIB,
    text: 'Request bytes held on the main thread, over all connections; beyond it bodies get 503'
  },
  replyMemoryBytes: {
    flag: '--reply-memory-bytes',
    group: 'Memory',
    kind: bytes({ min: 16 * MIB, max: 64 * GIB }),
    fallback: 128 * MIB,
    text: 'Answer bytes reserved for requests in progress, over all connections; beyond it reads wait'
  }
} as const satisfies Partial<Schema>

const cluster = {
  raftNodeId: {
    flag: '--raft-node-id',
    group: 'Cluster',
    kind: optional(integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), 'none'),
    fallback: null,
    text: 'Id of this node in a replicated cluster',
    later: true
  },
  raftBind: {
    flag: '--raft-bind',
    group: 'Cluster',
    kind: optional(address(), 'none'),
    fallback: null,
    text: 'Address for the other nodes of the cluster',
    later: true
  },
  raftPeer: {
    flag: '--raft-peer',
    group: 'Cluster',
    kind: list('<id=host:port>', 'ID=HOST:PORT'),
    fallback: [],
    text: 'Another node of the cluster',
    later: true
  },
  raftSharedSecret: {
    flag: '--raft-shared-secret',
    group: 'Cluster',
    kind: optional(text('<secret>', 'any text'), 'none'),
    fallback: null,
    text: 'Secret that the nodes of the cluster share',
    later: true,
    isSecret: true,
    extraEnv: 'ES_RAFT_SHARED_SECRET'
  }
} as const satisfies Partial<Schema>

/** Every setting, in the order of the documentation. */
export const schema: Schema = {
  ...listening,
  ...log,
  ...limit,
  ...memory,
  ...cluster,
  logLevel: {
    flag: '--log-level',
    group: 'Logging',
    kind: choice(['debug', 'info', 'warn', 'error']),
    fallback: 'info',
    text: 'Least severe log line written to stderr'
  }
}

/** The fields of Settings in the order of the table. */
export const settingFields = Object.keys(schema) as SettingField[]

/** `--data-dir` → `data_dir`. */
export function tomlKeyOf(field: SettingField): string {
  return schema[field].flag.slice(2).replaceAll('-', '_')
}

/** `--data-dir` → `MILLRACE_DATA_DIR`. */
export function envNameOf(field: SettingField): string {
  return `MILLRACE_${tomlKeyOf(field).toUpperCase()}`
}

/** `MILLRACE_*` variables that are no broker setting. */
export const otherEnvNames: readonly string[] = ['MILLRACE_CONFIG', 'MILLRACE_BROKER', 'MILLRACE_FAULTS']

/** The default of a setting in words. */
export function showFallback(field: SettingField): string {
  return showValue(field, schema[field].fallback)
}

/** A value of a setting in words; a secret stays one. */
export function showValue<Field extends SettingField>(field: Field, value: Settings[Field]): string {
  const spec: SettingSpec<Settings[Field]> = schema[field]
  return spec.isSecret && value !== null ? '(secret)' : spec.kind.show(value)
}
