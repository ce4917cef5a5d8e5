/** What clients connect to, and the threads that take work off it. Main thread. */
import { availableParallelism } from 'node:os'
import type { BackgroundJobs } from '../background/jobs.ts'
import { BackgroundPool } from '../background/pool.ts'
import type { ByteBudget } from '../base/byte-budget.ts'
import { systemClock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { LocalBroker } from '../broker/broker.ts'
import { httpConnectionsMax } from '../config/auto-sizes.ts'
import { descriptorLimit } from '../config/machine.ts'
import type { Settings } from '../config/settings.ts'
import { createEs01Gateway, type Es01Gateway } from '../gateway/es01/gateway.ts'
import { createHttpGateway, type HttpGateway } from '../gateway/http/gateway.ts'
import { Certificates } from '../gateway/shared/certificates.ts'
import { limits } from '../model/limits.ts'
import type { MetricsPage } from '../model/metrics.ts'
import type { Gateways } from './metrics-gateways.ts'

/** What is already running, newest last: taken down in reverse when a later part does not start. */
export type Undo = () => Promise<void>

export interface Listening {
  readonly http: HttpGateway
  readonly es01: Es01Gateway | null
  readonly background: BackgroundPool<BackgroundJobs>
  readonly requestBudget: ByteBudget
  readonly replyBudget: ByteBudget
  readonly httpAddress: string
  readonly binaryAddress: string | null
}

/** @returns what the settings name, checked; null: no TLS. @throws Error of one line. */
export function openCertificates({ tlsCert, tlsKey }: Settings, logger: Logger, undo: Undo[]): Certificates | null {
  if (tlsCert === null || tlsKey === null) return null
  const certificates = new Certificates({ files: { cert: tlsCert, key: tlsKey }, logger, clock: systemClock })
  undo.push(() => Promise.resolve(certificates.stop()))
  return certificates
}

export interface ListenParts {
  readonly settings: Settings
  readonly logger: Logger
  readonly broker: LocalBroker
  readonly certificates: Certificates | null
  readonly metrics: MetricsPage
  /** Is told what listens. */
  readonly gateways: Gateways
}

export async function listen(parts: ListenParts, undo: Undo[]): Promise<Listening> {
  const { settings, logger, gateways } = parts
  const { requestBudget, replyBudget } = gateways
  const shared = { ...parts, requestBudget, replyBudget }
  const background = buildBackground(logger)
  undo.push(() => background.close())
  const offload = { pool: background, bodyBytesMin: limits.offloadedBodyBytesMin }
  const connectionsMax = httpConnectionsMax(settings, descriptorLimit())
  const http = await createHttpGateway({ ...shared, engine: settings.httpEngine, offload, connectionsMax })
  gateways.http = http
  if (http.engineNote !== null)
    logger.warn({ cause: http.engineNote }, 'HTTP runs on node:http: uWebSockets.js did not load')
  const httpAt = await http.listen()
  undo.push(() => http.stop(0))
  const common = { http, background, requestBudget, replyBudget, httpAddress: showAddress(httpAt) }
  if (settings.bindBinary === null) return { ...common, es01: null, binaryAddress: null }
  const es01 = createEs01Gateway(shared)
  gateways.es01 = es01
  const es01At = await es01.listen()
  undo.push(() => es01.stop(0))
  return { ...common, es01, binaryAddress: showAddress(es01At) }
}

/** As many threads as there are cores beside the main thread: they compete with the shards only while they have jobs. */
export function buildBackground(logger: Logger): BackgroundPool<BackgroundJobs> {
  const { backgroundJobsMax: jobsMax } = limits
  return new BackgroundPool({ threadsMax: Math.max(1, availableParallelism() - 1), jobsMax, logger })
}

export function showAddress({ host, port }: { host: string; port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
