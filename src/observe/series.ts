/**
 * Every series of /metrics: name, type, labels in their order, and what it says. The page, docs/metrics.md, the dashboard
 * and the alert rules are compared with this table. Names are a public interface: they are added, never changed.
 *
 *   es_*        by topic or group, for whoever may read those (spec 8): every key
 *   millrace_*  of the process as a whole: admin on `*`, or everybody while authentication is off
 */

export interface SeriesSpec {
  readonly type: 'gauge' | 'counter' | 'histogram'
  readonly labels: readonly string[]
  readonly help: string
}

function spec(type: SeriesSpec['type'], labels: readonly string[], help: string): SeriesSpec {
  return { type, labels, help }
}

const ofPartition = ['topic', 'partition']
const ofTopic = ['topic']
const ofGroup = ['group', 'topic', 'partition']

/** What a topic or a group is asked about. */
export const topicSeries = {
  es_partition_start_offset: spec('gauge', ofPartition, 'First offset that can be read.'),
  es_partition_end_offset: spec('gauge', ofPartition, 'High watermark: the offset behind the last record.'),
  es_partition_size_bytes: spec('gauge', ofPartition, 'Stored bytes of the log.'),
  es_partition_segment_count: spec('gauge', ofPartition, 'Segments of the log, the active one included.'),
  es_topic_records_produced_total: spec('counter', ofTopic, 'Records written, duplicates excluded.'),
  es_topic_bytes_produced_total: spec('counter', ofTopic, 'Bytes of keys and values written.'),
  es_topic_records_consumed_total: spec('counter', ofTopic, 'Records returned to readers, over all protocols.'),
  es_topic_bytes_consumed_total: spec('counter', ofTopic, 'Bytes of keys and values returned to readers.'),
  es_retention_segments_deleted_total: spec('counter', ofPartition, 'Segments that retention dropped.'),
  es_retention_bytes_reclaimed_total: spec(
    'counter',
    ofPartition,
    'Stored bytes of the segments that retention dropped.'
  ),
  es_compaction_runs_total: spec('counter', ofPartition, 'Compactions that dropped records.'),
  es_compaction_records_dropped_total: spec('counter', ofPartition, 'Records that compactions dropped.'),
  es_group_committed_offset: spec('gauge', ofGroup, 'Offset that the group committed.'),
  es_group_lag: spec('gauge', ofGroup, 'Records between the committed offset and the end of the partition.')
} as const satisfies Record<string, SeriesSpec>
export type TopicSeries = keyof typeof topicSeries

const ofShard = ['shard']

/** What the process and its threads are asked about. */
export const processSeries = {
  millrace_build_info: spec('gauge', ['version', 'node', 'commit'], 'Always 1; what runs.'),
  millrace_process_start_time_seconds: spec('gauge', [], 'When the process started, Unix time.'),
  millrace_process_cpu_seconds_total: spec('counter', ['mode'], 'Processor time of the process: user or system.'),
  millrace_process_resident_memory_bytes: spec('gauge', [], 'Memory of the process in RAM.'),
  millrace_process_heap_bytes: spec('gauge', ['kind'], 'Heap of the main thread: used or total.'),
  millrace_process_external_memory_bytes: spec(
    'gauge',
    ['kind'],
    'Memory outside of heaps: external or array_buffers.'
  ),
  millrace_process_open_fds: spec('gauge', [], 'Open file descriptors; absent where the system does not say.'),
  millrace_process_max_fds: spec('gauge', [], 'Limit of open file descriptors.'),
  millrace_event_loop_delay_seconds: spec(
    'gauge',
    ['thread', 'quantile'],
    'How late the event loop was in the last minute; quantile 1 is the worst.'
  ),
  millrace_shard_turn_seconds: spec(
    'histogram',
    ofShard,
    "Turns of a shard's loop without its sleep: what comes meanwhile waits so long."
  ),
  millrace_http_engine: spec('gauge', ['engine'], 'Always 1; uws or node.'),
  millrace_http_engine_fallback: spec('gauge', [], '1: uWebSockets.js was wanted and did not load.'),
  millrace_durability_synced: spec('gauge', [], '1: an acknowledgement follows the sync; 0: it may precede it.'),
  millrace_connections: spec('gauge', ['protocol'], 'Open connections.'),
  millrace_connections_accepted_total: spec('counter', ['protocol'], 'Connections that were taken.'),
  millrace_http_refused_connections_total: spec('counter', [], 'HTTP connections turned away: there were too many.'),
  millrace_http_cut_readers_total: spec(
    'counter',
    ['reason'],
    'HTTP clients cut off for how they took an answer: stalled (nothing in time), slow (too little while reply memory was short).'
  ),
  millrace_http_shortened_reads_total: spec(
    'counter',
    [],
    'HTTP reads that got fewer bytes than they asked for because reply memory was short.'
  ),
  millrace_http_late_bodies_total: spec('counter', [], 'HTTP requests refused because their body came too slowly.'),
  millrace_http_streams: spec('gauge', [], 'Streams (server-sent events) that are open.'),
  millrace_http_stream_events_total: spec('counter', [], 'Events sent on all streams.'),
  millrace_http_streams_cut_total: spec(
    'counter',
    [],
    'Streams cut while reply memory was short: their client did not take its events.'
  ),
  millrace_request_duration_seconds: spec('histogram', ['protocol', 'route'], 'From a request to its answer.'),
  millrace_http_responses_total: spec(
    'counter',
    ['status'],
    'Answers by status; 0: the client was gone before. What is refused as events has 200.'
  ),
  millrace_http_refusals_total: spec(
    'counter',
    ['code'],
    'Refusals over HTTP by the code of the error, those that are told as events too.'
  ),
  millrace_http_malformed_requests_total: spec(
    'counter',
    [],
    'Requests that the HTTP parser refused (node:http only).'
  ),
  millrace_es01_refused_connections_total: spec('counter', ['reason'], 'ES01 connections closed or not taken.'),
  millrace_es01_requests_total: spec('counter', [], 'Frames that were taken.'),
  millrace_es01_error_frames_total: spec(
    'counter',
    ['code'],
    'Requests answered by an error frame, by the code of the error.'
  ),
  millrace_es01_received_bytes_total: spec('counter', [], 'Bytes received over ES01.'),
  millrace_es01_gzip_bytes_total: spec(
    'counter',
    ['direction', 'form'],
    'Bytes of payloads that were inflated (in) or compressed (out), as they were and as they are; a payload that inflates to more than it may counts up to where it was stopped.'
  ),
  millrace_es01_pauses_total: spec('counter', [], 'Times that reading stopped because something was full.'),
  millrace_es01_socket_errors_total: spec('counter', [], 'ES01 connections that broke.'),
  millrace_es01_accept_errors_total: spec('counter', [], 'ES01 connections that could not be accepted.'),
  millrace_kafka_refused_connections_total: spec('counter', ['reason'], 'Kafka connections closed or not taken.'),
  millrace_kafka_requests_total: spec('counter', ['api'], 'Kafka requests that were taken.'),
  millrace_kafka_errors_total: spec('counter', ['code'], 'Errors within Kafka responses, by their code.'),
  millrace_kafka_received_bytes_total: spec('counter', [], 'Bytes received over Kafka.'),
  millrace_kafka_sent_bytes_total: spec('counter', [], 'Bytes of Kafka responses.'),
  millrace_kafka_pauses_total: spec('counter', [], 'Times that reading stopped because a request had to wait.'),
  millrace_kafka_fetch_sessions: spec('gauge', [], 'Fetch sessions of Kafka clients.'),
  millrace_kafka_fetch_session_partitions: spec('gauge', [], 'Partitions of all fetch sessions.'),
  millrace_kafka_fetch_sessions_evicted_total: spec('counter', [], 'Fetch sessions that had to leave for others.'),
  millrace_kafka_read_ahead_bytes: spec(
    'gauge',
    [],
    'Bytes set aside for batches read before their clients ask for them.'
  ),
  millrace_kafka_read_ahead_bytes_total: spec('counter', ['outcome'], 'Bytes of such batches: used, or dropped.'),
  millrace_kafka_socket_errors_total: spec('counter', [], 'Kafka connections that broke.'),
  millrace_kafka_accept_errors_total: spec('counter', [], 'Kafka connections that could not be accepted.'),
  millrace_memory_budget_used_bytes: spec('gauge', ['budget'], 'Bytes held for requests, or for answers.'),
  millrace_memory_budget_bytes: spec('gauge', ['budget'], 'The most that may be held.'),
  millrace_shards: spec('gauge', [], 'Shards of this broker.'),
  millrace_shard_state: spec('gauge', ['shard', 'state'], '1 for the state a shard is in: ready, starting or down.'),
  millrace_shard_restarts_total: spec('counter', ofShard, 'Times that a shard was started again.'),
  millrace_shard_requests_in_progress: spec(
    'gauge',
    ofShard,
    'Requests that a shard has not answered, watches among them.'
  ),
  millrace_ring_used_bytes: spec('gauge', ['shard', 'ring'], 'Bytes in a ring that its shard has not taken.'),
  millrace_ring_bytes: spec('gauge', ['shard', 'ring'], 'Size of a ring.'),
  millrace_group_records: spec('histogram', ofShard, 'Records of a group: what one sync carries.'),
  millrace_group_bytes: spec('histogram', ofShard, 'Bytes of a group in the journal, padding included.'),
  millrace_journal_sync_seconds: spec('histogram', ofShard, 'One fdatasync of the journal.'),
  millrace_journal_records_total: spec('counter', ofShard, 'Records written to the journal.'),
  millrace_journal_written_bytes_total: spec('counter', ofShard, 'Bytes written to the journal, padding included.'),
  millrace_journal_write_seconds_total: spec('counter', ofShard, 'Time of the writes, without syncs.'),
  millrace_journal_unsettled_bytes: spec('gauge', ofShard, 'Journal slots in use.'),
  millrace_journal_budget_bytes: spec('gauge', ofShard, 'What they may come to before produce is at its slowest.'),
  millrace_journal_budget_left_seconds: spec(
    'gauge',
    ofShard,
    'How long the rest of the budget lasts at the write speed of the last ten seconds, were nothing settled.'
  ),
  millrace_journal_held_seconds_total: spec('counter', ofShard, 'How long produce was held back for the budget.'),
  millrace_journal_slots_rolled_total: spec('counter', ofShard, 'Slots that were sealed.'),
  millrace_journal_slots_unfilled_total: spec('counter', ofShard, 'Slots begun without a file that was filled ahead.'),
  millrace_disk_refused_requests_total: spec('counter', ofShard, 'Produce requests refused for lack of room.'),
  millrace_reads_total: spec('counter', ofShard, 'Reads that were answered.'),
  millrace_read_records_total: spec('counter', ofShard, 'Records of those reads.'),
  millrace_read_lent_bytes: spec(
    'gauge',
    ofShard,
    'Shared memory of large answers to Kafka clients that are gathered, read ahead or not sent yet, in whole chunks.'
  ),
  millrace_read_bytes_total: spec('counter', ['shard', 'source'], 'Bytes looked at for reads: memory or disk.'),
  millrace_settle_jobs_total: spec('counter', ['shard', 'result'], 'Settle jobs: done or failed.'),
  millrace_settle_read_bytes_total: spec('counter', ofShard, 'Bytes that settling read from slots.'),
  millrace_settle_written_bytes_total: spec('counter', ofShard, 'Bytes that settling wrote.'),
  millrace_settle_seconds_total: spec('counter', ofShard, 'Time of settle jobs.'),
  millrace_settle_rate_bytes_per_second: spec('gauge', ofShard, 'Speed of settling, as last measured.'),
  millrace_settle_buffered_jobs_total: spec('counter', ofShard, 'Settle jobs that could not bypass the page cache.'),
  millrace_direct_io: spec(
    'gauge',
    ofShard,
    '1: settle jobs bypass the page cache; 0: some did not; absent: none yet.'
  ),
  millrace_damaged_runs_total: spec('counter', ofShard, 'Ranges of records that settling found damaged or unreadable.'),
  millrace_quarantined_runs: spec('gauge', ofShard, 'Damaged ranges that the last start of the shard found.'),
  millrace_cleaner_failing: spec('gauge', ['cleaner'], '1: the last pass left something out.'),
  millrace_cleaner_passes_total: spec('counter', ['cleaner'], 'Passes that ended.'),
  millrace_cleaner_last_success_age_seconds: spec(
    'gauge',
    ['cleaner'],
    'Since a pass left nothing out; absent: none yet.'
  ),
  millrace_retention_segments_total: spec('counter', ofShard, 'Segments that retention dropped.'),
  millrace_retention_bytes_total: spec('counter', ofShard, 'Their stored bytes.'),
  millrace_compaction_partitions_total: spec('counter', [], 'Partitions that compaction went over.'),
  millrace_compaction_records_dropped_total: spec('counter', [], 'Records that compaction dropped.'),
  millrace_compaction_opaque_batches_total: spec(
    'counter',
    [],
    'Batches that compaction kept as they are, as their records cannot be decoded; in every pass.'
  ),
  millrace_compaction_read_bytes_total: spec('counter', [], 'Bytes that compaction read.'),
  millrace_compaction_written_bytes_total: spec('counter', [], 'Bytes that compaction wrote.'),
  millrace_compaction_failures_total: spec('counter', [], 'Partitions, or shards, that could not be compacted.'),
  millrace_tiering_segments_total: spec('counter', [], 'Segments moved to cold storage.'),
  millrace_tiering_bytes_total: spec('counter', [], 'Their bytes.'),
  millrace_tiering_removed_objects_total: spec('counter', [], 'Objects removed from cold storage.'),
  millrace_tiering_failures_total: spec('counter', [], 'Moves and removals that failed.'),
  millrace_cold_waits_total: spec('counter', ofShard, 'Reads that waited for cold storage.'),
  millrace_cold_fetches_total: spec('counter', ['result'], 'Segments fetched from cold storage: done or failed.'),
  millrace_cold_fetched_bytes_total: spec('counter', [], 'Their bytes.'),
  millrace_cold_evictions_total: spec('counter', [], 'Copies removed to make room for others.'),
  millrace_cold_cache_bytes: spec('gauge', [], 'Copies of cold segments on the local disk.'),
  millrace_disk_free_bytes: spec('gauge', [], 'Free room of the data directory; absent where the system does not say.'),
  millrace_disk_reserve_bytes: spec('gauge', [], 'Free room below which produce is refused.'),
  millrace_disk_low: spec('gauge', [], '1: produce is refused for lack of room.'),
  millrace_watches: spec('gauge', [], 'Reads and streams that wait for records.'),
  millrace_topics: spec('gauge', [], 'Topics.'),
  millrace_partitions: spec('gauge', [], 'Partitions of all topics.'),
  millrace_consumer_groups: spec('gauge', [], 'Consumer groups.'),
  millrace_consumer_group_offsets: spec('gauge', [], 'Offsets that groups committed; a page tells of 200,000 of them.'),
  millrace_consumer_group_flush_failing: spec('gauge', [], '1: committed offsets cannot be stored.'),
  millrace_consumer_group_members: spec('gauge', ['kind'], 'Members of all groups, by what they speak: http or kafka.'),
  millrace_consumer_group_rebalances_total: spec(
    'counter',
    ['kind'],
    'Generations of all groups: times that who reads what was to be told anew.'
  ),
  millrace_consumer_group_evictions_total: spec(
    'counter',
    ['kind'],
    'Members removed because they were silent or late.'
  ),
  millrace_tls_certificate_expiry_seconds: spec('gauge', [], 'When the certificate in use expires, Unix time.'),
  millrace_tls_reload_failures_total: spec('counter', [], 'Certificates that could not be loaded.'),
  millrace_tls_failing: spec(
    'gauge',
    [],
    '1: the certificate has ended, or could not be replaced: the one before is in use.'
  ),
  millrace_scrape_seconds: spec('gauge', [], 'How long the numbers of this page took to gather.')
} as const satisfies Record<string, SeriesSpec>
export type ProcessSeries = keyof typeof processSeries
