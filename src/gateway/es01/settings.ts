/** What the ES01 gateway takes from the configuration, and its clocks. The daemon's Settings fit as they are. */

import { limits } from '../../model/limits.ts'
import { clientTimeoutsOf, type ClientTimeouts } from '../shared/client-deadlines.ts'

/** A share of src/config/settings.ts: the gateway may not depend on how settings come about. */
export interface Es01Settings {
  /** host:port, IPv6 hosts in brackets; port 0 lets the system choose. */
  readonly bindBinary: string | null
  readonly auth: 'disabled' | 'required'
  readonly maxRecordBytes: number
  readonly maxFetchBytes: number
  readonly maxFetchRecords: number
  readonly binaryMaxConnectionsPerIp: number
  readonly binaryIdleTimeoutMs: number
}

/** How long a connection may take for what. Ours alone: they stand still while the broker pauses the reading. */
export interface Es01Timeouts extends ClientTimeouts {
  /** From accepting to the end of the TLS handshake. */
  readonly handshakeMs: number
  /** From accepting, or the end of that handshake, to the last byte of the hello. */
  readonly helloMs: number
}

/** The timeouts of the protocol; idle is a setting. */
export function timeoutsOf(settings: Es01Settings, changes: Partial<Es01Timeouts>): Es01Timeouts {
  return {
    handshakeMs: limits.tlsHandshakeMs,
    helloMs: limits.helloTimeoutMs,
    ...clientTimeoutsOf(settings.binaryIdleTimeoutMs),
    ...changes
  }
}
