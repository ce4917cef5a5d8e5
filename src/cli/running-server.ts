/** The broker as `serve` sees it once it runs: what startServer of src/server.ts promises. Shape only. */

import type { Settings } from '../config/settings.ts'

/** What startServer of src/server.ts gives: a broker that answers. */
export interface RunningServer {
  /** host:port in effect; with port 0 the one the system picked. */
  readonly httpAddress: string
  readonly binaryAddress: string | null
  /** Empty: no Kafka listener. */
  readonly kafkaAddresses: readonly string[]
  readonly dataDir: string
  readonly durability: string
  readonly shards: number
  readonly firstStart: boolean
  readonly engine: 'uws' | 'node'
  /** null: without TLS. */
  readonly tls: { readonly notAfterMs: number; readonly isSelfSigned: boolean } | null
  /** Takes what can change while it runs. @returns why the certificate was not taken; null: it was, or there is none. */
  reload(settings: Settings): string | null
  /** What it is doing, for the log. */
  describeState(): Promise<Record<string, unknown>>
  /** @returns counters of the shards, for the last log line. */
  stop(): Promise<Readonly<Record<string, number>>>
}
