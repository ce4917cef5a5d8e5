/** Readers of what the gateways count. Main thread. */
import { ByteBudget } from '../base/byte-budget.ts'
import type { Settings } from '../config/settings.ts'
import type { Es01Gateway } from '../gateway/es01/gateway.ts'
import type { Es01Probe } from '../gateway/es01/probe.ts'
import type { HttpGateway } from '../gateway/http/gateway.ts'
import type { KafkaGateway } from '../gateway/kafka/gateway.ts'
import { FrameMemory } from '../gateway/shared/frame-memory.ts'
import type { CertificateState } from '../model/metrics.ts'
import { kafkaLatencies, kafkaReaders } from './metrics-kafka.ts'
import { one, type ProcessReaders, type Sample } from '../observe/process-page.ts'

/** What listens; null: not yet, or not at all. */
export interface Gateways {
  http: HttpGateway | null
  es01: Es01Gateway | null
  kafka: KafkaGateway | null
  readonly requestBudget: ByteBudget
  readonly frameMemory: FrameMemory
  readonly replyBudget: ByteBudget
}

/** Nothing listens yet. */
export function newGateways(settings: Pick<Settings, 'requestMemoryBytes' | 'replyMemoryBytes'>): Gateways {
  const requestBudget = new ByteBudget(settings.requestMemoryBytes)
  return {
    http: null,
    es01: null,
    kafka: null,
    requestBudget,
    frameMemory: new FrameMemory(requestBudget),
    replyBudget: new ByteBudget(settings.replyMemoryBytes)
  }
}

type Owned =
  | Extract<
      keyof ProcessReaders,
      | `millrace_http_${string}`
      | `millrace_es01_${string}`
      | `millrace_kafka_${string}`
      | `millrace_connections${string}`
      | `millrace_memory_${string}`
    >
  | 'millrace_request_duration_seconds'

export function gatewayReaders(gateways: Gateways): Pick<ProcessReaders, Owned> {
  return { ...httpReaders(gateways), ...es01Readers(gateways), ...kafkaReaders(gateways), ...sharedReaders(gateways) }
}

function httpReaders(
  gateways: Gateways
): Pick<ProcessReaders, Extract<keyof ProcessReaders, `millrace_http_${string}`>> {
  const probe = () => gateways.http?.probe
  return {
    millrace_http_engine: () => {
      const { http } = gateways
      return http === null ? [] : [{ labels: { engine: http.engine }, value: 1 }]
    },
    millrace_http_engine_fallback: () => one(typeof gateways.http?.engineNote === 'string' ? 1 : 0),
    millrace_http_responses_total: () => byKey('status', probe()?.statuses),
    millrace_http_refusals_total: () => byKey('code', probe()?.refusals),
    millrace_http_refused_connections_total: () => one(probe()?.connectionsRefused ?? 0),
    millrace_http_cut_readers_total: () => byKey('reason', new Map(Object.entries(probe()?.readersCut ?? {}))),
    millrace_http_shortened_reads_total: () => one(probe()?.readsShortened ?? 0),
    millrace_http_late_bodies_total: () => one(probe()?.bodiesLate ?? 0),
    millrace_http_streams: () => one(probe()?.streams ?? 0),
    millrace_http_stream_events_total: () => one(probe()?.streamEvents ?? 0),
    millrace_http_streams_cut_total: () => one(probe()?.streamsCut ?? 0),
    millrace_http_malformed_requests_total: () => one(probe()?.malformedRequests ?? 0)
  }
}

function byKey(label: string, counts: ReadonlyMap<string | number, number> | undefined): Sample[] {
  return [...(counts ?? [])].map(([key, value]) => ({ labels: { [label]: key }, value }))
}

function es01Readers(
  gateways: Gateways
): Pick<ProcessReaders, Extract<keyof ProcessReaders, `millrace_es01_${string}`>> {
  const count = (read: (probe: Es01Probe) => number) => (): Sample[] =>
    gateways.es01 === null ? [] : one(read(gateways.es01.probe))
  return {
    millrace_es01_refused_connections_total: () =>
      Object.entries(gateways.es01?.probe.refused ?? {}).map(([reason, value]) => ({ labels: { reason }, value })),
    millrace_es01_requests_total: count(probe => probe.requests),
    millrace_es01_error_frames_total: () => byKey('code', gateways.es01?.probe.errorFrames),
    millrace_es01_gzip_bytes_total: () => (gateways.es01 === null ? [] : gzipBytes(gateways.es01.probe)),
    millrace_es01_received_bytes_total: count(probe => probe.receivedBytes),
    millrace_es01_pauses_total: count(probe => probe.pauses),
    millrace_es01_socket_errors_total: count(probe => probe.socketErrors),
    millrace_es01_accept_errors_total: count(probe => probe.acceptErrors)
  }
}

function gzipBytes({ gzip }: Es01Probe): Sample[] {
  return [
    { labels: { direction: 'in', form: 'compressed' }, value: gzip.inCompressedBytes },
    { labels: { direction: 'in', form: 'plain' }, value: gzip.inPlainBytes },
    { labels: { direction: 'out', form: 'plain' }, value: gzip.outPlainBytes },
    { labels: { direction: 'out', form: 'compressed' }, value: gzip.outCompressedBytes }
  ]
}

function sharedReaders(
  gateways: Gateways
): Pick<
  ProcessReaders,
  | Extract<keyof ProcessReaders, `millrace_connections${string}` | `millrace_memory_${string}`>
  | 'millrace_request_duration_seconds'
> {
  const byProtocol = (http: number | undefined, es01: number | undefined, kafka: number | undefined): Sample[] =>
    [
      { labels: { protocol: 'http' }, value: http },
      { labels: { protocol: 'es01' }, value: es01 },
      { labels: { protocol: 'kafka' }, value: kafka }
    ].flatMap(({ labels, value }) => (value === undefined ? [] : [{ labels, value }]))
  const byBudget = (read: (budget: ByteBudget) => number): Sample[] => [
    { labels: { budget: 'requests' }, value: read(gateways.requestBudget) },
    { labels: { budget: 'replies' }, value: read(gateways.replyBudget) }
  ]
  return {
    millrace_connections: () =>
      byProtocol(gateways.http?.probe.connections, gateways.es01?.connectionCount, gateways.kafka?.connectionCount),
    millrace_connections_accepted_total: () =>
      byProtocol(
        gateways.http?.probe.connectionsAccepted,
        gateways.es01?.probe.accepted,
        gateways.kafka?.probe.accepted
      ),
    millrace_request_duration_seconds: () => latencies(gateways),
    millrace_memory_budget_used_bytes: () => byBudget(budget => budget.usedBytes),
    millrace_memory_budget_bytes: () => byBudget(budget => budget.limitBytes)
  }
}

function latencies(gateways: Gateways): Sample[] {
  const { http, es01 } = gateways
  const samples: Sample[] = kafkaLatencies(gateways)
  for (const [route, histogram] of http?.probe.latencies ?? []) {
    const name = route === null ? 'none' : `${route.method} ${route.pattern}`
    samples.push({ labels: { protocol: 'http', route: name }, value: histogram.read() })
  }
  if (es01 === null) return samples
  const { produceSeconds, consumeSeconds } = es01.probe
  samples.push({ labels: { protocol: 'es01', route: 'produce' }, value: produceSeconds.read() })
  samples.push({ labels: { protocol: 'es01', route: 'consume' }, value: consumeSeconds.read() })
  return samples
}

/** @param certificate null: TLS is off. */
export function certificateReaders(
  certificate: CertificateState | null
): Pick<ProcessReaders, Extract<keyof ProcessReaders, `millrace_tls_${string}`>> {
  const read = (value: (state: CertificateState) => number) => (): Sample[] =>
    certificate === null ? [] : one(value(certificate))
  return {
    millrace_tls_certificate_expiry_seconds: read(({ notAfterMs }) => notAfterMs / 1000),
    millrace_tls_reload_failures_total: read(({ reloadFailures }) => reloadFailures),
    millrace_tls_failing: read(({ problem }) => (problem === null ? 0 : 1))
  }
}
