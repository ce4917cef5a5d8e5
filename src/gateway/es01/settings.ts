/** What the ES01 gateway takes from the configuration, and its clocks. The daemon's Settings fit as they are. */

/** A share of src/config/settings.ts: the gateway may not depend on how settings come about. */
export interface Es01Settings {
  /** host:port, IPv6 hosts in brackets; port 0 lets the system choose. */
  readonly bindBinary: string | null
  readonly maxRecordBytes: number
  readonly maxFetchBytes: number
  readonly maxFetchRecords: number
  readonly binaryMaxConnectionsPerIp: number
  readonly binaryIdleTimeoutMs: number
}

/** How long a connection may take for what. Ours alone: they stand still while the broker pauses the reading. */
export interface Es01Timeouts {
  /** From accepting to the last byte of the hello. */
  readonly helloMs: number
  /** From the length of a frame to its last byte. */
  readonly bodyMs: number
  /** From one length prefix to the next. */
  readonly idleMs: number
  /** For one write of at most 256 KiB. */
  readonly writeMs: number
  /** For the client to close too after the broker's last byte; so that bytes on their way do not reset the answers. */
  readonly lingerMs: number
}

/** The timeouts of the protocol; idle is a setting. */
export function timeoutsOf(settings: Es01Settings, changes: Partial<Es01Timeouts>): Es01Timeouts {
  return {
    helloMs: 10_000,
    bodyMs: 30_000,
    idleMs: settings.binaryIdleTimeoutMs,
    writeMs: 30_000,
    lingerMs: 1_000,
    ...changes
  }
}

/** @returns host and port of `address`. Its form was checked with the configuration. */
export function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon)
  return { host: host.startsWith('[') ? host.slice(1, -1) : host, port: Number(address.slice(colon + 1)) }
}
