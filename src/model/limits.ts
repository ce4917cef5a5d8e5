/**
 * Every limit that is not a setting, in one table. Settings with their ranges are in src/config/schema.ts.
 * docs/configuration.md lists both; a test compares them.
 */
export const limits = {
  /** Bytes of a topic, group, producer or subject name (spec 1.14). */
  nameBytesMax: 200,
  /** Partitions of one topic (seed). */
  partitionsMax: 10_000,
  /** Partitions of all topics: what the memory table of a shard is sized for. */
  partitionsTotalMax: 200_000,
  /** Topics of the catalog. */
  topicsMax: 20_000,
  /** Records of one produce request (spec 4). */
  requestRecordsMax: 100_000,
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
  /** A group takes no further request once it has this many bytes: what one write and one sync carry well (measured). */
  groupBytesTarget: 2 * 1024 * 1024,
  /** Requests in progress on one ES01 connection (seed). */
  connectionRequestsMax: 32,
  /** A frame larger than this share of a ring travels as shared memory of its own. */
  ringFrameShare: 4,
  /** Depth of nested values in a JSON body: a bound of time and memory, far above any real document. */
  jsonDepthMax: 512,
  /** Bytes of one reply chunk in a reply ring. */
  replyChunkBytes: 256 * 1024,
  /** Headers of an HTTP request, all together. */
  httpHeaderBytesMax: 16 * 1024,
  /** An HTTP produce body from this size on is scanned off the main thread: there the hand-over costs as much as the scan (0.2 ms). */
  offloadedBodyBytesMin: 256 * 1024,
  /** Jobs of the background pool that run or wait. */
  backgroundJobsMax: 64
} as const

/** What every record costs in `max_bytes` of a consume, beside key and value (spec 5.2). */
export const RECORD_OVERHEAD_BYTES = 32
