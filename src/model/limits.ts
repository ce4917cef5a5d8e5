/**
 * Every limit that is not a setting, in one table. Settings with their ranges are in src/config/schema.ts.
 * docs/configuration.md lists both; a test compares them.
 */
export const limits = {
  /** Bytes of a topic, group, producer or subject name (spec 1.14). */
  nameBytesMax: 200,
  /** Partitions of one topic (seed). */
  partitionsMax: 10_000,
  /** Ranges that the handles of one topic may be in: a message to a shard names all of them (decision 33). */
  topicRangesMax: 64,
  /** Partitions of all topics: what the memory table of a shard is sized for. */
  partitionsTotalMax: 200_000,
  /** Topics of the catalog, and those that one request of a Kafka client may create, change or delete. */
  topicsMax: 20_000,
  /** Records of one produce request (spec 4). */
  requestRecordsMax: 100_000,
  /** The highest that --max-record-bytes can be set to: no broker takes a larger record, so no client sends one. */
  recordBytesMax: 32 * 1024 * 1024,
  /** Headers of one record, and bytes of the name of one: far above any use, and their bytes count as the record's. */
  recordHeadersMax: 100,
  headerNameBytesMax: 1024,
  /** Default and ceiling of max_records and max_bytes of a consume (seed). */
  fetchRecordsDefault: 100,
  fetchBytesDefault: 1024 * 1024,
  /** Least and most of a topic's segment_bytes (spec 3). */
  segmentBytesMin: 128,
  segmentBytesMax: 2 ** 40,
  /** A segment rolls here whatever its topic says: positions and relative offsets are 31 bits in Kafka's files. */
  segmentBytesHard: 2 ** 31 - 1,
  /** A batch that the broker encodes is closed at this size (durability, Words). */
  batchBytesTarget: 256 * 1024,
  /**
   * Bytes of the records of a compressed batch, where the broker must look inside: the largest record there may be, and what
   * stands around it. What is larger is passed over, like damage.
   */
  inflatedBatchBytesMax: 33 * 1024 * 1024,
  /** Bytes of a client's own batch, and of a record that is answered out of a compressed one, beyond those of the largest record. */
  batchSurplusBytes: 1024 * 1024,
  /** A group takes no further request once it has this many bytes: what one write and one sync carry well (measured). */
  groupBytesTarget: 2 * 1024 * 1024,
  /** Producer ids of one key, and of all keys together (spec 4.1). */
  producersPerOwnerMax: 10_000,
  producersTotalMax: 100_000,
  /** API keys that work: each may be sent with any request, and all are in memory. */
  keysMax: 10_000,
  /** Revoked keys that stay listed; beyond it the oldest are forgotten, and nothing comes to their secrets again. */
  revokedKeysMax: 10_000,
  /** Rules of one key (spec 2.10). */
  keyRulesMax: 100,
  /** Sequences of a producer in a partition that are known as duplicates: the last so many (seed). */
  producerWindow: 128,
  /** A producer id that was not used for so long is forgotten (seed: 7 days). */
  producerIdleMs: 7 * 24 * 60 * 60 * 1000,
  /** The same of one that speaks Kafka's protocol: each start of such a client takes a new one (there: one day). */
  batchProducerIdleMs: 24 * 60 * 60 * 1000,
  /** Between two times that the store is told when producers were used last: little beside the days above. */
  producerSweepMs: 60_000,
  /** A key's quota bucket holds what its rate gives in so long (seed: one second of traffic). */
  quotaBurstMs: 1000,
  /** The debt that reads, and batches of Kafka clients, may leave is at most what the rate gives in so long (spec 2.11). */
  quotaDebtMs: 10_000,
  /** Quota buckets of a direction that are kept before those that are full again are dropped: a bucket has some 100 bytes. */
  idleBucketsMax: 1024,
  /** Consumer groups, and partitions that one of them has an offset for (spec 6). */
  groupsMax: 100_000,
  groupOffsetsMax: 100_000,
  /** The same over all groups: some 13 bytes each in memory, 30 on disk, and all are read at a start. */
  groupOffsetsTotalMax: 2_000_000,
  /** Bytes that a Kafka client may note beside one offset (offset.metadata.max.bytes there), and what that takes of the memory in one group, and in all. */
  offsetMetadataBytesMax: 4096,
  groupMetadataBytesMax: 8 * 1024 * 1024,
  groupMetadataBytesTotalMax: 64 * 1024 * 1024,
  /** Members of one group, and topics of one member (spec 7, seed). */
  groupMembersMax: 1_000,
  memberTopicsMax: 100,
  /** Members of all groups, and partitions that they have: what a process that only joins could take of the memory. */
  membersTotalMax: 100_000,
  assignedPartitionsMax: 10_000_000,
  /** Least and most that a member of a Kafka group may be silent (group.min and group.max.session.timeout.ms there). */
  classicSessionMsMin: 1_000,
  classicSessionMsMax: 30 * 60 * 1000,
  /** An empty Kafka group waits so long for more members to come with the first: they are started together (KIP-134). */
  classicGatherMs: 50,
  /** Protocols that one member of a Kafka group knows: each is looked at in each join. */
  classicProtocolsMax: 32,
  /** Bytes that one member of a Kafka group brings, that one group has of them and of assignments, and that all groups have. */
  classicMemberBytesMax: 1024 * 1024,
  classicGroupBytesMax: 16 * 1024 * 1024,
  classicBytesTotalMax: 128 * 1024 * 1024,
  /** Bytes of one schema (spec 10). */
  schemaBytesMax: 512 * 1024,
  /** Versions of all subjects (spec 10), and bytes of their texts: all are in memory. */
  schemaVersionsMax: 100_000,
  schemaBytesTotalMax: 64 * 1024 * 1024,
  /** Depth of nested values in one schema, and of messages in each other: a bound of the stack, far above any real schema. */
  schemaDepthMax: 128,
  /** Types that lead into each other through references while two schemas are compared: a bound of the stack. */
  schemaReferencesDepthMax: 500,
  /** Pairs of types that one comparison looks at: a bound of memory, some 200 bytes each. */
  schemaPairsMax: 500_000,
  /** Differences of two schemas that an answer names, and characters of each. */
  schemaProblemsMax: 20,
  schemaProblemCharactersMax: 500,
  /** For a schema to be parsed and compared, off the main thread; then that thread is ended. */
  schemaCheckMs: 5_000,
  /** Heap of such a thread, MiB: what the parsers and the texts of one comparison need many times over. */
  schemaCheckHeapMb: 256,
  /** Such threads: what hostile schemas can take of the machine. */
  schemaCheckThreads: 2,
  /** Versions that a transitive mode compares with, the newest, and bytes of their texts: what the time above is enough for. */
  comparedSchemasMax: 1_000,
  comparedSchemaBytesMax: 16 * 1024 * 1024,
  /** Registrations and changes of modes that run or wait: each may hold a text. */
  schemaChangesMax: 64,
  /** Comparisons that change nothing and run, one at a time, or wait: a key that only reads may ask for them. */
  schemaComparisonsMax: 32,
  /** Body of a request with a schema: each of its bytes may be an escape of six, and there is more in it. */
  schemaBodyBytesMax: 6 * 512 * 1024 + 64 * 1024,
  /** Fields that a route does not have and its answer names, and characters of each. */
  ignoredFieldsMax: 8,
  ignoredFieldCharactersMax: 40,
  /** For the records of a produce to be matched with a schema, and this much more for each MiB of them; then their thread is ended. */
  validationMs: 3_000,
  validationMsPerMib: 1_000,
  /** Such threads: what hostile patterns and records can take of the machine. */
  validationThreads: 2,
  /** Heap of such a thread, MiB: the schemas that it keeps, and a largest record as values. */
  validationHeapMb: 512,
  /** Produces of one key to one topic that are validated or wait for it. One more waits where it is. */
  validationLineMax: 1_000,
  /** Keys and topics with such produces at once. */
  validationLinesMax: 10_000,
  /** Of the memory below, what the produces of one key to one topic may hold, so that no one has it all. */
  validationLineShare: 4,
  /** Schemas with which matching took too long that are remembered, and the requests in a row that must not until one is forgotten. */
  slowSchemasMax: 1_000,
  slowSchemaRequests: 100,
  /** Produces that wait for such schemas, of all keys and topics: each may take its whole time, one after the other. */
  slowValidationsMax: 16,
  /** Copies of produces that are validated: together one part in this many of requestMemoryBytes, beside it. */
  validatedRequestShare: 4,
  /** Batches of Kafka's clients for one partition of a compacted topic whose keys are looked for, or that wait for it. One more waits where it is. */
  keyedBatchLineMax: 1_000,
  /** Copies of such batches: together one part in this many of requestMemoryBytes, beside it. */
  keyedBatchShare: 4,
  /** Schemas that such a thread keeps ready, and bytes of their texts: compiled, they are many times as large. */
  readySchemasMax: 64,
  readySchemaBytesMax: 1024 * 1024,
  /** Reads and streams that wait for records, of all connections: some 300 bytes each. */
  watchesMax: 100_000,
  /** Ceiling of max_wait_ms of a consume. */
  readWaitMsMax: 60_000,
  /** Streams that are open, of all clients: with its connection 9 KB each on uWebSockets.js, 30 KB on node:http (measured). */
  streamsMax: 10_000,
  /** Partitions of one stream: each event names where it is in all of them, in some 10 characters each. */
  streamPartitionsMax: 256,
  /** Partitions of all streams: some 1 KB each where nobody else waits at the same place. */
  streamedPartitionsMax: 100_000,
  /** Most of what a stream reads at once, and so of what is kept for one whose client is slow. */
  streamReadBytesMax: 256 * 1024,
  /** A stream that was silent for so long sends a comment: proxies and clients take a minute of silence for an end. */
  streamHeartbeatMs: 15_000,
  /** Before a stream tries again what failed for the moment, and what it tells its client to wait before it comes again. */
  streamRetryMs: 1_000,
  /** Between two flushes of committed offsets: with the writing itself it stays below the second of the seed. */
  groupFlushMs: 750,
  /** Offsets of one such commit to the store: what it does in a few milliseconds, so that others get their turn between. */
  groupFlushRows: 2_000,
  /** Between two looks for silent members (spec 7). */
  memberSweepMs: 2_000,
  /** Records looked at for one answer about lag in seconds: each may be a read of the disk. */
  lagReadsMax: 1_000,
  /** Of those, at once. */
  lagReadsAtOnce: 16,
  /** Requests in progress on one ES01 connection (seed). */
  connectionRequestsMax: 32,
  /** Answers that the client of an ES01 or Kafka connection has not taken, before no more of its requests are: a few writes' worth. */
  unsentBytesMax: 1024 * 1024,
  /** One ES01 or Kafka connection may hold this part of the reply memory, or one largest answer: no single one can hold it all. */
  connectionReplyShare: 16,
  /** Least and most ES01 and Kafka connections of a process; between them it is half of its file descriptors. */
  binaryConnectionsMin: 16,
  binaryConnectionsMax: 4096,
  /** Token of an ES01 hello (spec 12). */
  tokenBytesMax: 1024,
  /** Characters of one thing that an error's text repeats of a request; what is longer is cut. */
  errorDetailCharactersMax: 1000,
  /** Text of an ES01 error frame: a name of 200 bytes four times over. What is longer is cut. */
  errorTextBytesMax: 1024,
  /** From accepting an ES01 connection to the end of its hello, or a Kafka one to that of its authentication. */
  helloTimeoutMs: 10_000,
  /** From the length of a frame of ES01 or Kafka to its last byte: the largest one at half a MiB a second. */
  frameTimeoutMs: 30_000,
  /**
   * While request memory is short, such a frame that came in part must bring this much a second, over stalledReaderMs; and so much
   * that it would be whole within frameTimeoutMs: all of it is set aside meanwhile.
   */
  shortFrameBytesPerSecond: 16 * 1024,
  /** Such frames on their way that need more than a MiB may hold one part in this many of the request memory, or one frame. */
  largeFrameShare: 2,
  /** Those that need less, and buffers that are larger than they must be, each one part in this many. */
  smallFrameShare: 4,
  /** Of each of these the ES01 and Kafka connections of one client address may hold one part in this many, or one frame. */
  addressRequestShare: 2,
  /** For a client of ES01 or Kafka to take one write, of about 256 KiB. */
  binaryWriteTimeoutMs: 30_000,
  /** For a client of ES01 or Kafka to close too after our end, so that bytes on their way do not reset the answers. */
  binaryLingerMs: 1_000,
  /** Buffers that the ES01 listener keeps for the next connection that borrows one: some hundred reads at once. */
  idleBufferBytesMax: 8 * 1024 * 1024,
  /** A frame of ES01 or Kafka may always have this many bytes, and this much more than the largest record (spec 12). */
  frameBytesMin: 16 * 1024 * 1024,
  frameSurplusBytes: 1024 * 1024,
  /**
   * A gzip payload, or a batch of Kafka's clients in any codec, of so many bytes at most is inflated on the main thread, and a
   * gzip payload made there: with gzip a quarter of a millisecond at most, and the hand-over costs half of that (measured).
   */
  inflateAtOnceBytesMax: 16 * 1024,
  /** And inflated to so many at most. */
  inflatedAtOnceBytesMax: 64 * 1024,
  /** Large gzip frames that are being inflated, or wait inflated: one part in this many of requestMemoryBytes, beside it; or one frame. */
  inflatingShare: 4,
  /** Of that one client address may hold one part in this many, or one frame. */
  addressInflatingShare: 2,
  /** First bytes of a gzip payload that are inflated to see its topic, and twice as many each time until here, before the rest is. */
  gzipPrefixBytes: 512,
  gzipPrefixBytesMax: 2 * 1024,
  /** Silence of an ES01 or Kafka connection after which the system asks whether its peer still is: half-open ones end by that. */
  binaryKeepAliveMs: 60_000,
  /** A frame larger than this share of a ring travels in memory of its own, so an empty ring has room for any other. */
  ringFrameShare: 4,
  /** Such frames together may hold this part of the request memory beside it, so that a few large ones leave room for the many small. */
  movedFrameShare: 4,
  /** Copies of produces that wait for their producer id's turn: together one part in this many of requestMemoryBytes, beside it. */
  heldRequestShare: 4,
  /** Elements of one list of a Kafka message, and of all its lists: all partitions that there can be, and more. Each may become an object. */
  kafkaListElementsMax: 100_000,
  kafkaMessageElementsMax: 250_000,
  /**
   * Bytes of the Kafka requests in progress that may name very many things, and of fetches, which wait for records: decoded
   * they take some thirteen times as many (measured). Those that are as short as the last do not count, and may stand behind
   * others of their connection.
   */
  kafkaLongRequestsBytes: 4 * 1024 * 1024,
  kafkaFetchRequestsBytes: 8 * 1024 * 1024,
  kafkaShortRequestBytesMax: 4 * 1024,
  /** Requests in progress on one Kafka connection: clients have five in flight. Further ones wait in its socket. */
  kafkaConnectionRequestsMax: 16,
  /** Partitions that one Kafka fetch reads at once: enough to keep shards busy, few enough that little is read in vain. */
  kafkaFetchReadsMax: 16,
  /** What is read ahead for clients with a fetch session, of all of them; and how long it is kept for one that does not ask for it. */
  kafkaFetchAheadBytesMax: 64 * 1024 * 1024,
  kafkaFetchAheadMs: 1_000,
  /** A fetch with records waits no longer than it says, and so long at least, for reads that take long. */
  kafkaFetchLateMs: 1_000,
  /** A fetch of a key with a quota waits for those before it as long as it says, and so long at least: a client that says 0 gets its turn too. */
  fetchTurnWaitMsMin: 1_000,
  /** Fetch sessions of Kafka clients, of all and of one connection (Kafka: 1,000 in all). */
  fetchSessionsMax: 1_000,
  connectionFetchSessionsMax: 16,
  /**
   * Partitions of one such session, and of all: some 400 bytes each (measured) and a watch, and all together leave half of
   * watchesMax to others.
   */
  fetchSessionPartitionsMax: 10_000,
  fetchSessionPartitionsTotalMax: 50_000,
  /** A session that was not used for so long leaves if another one needs its room (Kafka: two minutes), or if its connection is gone. */
  fetchSessionIdleMs: 120_000,
  /**
   * Buffers that the Kafka listener keeps for its next requests and answers: one of a whole fetch, one that is on its way
   * to a client meanwhile, and reads. What is not kept is garbage beyond the heap, for which V8 stops to collect all of it.
   */
  kafkaIdleBufferBytesMax: 24 * 1024 * 1024,
  /** A Kafka request of a client that has not said who it is. */
  kafkaGreetingBytesMax: 64 * 1024,
  /** Depth of nested values in a JSON or MessagePack body: a bound of time and memory, far above any real document. */
  jsonDepthMax: 512,
  /** Bytes of one reply chunk in a reply ring. */
  replyChunkBytes: 256 * 1024,
  /**
   * Shared memory of one shard in which large answers to Kafka's fetches lie until they are sent, at most, and one chunk of it. A
   * client has an answer under way and another read ahead: some 16 MiB. Beyond that answers are copied, as small ones are.
   */
  lentAnswerBytes: 64 * 1024 * 1024,
  lentChunkBytes: 256 * 1024,
  /** A smaller answer of batches is copied: that costs less than a chunk which is away until its client has read it. */
  lentAnswerBytesMin: 64 * 1024,
  /** Rest of a fill of zeros between two pieces, beside shards that work: a disk that stood still must not make it stand still eight times as long. */
  fillRestMsMax: 250,
  /** Since a shard last wrote or was read, until a fill takes no heed of it any more: longer than a client takes to start. */
  fillQuietMs: 5_000,
  /** Between two looks at the files of the TLS certificate: a change counts once two looks in a row have seen it. */
  certificateLookMs: 2_000,
  /** From accepting a TLS connection to the end of its handshake. */
  tlsHandshakeMs: 10_000,
  /** Partitions of which a shard tells at once for /metrics: half a millisecond, between groups. */
  partitionsPerAnswer: 1000,
  /** Partitions and leader epochs that a shard tells of at once when it has recovered: each is some 60 bytes. */
  epochsPerPage: 500,
  /** Committed offsets that a page of /metrics tells of: with two lines each it has some 30 MB then. */
  scrapedOffsetsMax: 200_000,
  /** Up to so many partitions each scrape of /metrics reads everything anew; beyond, what is less than a second old serves again. */
  freshPartitionsMax: 1000,
  /** Headers of an HTTP request, all together. */
  httpHeaderBytesMax: 16 * 1024,
  /** Body of a request that creates or changes a topic, or deletes records: it is parsed whole on the main thread, where 64 KiB cost 1 ms. */
  topicBodyBytesMax: 64 * 1024,
  /** A body that nobody wants is read up to here to keep its connection; a longer one closes it. */
  drainedBodyBytesMax: 16 * 1024 * 1024,
  /** HTTP requests of one kind that wait for room or memory: connections are cheap, an endless line is not. */
  waitingRequestsMax: 10_000,
  /** Questions for offsets that one shard works on or that wait there: a search by time reads the disk, and they go one by one. */
  offsetQuestionsMax: 10_000,
  /** From the first byte of an HTTP request, or the accepting of its connection, to the end of its headers. */
  httpHeadersMs: 10_000,
  /** An HTTP body must bring this much a second, looked at over the time below or, while request memory is short, over stalledReaderMs. */
  httpBodyBytesPerSecond: 16 * 1024,
  httpBodyWindowMs: 10_000,
  /** An HTTP connection without a request is closed after this, as uWebSockets.js does by itself in its original. */
  httpIdleTimeoutMs: 10_000,
  /** An HTTP client that takes nothing of its answer for this long is cut off. Likewise. */
  httpWriteTimeoutMs: 10_000,
  /**
   * While reply memory is short, a client of either protocol that takes nothing of its answers for this long is cut off:
   * many times what a loaded client pauses, and short enough that those who wait for the memory do not give up.
   */
  stalledReaderMs: 2_000,
  /** While reply memory is short, an HTTP client must take this much of its answer a second, over stalledReaderMs, or is cut off. */
  shortAnswerBytesPerSecond: 16 * 1024,
  /**
   * The HTTP reads of one party (a key; a client address while authentication is off) may hold this part of the reply
   * memory: four that take nothing must come together before others wait for them.
   */
  partyReplyShare: 4,
  /** A read that finds too little reply memory for its max_bytes gets one part in this many of what is free: always room for the next. */
  shortReadShare: 4,
  /** But at least this many bytes of records, else it waits: one reply chunk, which the system mostly takes at once. */
  shortReadBytesMin: 256 * 1024,
  /** An HTTP produce body from this size on is scanned off the main thread: there the hand-over costs as much as the scan (0.2 ms). */
  offloadedBodyBytesMin: 256 * 1024,
  /** Shards that a state dump tells of, and how long it waits for their threads: one log line, whatever the machine. */
  dumpedShards: 64,
  dumpWaitMs: 1_000,
  /** Jobs of the background pool that run or wait. */
  backgroundJobsMax: 64,
  /**
   * Settle jobs of a shard in a row that a failed read of a slot or pack ended, before the next one gives up what it cannot read:
   * with the waits between them more than half a minute, which a controller that resets or a path that is lost may take.
   */
  unreadJobsMax: 3,
  /** Reads of such a run, or block of a pack, alone, one after the other, by the job that gives up. */
  unreadRunReads: 3,
  /**
   * A filled file of so many bytes is kept by each shard for its next start, which must write the groups in doubt anew even
   * if the disk is full (V3): the largest group of small requests, the epochs of 10,000 partitions, and then some.
   */
  recoverySlotBytes: 4 * 1024 * 1024,
  /** Damaged runs of one settle job that are reported one by one: the log stays readable. */
  damagedRunsReported: 100
} as const

/** What every record costs in `max_bytes` of a consume, beside key and value (spec 5.2). */
export const RECORD_OVERHEAD_BYTES = 32

/** The most that `length` of an ES01 request may say: room for the largest record and the fields around it. */
export function frameLengthMax(maxRecordBytes: number): number {
  return Math.max(limits.frameBytesMin, maxRecordBytes + limits.frameSurplusBytes)
}

/**
 * Bytes of the largest batch of a client that is taken: room for the largest record and what is around it. So a record out
 * of a compressed batch that is larger could not have been stored otherwise.
 */
export function batchBytesMax(maxRecordBytes: number): number {
  return maxRecordBytes + limits.batchSurplusBytes
}
