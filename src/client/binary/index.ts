/**
 * The client library, published as `millrace/client`: what a program needs to produce and consume over ES01, and to be a
 * member of a consumer group. Any thread with an event loop. It imports Node's own modules and nothing else; docs/client.md
 * describes it, docs/decisions/0029-the-client-library-closes-what-it-publishes.md says by which rules.
 */
export { BinaryClient, type ProduceOptions } from './binary-client.ts'
export { ClientError, type ClientErrorKind } from './client-error.ts'
export { Consumer, type ConsumerOptions, type GroupOptions, type PartitionsOptions } from './consumer.ts'
export type { GroupReadOptions, PipelinedOptions, ClientOptions, ReadOptions } from './options.ts'
export type { ReceivedRecord, StartPlace } from './partition-reader.ts'
export { PipelinedClient } from './pipelined-client.ts'
export type { ConsumedRecord } from '../../wire/es01/consume.ts'
export type { ProduceRecord, ProduceResult } from '../../wire/es01/produce-frame.ts'
export type { Consumed, ConsumeRequest } from '../es01/client.ts'
export type { ClientTls } from '../tls.ts'
