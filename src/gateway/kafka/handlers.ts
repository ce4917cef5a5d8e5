/**
 * The APIs that this listener has: one row each. What is advertised to clients is this table, with the versions that the
 * codec of each API has. Main thread.
 */
import type { KafkaHandler } from './handler.ts'
import { apiVersionsHandler } from './handlers/api-versions.ts'

const rows: readonly KafkaHandler[] = [apiVersionsHandler]

/** By key of their API. */
export const kafkaHandlers: ReadonlyMap<number, KafkaHandler> = new Map(rows.map(row => [row.api.key, row]))
