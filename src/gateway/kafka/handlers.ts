/**
 * The APIs that this listener has: one row each. What is advertised to clients is this table, with the versions that the
 * codec of each API has. Main thread.
 */
import type { KafkaHandler } from './handler.ts'
import { apiVersionsHandler } from './handlers/api-versions.ts'
import { fetchHandler } from './handlers/fetch.ts'
import { listOffsetsHandler } from './handlers/list-offsets.ts'
import { metadataHandler } from './handlers/metadata.ts'
import { produceHandler } from './handlers/produce.ts'

const rows: readonly KafkaHandler[] = [
  produceHandler,
  fetchHandler,
  listOffsetsHandler,
  metadataHandler,
  apiVersionsHandler
]

/** By key of their API. */
export const kafkaHandlers: ReadonlyMap<number, KafkaHandler> = new Map(rows.map(row => [row.api.key, row]))
