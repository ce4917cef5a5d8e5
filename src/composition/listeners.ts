/** What clients connect to, and the threads that take work off it. Main thread. */
import { availableParallelism } from 'node:os'
import type { BackgroundJobs } from '../background/jobs.ts'
import { BackgroundPool } from '../background/pool.ts'
import type { ByteBudget } from '../base/byte-budget.ts'
import { systemClock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { LocalBroker } from '../broker/broker.ts'
import { showAddress } from '../config/address.ts'
import { httpConnectionsMax } from '../config/auto-sizes.ts'
import { descriptorLimit } from '../config/machine.ts'
import { kafkaListenersOf } from '../config/kafka-listeners.ts'
import type { Settings } from '../config/settings.ts'
import { createEs01Gateway, type Es01Gateway } from '../gateway/es01/gateway.ts'
import { createHttpGateway, type HttpGateway } from '../gateway/http/gateway.ts'
import { createKafkaGateway, type KafkaGateway } from '../gateway/kafka/gateway.ts'
import { Certificates } from '../gateway/shared/certificates.ts'
import { readConnectionsMax } from '../gateway/shared/connections-max.ts'
import { limits } from '../model/limits.ts'
import type { MetricsPage } from '../model/metrics.ts'
import type { Gateways } from './metrics-gateways.ts'

/** What is already running, newest last: taken down in reverse when a later part does not start. */
export type Undo = () => Promise<void>

export interface Listening {
  readonly http: HttpGateway
  readonly es01: Es01Gateway | null
  readonly kafka: KafkaGateway | null
  readonly background: BackgroundPool<BackgroundJobs>
  readonly requestBudget: ByteBudget
  readonly replyBudget: ByteBudget
  readonly httpAddress: string
  readonly binaryAddress: string | null
  /** Empty: no Kafka listener. */
  readonly kafkaAddresses: readonly string[]
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
  /** Of the data directory. */
  readonly directoryId: string
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
  const { frameMemory } = gateways
  const room = { ...shared, frameMemory, connectionsMax: protocolConnectionsMax(settings) }
  return { ...common, ...(await listenEs01(room, undo)), ...(await listenKafka(room, undo)) }
}

type Room = ListenParts &
  Pick<Gateways, 'requestBudget' | 'replyBudget' | 'frameMemory'> & {
    readonly connectionsMax: number
  }

async function listenEs01(parts: Room, undo: Undo[]): Promise<Pick<Listening, 'es01' | 'binaryAddress'>> {
  if (parts.settings.bindBinary === null) return { es01: null, binaryAddress: null }
  const es01 = createEs01Gateway(parts)
  parts.gateways.es01 = es01
  const bound = await es01.listen()
  undo.push(() => es01.stop(0))
  return { es01, binaryAddress: showAddress(bound) }
}

async function listenKafka(parts: Room, undo: Undo[]): Promise<Pick<Listening, 'kafka' | 'kafkaAddresses'>> {
  const binds = kafkaListenersOf(parts.settings.bindKafka)
  if (binds.length === 0) return { kafka: null, kafkaAddresses: [] }
  const kafka = createKafkaGateway({ ...parts, binds })
  parts.gateways.kafka = kafka
  // One of several may listen when another fails.
  undo.push(() => kafka.stop(0))
  const bound = await kafka.listen()
  return { kafka, kafkaAddresses: bound.map(showAddress) }
}

/** The descriptors that are left for ES01 and Kafka are halved where both listen. */
function protocolConnectionsMax({ bindBinary, bindKafka }: Settings): number {
  const all = readConnectionsMax()
  return bindBinary === null || bindKafka.length === 0 ? all : Math.floor(all / 2)
}

/** As many threads as there are cores beside the main thread: they compete with the shards only while they have jobs. */
export function buildBackground(logger: Logger): BackgroundPool<BackgroundJobs> {
  const { backgroundJobsMax: jobsMax } = limits
  return new BackgroundPool({ threadsMax: Math.max(1, availableParallelism() - 1), jobsMax, logger })
}
