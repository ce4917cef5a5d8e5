/** The JSON of a list of producers. Pure. Sequences have up to 19 digits, all of them exact. */
import type { ProducerDescription, ProducerPosition } from '../../model/producer.ts'

function writePosition({ topic, partition, lastSequence, lastOffset }: ProducerPosition): string {
  const name = JSON.stringify(topic)
  return `{"topic":${name},"partition":${partition},"last_seen_sequence":${lastSequence},"last_offset":${lastOffset}}`
}

export function writeProducers(producers: readonly ProducerDescription[]): string {
  const entries = producers.map(({ id, partitions }) => {
    return `{"producer_id":${JSON.stringify(id)},"partitions":[${partitions.map(writePosition).join(',')}]}`
  })
  return `{"producers":[${entries.join(',')}]}`
}
