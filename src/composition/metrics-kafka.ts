/** Readers of what the Kafka listener counts. Main thread. */
import type { KafkaGateway } from '../gateway/kafka/gateway.ts'
import type { KafkaProbe } from '../gateway/kafka/probe.ts'
import { one, type ProcessReaders, type Sample } from '../observe/process-page.ts'

/** Where it is found once it listens. */
interface Found {
  readonly kafka: KafkaGateway | null
}

export function kafkaReaders(
  gateways: Found
): Pick<ProcessReaders, Extract<keyof ProcessReaders, `millrace_kafka_${string}`>> {
  const read = (samplesOf: (probe: KafkaProbe) => Sample[]) => (): Sample[] =>
    gateways.kafka === null ? [] : samplesOf(gateways.kafka.probe)
  return {
    millrace_kafka_refused_connections_total: read(({ refused }) =>
      Object.entries(refused).map(([reason, value]) => ({ labels: { reason }, value }))
    ),
    millrace_kafka_requests_total: read(({ apis }) =>
      [...apis].map(([api, { requests: value }]) => ({ labels: { api }, value }))
    ),
    millrace_kafka_errors_total: read(({ errors }) =>
      [...errors].map(([code, value]) => ({ labels: { code }, value }))
    ),
    millrace_kafka_received_bytes_total: read(({ receivedBytes }) => one(receivedBytes)),
    millrace_kafka_sent_bytes_total: read(({ sentBytes }) => one(sentBytes)),
    millrace_kafka_pauses_total: read(({ pauses }) => one(pauses)),
    millrace_kafka_fetch_sessions: read(({ fetchSessions }) => one(fetchSessions.sessions)),
    millrace_kafka_fetch_session_partitions: read(({ fetchSessions }) => one(fetchSessions.partitions)),
    millrace_kafka_fetch_sessions_evicted_total: read(({ fetchSessions }) => one(fetchSessions.evicted)),
    millrace_kafka_read_ahead_bytes: () => (gateways.kafka === null ? [] : one(gateways.kafka.aheadBytes)),
    millrace_kafka_read_ahead_bytes_total: read(({ readAhead }) =>
      Object.entries(readAhead).map(([outcome, value]) => ({ labels: { outcome }, value }))
    ),
    millrace_kafka_socket_errors_total: read(({ socketErrors }) => one(socketErrors)),
    millrace_kafka_accept_errors_total: read(({ acceptErrors }) => one(acceptErrors))
  }
}

/** How long requests took, by API. */
export function kafkaLatencies({ kafka }: Found): Sample[] {
  return [...(kafka?.probe.apis ?? [])].map(([route, { seconds }]) => ({
    labels: { protocol: 'kafka', route },
    value: seconds.read()
  }))
}
