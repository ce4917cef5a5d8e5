/** What the ES01 gateway takes from the configuration, and its clocks. The daemon's Settings fit as they are. */

import { limits } from '../../model/limits.ts'

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
export interface Es01Timeouts {
  /** From accepting to the end of the TLS handshake. */
  readonly handshakeMs: number
  /** From accepting, or the end of that handshake, to the last byte of the hello. */
  readonly helloMs: number
  /** From the length of a frame to its last byte. */
  readonly bodyMs: number
  /** From one length prefix to the next. */
  readonly idleMs: number
  /** For one write of at most 256 KiB. */
  readonly writeMs: number
  /** The same while reply memory is short; and how long a frame may fall short of its rate while request memory is. */
  readonly stalledMs: number
  /** For the client to close too after the broker's last byte; so that bytes on their way do not reset the answers. */
  readonly lingerMs: number
}

/** The timeouts of the protocol; idle is a setting. */
export function timeoutsOf(settings: Es01Settings, changes: Partial<Es01Timeouts>): Es01Timeouts {
  return {
    handshakeMs: limits.tlsHandshakeMs,
    helloMs: limits.helloTimeoutMs,
    bodyMs: limits.frameTimeoutMs,
    idleMs: settings.binaryIdleTimeoutMs,
    writeMs: limits.binaryWriteTimeoutMs,
    stalledMs: limits.stalledReaderMs,
    lingerMs: limits.binaryLingerMs,
    ...changes
  }
}
