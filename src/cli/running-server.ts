/** The broker as `serve` sees it once it runs: what startServer of src/server.ts promises. Shape only. */

/** What startServer of src/server.ts gives: a broker that answers. */
export interface RunningServer {
  /** host:port in effect; with port 0 the one the system picked. */
  readonly httpAddress: string
  readonly binaryAddress: string | null
  readonly dataDir: string
  readonly durability: string
  readonly shards: number
  readonly firstStart: boolean
  readonly engine: 'uws' | 'node'
  /** @returns counters of the shards, for the last log line. */
  stop(): Promise<Readonly<Record<string, number>>>
}
