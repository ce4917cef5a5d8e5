/**
 * What clients of the Kafka protocol were reported to stumble over with other brokers, one row each: the tests here that
 * hold this broker to it, by their names, or why it cannot happen.
 */
export interface ReportRow {
  /** Of the list of reports that this one follows. */
  readonly number: number
  readonly reports: string
  /** Names of tests in the files beside this one. */
  readonly tests: readonly string[]
  /** What of it cannot happen here, and why; null: all of it could. */
  readonly cannot: string | null
}

const noTransactions = 'there are no transactions: none is aborted, and none is open'

export const reportRows: readonly ReportRow[] = [
  row(1, 'nisshi-io/nisshi#62', ['nisshi#62: a fetch answer is laid out as its version says, to the last byte']),
  row(2, 'nisshi-io/nisshi#668', [
    'nisshi#668: a fetch is answered at once where there is enough, and after its wait where there is nothing'
  ]),
  row(3, 'redpanda-data/redpanda#1115', ['redpanda#1115: max_wait is honoured on incremental fetches']),
  row(4, 'redpanda-data/redpanda#17581', [
    'redpanda#17581: what the clients of today pick by default is within the ranges, so nobody is cut off'
  ]),
  row(5, 'redpanda-data/redpanda#3826, #3039', [
    'redpanda#3826: batches of an idempotent producer that are sent one behind the other are all in order',
    'redpanda#3039: a batch that comes again is written once, each of the last five'
  ]),
  row(6, 'redpanda-data/redpanda#22670 (PR 22687)', [
    'redpanda#22670: a producer of whom nothing is known may begin with any sequence, as after its state was dropped'
  ]),
  row(7, 'redpanda-data/redpanda#5355', [
    'redpanda#5355: a shard that dies is told by codes that a producer retries, and its retries write nothing twice'
  ]),
  row(
    8,
    'redpanda-data/redpanda PR 18852',
    ['redpanda PR 18852: no fetch has aborted transactions, whatever its isolation'],
    `of read_uncommitted alone: ${noTransactions}`
  ),
  row(
    9,
    'redpanda-data/redpanda#17622, #29223',
    [
      'redpanda#17622: Metadata is answered in each version from 0 to 12',
      'redpanda#29223: what is not there is not advertised'
    ],
    'that groups of KIP-848 work: they are not there, and clients fall back as they are not advertised'
  ),
  row(10, 'redpanda-data/redpanda#395, #132', [
    'redpanda#395: a topic that is made because it was asked for is in the next metadata, and can be written'
  ]),
  row(11, 'streamnative/kop#166', [
    'kop#166: ApiVersions 3 is answered under the header of version 0, to a client that gives its name'
  ]),
  row(
    12,
    'streamnative/kop#397 (PR 1321)',
    ['kop#397: read_committed reads all there is, without a coordinator of transactions'],
    null
  ),
  row(13, 'kroxylicious/kroxylicious#2844 (PR 2851)', [
    'kroxylicious#2844: every version that librdkafka 2.0.2 looks for before it uses a feature is in its range'
  ]),
  row(14, 'apache/kafka#18727, #20116', [
    'kafka#18727: Produce is advertised from 0, and JoinGroup from 0, as Kafka 4 does again'
  ]),
  row(15, 'twmb/franz-go#1025 (PR 1022), #1009', [
    'franz-go#1025: ApiVersions of any version is answered, and the connection lives on'
  ]),
  row(
    16,
    'twmb/franz-go#1229, #1281 (PR 1230, 1300, 1401), PR 1398, PR 1203',
    [
      'franz-go#1229: a batch with leader epoch 0, or any other, is taken',
      'franz-go#1281: an idempotent producer begins where it likes, and goes on from there alone',
      'franz-go PR 1203: leader epochs are told as 0, and a client that knows none is served'
    ],
    `that InitProducerId aborts what is open (PR 1398): ${noTransactions}`
  ),
  row(17, 'confluentinc/librdkafka#2389, #4995, #4870, PR 4806, #4956', [
    'franz-go#1025: ApiVersions of any version is answered, and the connection lives on',
    'librdkafka#4995: a fetch by name and one by id bring the same',
    'librdkafka#4870: every topic has an id from its creation, which is not zero and no other has',
    'kroxylicious#2844: every version that librdkafka 2.0.2 looks for before it uses a feature is in its range'
  ]),
  row(
    18,
    'AutoMQ/automq#709 (PR 755)',
    ['automq#709: a batch of a transaction is refused, so none can be read that was aborted'],
    `that aborted records are read: ${noTransactions}`
  ),
  row(19, 'Azure/azure-event-hubs-for-kafka#209, #252; Azure/azure-event-hubs-emulator-installer#72', [
    'azure-event-hubs#209: who asks for a transaction is refused with words, and is not cut off',
    'redpanda#17622: Metadata is answered in each version from 0 to 12'
  ]),
  row(20, 'segmentio/kafka-go#1360, #1378; kafkaex/kafka_ex#497', [
    'kafka-go#1360: a member that speaks JoinGroup 0 or 1 gets its group'
  ]),
  row(21, 'aiven/inkless PR 265', ['inkless PR 265: fetches of versions without topic ids work by name alone']),
  row(22, 'spirit-labs/tektite#200', [
    'tektite#200: InitProducerId gives an id in each version, under which batches are written'
  ])
]

function row(number: number, reports: string, tests: readonly string[], cannot: string | null = null): ReportRow {
  return { number, reports, tests, cannot }
}
