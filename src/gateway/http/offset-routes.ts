/** The route that tells where partitions begin and end, and where a time is in them. Main thread. */
import { writePartitionOffsets, writeTopicOffsets } from '../../wire/json/offsets-json.ts'
import type { Exchange } from './exchange.ts'
import { parseQuery, readPartition, readTime } from './query.ts'

/** Parameters of the route. */
export const offsetNames = ['partition', 'timestamp_ms'] as const

/** `GET /topics/:name/offsets` */
export function offsets(exchange: Exchange): null {
  const parameters = parseQuery(exchange.head.query, offsetNames)
  const partition = readPartition(parameters)
  const timestampMs = readTime(parameters, 'timestamp_ms')
  const isByTime = timestampMs !== null
  const answer = exchange.services.broker
    .offsetsAt(exchange.who, exchange.name, partition, timestampMs)
    .then(entries => {
      const [first] = entries
      const isOne = partition !== null && first !== undefined
      return isOne ? writePartitionOffsets(first, isByTime) : writeTopicOffsets(entries, isByTime)
    })
  exchange.answerWith(200, answer)
  return null
}
