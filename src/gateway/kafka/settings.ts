/** What the Kafka listener takes from the configuration, and its clocks. The daemon's Settings fit as they are. */
import { limits } from '../../model/limits.ts'
import { clientTimeoutsOf, type ClientTimeouts } from '../shared/client-deadlines.ts'

/** A share of src/config/settings.ts: the gateway may not depend on how settings come about. */
export interface KafkaSettings {
  readonly auth: 'disabled' | 'required'
  readonly autoCreateTopics: boolean
  readonly maxRecordBytes: number
  readonly maxFetchBytes: number
  readonly segmentBytes: number
  readonly segmentMs: number
  readonly segmentDeleteGraceMs: number
  readonly flushEveryRecords: number
  readonly flushIntervalMs: number
  readonly defaultTombstoneRetentionMs: number
  readonly binaryMaxConnectionsPerIp: number
  readonly binaryIdleTimeoutMs: number
}

/** One address to listen on. */
export interface KafkaBind {
  /** host:port, IPv6 hosts in brackets; port 0 lets the system choose. */
  readonly address: string
  /**
   * Where clients that came by it are told to come again: port 0 stands for the one that was bound. null: the host that is
   * listened on or, where that is every address of the machine, the one that the client reached.
   */
  readonly advertised: { readonly host: string; readonly port: number } | null
}

/** How long a connection may take for what. Ours alone: they stand still while the broker pauses the reading. */
export interface KafkaTimeouts extends ClientTimeouts {
  /** From accepting to the end of the TLS handshake. */
  readonly handshakeMs: number
  /** From accepting, or the end of that handshake, to the end of the authentication, where it is asked for. */
  readonly authenticationMs: number
}

/** The timeouts of the listener; idle is a setting. */
export function timeoutsOf(settings: KafkaSettings, changes: Partial<KafkaTimeouts>): KafkaTimeouts {
  return {
    handshakeMs: limits.tlsHandshakeMs,
    authenticationMs: limits.helloTimeoutMs,
    ...clientTimeoutsOf(settings.binaryIdleTimeoutMs),
    ...changes
  }
}
