/**
 * The one table of HTTP routes. Both engines, the documentation and its test read it. Main thread.
 */
import type { BodySink } from './engine.ts'
import { forgetProducer, listProducers, runCompaction, runRetention, tieredSegments } from './admin-routes.ts'
import { consume } from './consume-exchange.ts'
import type { Exchange } from './exchange.ts'
import { offsets } from './offset-routes.ts'
import { produce } from './produce-exchange.ts'
import {
  changeTopicConfig,
  createTopic,
  deleteTopic,
  describeTopic,
  healthz,
  listTopics,
  readyz,
  topicConfig
} from './topic-routes.ts'

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Segments as they stand, `:name` for any one segment. */
  readonly pattern: string
  /** One sentence for the documentation. */
  readonly about: string
  /** Served also while the broker is not ready. */
  readonly isHealth: boolean
  /** Answers, or returns who takes the body and answers later. What it throws becomes the answer. */
  readonly run: (exchange: Exchange) => BodySink | null
}

function route(method: Route['method'], pattern: string, run: Route['run'], about: string): Route {
  return { method, pattern, run, about, isHealth: pattern.endsWith('z') }
}

export const routes: readonly Route[] = [
  route('POST', '/topics', createTopic, 'Create a topic.'),
  route('GET', '/topics', listTopics, 'List the topics.'),
  route('GET', '/topics/:name', describeTopic, 'Partitions, offsets, sizes and configuration of a topic.'),
  route('DELETE', '/topics/:name', deleteTopic, 'Delete a topic and its data.'),
  route('GET', '/topics/:name/config', topicConfig, 'The resolved configuration of a topic.'),
  route('PUT', '/topics/:name/config', changeTopicConfig, 'Change it; omitted fields keep their value.'),
  route('POST', '/topics/:name/produce', produce, 'Append records; answered when they are on disk.'),
  route('GET', '/topics/:name/consume', consume, 'Read a partition from an offset.'),
  route('GET', '/topics/:name/offsets', offsets, 'Where partitions begin and end, and the first record at a time.'),
  route('GET', '/admin/producers', listProducers, 'Idempotent producers, and what each sent last to which partition.'),
  route('POST', '/admin/run-retention', runRetention, 'Drop at once the segments that have had their time.'),
  route('GET', '/admin/tiered/:topic/:partition', tieredSegments, 'Base offsets of the segments in cold storage.'),
  route('POST', '/admin/run-compaction', runCompaction, 'Compact at once every topic whose policy says so.'),
  route('DELETE', '/admin/producers/:id', forgetProducer, 'Forget one: its next use starts afresh.'),
  route('GET', '/healthz', healthz, 'The process lives; with the number of topics.'),
  route('GET', '/readyz', readyz, 'The broker serves requests.')
]
