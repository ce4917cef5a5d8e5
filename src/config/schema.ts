/**
 * THE table of settings: flag, environment variable, TOML key, kind, default, range, unit and text of each field of
 * Settings. Everything that names a setting is made from it: parsing, --help, `config explain`; the shipped
 * config/millrace.toml and docs/configuration.md are tested against it. Data only; main thread and CLI.
 */
import { limits } from '../model/limits.ts'
import { originFault } from './address.ts'
import { address, bytes, choice, duration, integer, list, optional, text, toggle } from './kinds.ts'
import { kafkaListeners } from './kafka-listeners.ts'
import { coldStorageSettings, journalSettings, logSettings } from './log-settings.ts'
import {
  DAY_MS,
  GIB,
  HOUR_MS,
  KIB,
  MIB,
  SECOND_MS,
  type Schema,
  type SettingField,
  type SettingSpec
} from './setting-spec.ts'
import type { Settings } from './settings.ts'

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
  bindKafka: {
    flag: '--bind-kafka',
    group: 'Listening and access',
    kind: kafkaListeners(),
    fallback: [],
    text: 'Address of a listener of the Kafka protocol, and the one that its clients are told to come to'
  },
  auth: {
    flag: '--auth',
    group: 'Listening and access',
    kind: choice(['disabled', 'required']),
    fallback: 'disabled',
    text: 'Whether every request needs an API key'
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
    text: 'Certificate chain for TLS on every listener: HTTP, binary and Kafka; read anew when it changes'
  },
  tlsKey: {
    flag: '--tls-key',
    group: 'Listening and access',
    kind: optional(text('<path>', 'a PEM file; together with --tls-cert'), 'none'),
    fallback: null,
    text: 'Private key that belongs to the certificate, not encrypted; read anew when it changes'
  },
  corsOrigin: {
    flag: '--cors-origin',
    group: 'Listening and access',
    kind: list('<origin>', 'an origin such as https://app.example, not *', originFault),
    fallback: [],
    text: 'Origin whose pages may call the HTTP API'
  },
  httpEngine: {
    flag: '--http-engine',
    group: 'Listening and access',
    kind: choice(['auto', 'uws', 'node']),
    fallback: 'auto',
    text: 'HTTP server: uWebSockets.js (uws), node:http (node), or the first where it loads (auto)'
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
    kind: bytes({ min: 1, max: limits.recordBytesMax }),
    fallback: 8 * MIB,
    text: 'Largest record: bytes of key, value and headers together'
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
    text: 'Connections of the binary protocol that one client address may hold, and as many of the Kafka protocol'
  },
  binaryIdleTimeoutMs: {
    flag: '--binary-idle-timeout',
    group: 'Limits',
    kind: duration({ min: 10, max: 20 * DAY_MS }),
    fallback: 600 * SECOND_MS,
    text: 'A connection of the binary or the Kafka protocol that sends nothing for that long is closed'
  },
  httpMaxConnections: {
    flag: '--http-max-connections',
    group: 'Limits',
    kind: optional(integer({ min: 1, max: 1_000_000 }, 'connections'), 'auto'),
    fallback: null,
    text: 'HTTP connections held at once; auto is 64 below a quarter of the file descriptors of the process, 16 to 16384'
  },
  autoCreateTopics: {
    flag: '--auto-create-topics',
    group: 'Limits',
    kind: toggle(),
    fallback: false,
    text: 'Make a topic, of one partition, when a Kafka client with an admin key asks for one that does not exist'
  },
  coordMemberTimeoutMs: {
    flag: '--coord-member-timeout',
    group: 'Limits',
    kind: duration({ min: 100, max: DAY_MS }),
    fallback: 15 * SECOND_MS,
    text: 'A member of a consumer group that sends no heartbeat for that long is removed, and the group rebalances'
  },
  maxOpenFiles: {
    flag: '--max-open-files',
    group: 'Limits',
    kind: optional(integer({ min: 64, max: 1_000_000 }, 'files'), 'auto'),
    fallback: null,
    text: 'Data files held open, over all shards; auto is a quarter of the file descriptors of the process, at most 4096'
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
  },
  compactionMemoryBytes: {
    flag: '--compaction-memory-bytes',
    group: 'Memory',
    kind: bytes({ min: MIB, max: 4 * GIB }),
    fallback: 64 * MIB,
    text: 'Table of the keys that one compaction has seen; a partition with more keys takes several rounds'
  }
} as const satisfies Partial<Schema>

/** What the settings of a cluster are of. */
const replication = 'the replicated engine to come'

const cluster = {
  raftNodeId: {
    flag: '--raft-node-id',
    group: 'Cluster',
    kind: optional(integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), 'none'),
    fallback: null,
    text: 'Id of this node in a replicated cluster',
    later: replication
  },
  raftBind: {
    flag: '--raft-bind',
    group: 'Cluster',
    kind: optional(address(), 'none'),
    fallback: null,
    text: 'Address for the other nodes of the cluster',
    later: replication
  },
  raftPeer: {
    flag: '--raft-peer',
    group: 'Cluster',
    kind: list('<id=host:port>', 'ID=HOST:PORT'),
    fallback: [],
    text: 'Another node of the cluster',
    later: replication
  },
  raftSharedSecret: {
    flag: '--raft-shared-secret',
    group: 'Cluster',
    kind: optional(text('<secret>', 'any text'), 'none'),
    fallback: null,
    text: 'Secret that the nodes of the cluster share',
    later: replication,
    isSecret: true,
    extraEnv: 'ES_RAFT_SHARED_SECRET'
  }
} as const satisfies Partial<Schema>

/** Every setting, in the order of the documentation. */
export const schema: Schema = {
  ...listening,
  ...logSettings,
  ...journalSettings,
  ...coldStorageSettings,
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
export const otherEnvNames: readonly string[] = [
  'MILLRACE_CONFIG',
  'MILLRACE_BROKER',
  'MILLRACE_KEY',
  'MILLRACE_FAULTS'
]

/** The default of a setting in words. */
export function showFallback(field: SettingField): string {
  return showValue(field, schema[field].fallback)
}

/** A value of a setting in words; a secret stays one. */
export function showValue<Field extends SettingField>(field: Field, value: Settings[Field]): string {
  const spec: SettingSpec<Settings[Field]> = schema[field]
  return spec.isSecret && value !== null ? '(secret)' : spec.kind.show(value)
}
