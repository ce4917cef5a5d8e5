/** What tools like to know of a broker's configuration, under Kafka's names. It is set at the start, not here. Pure. */
import { batchBytesMax } from '../../model/limits.ts'
import { COPIES } from './node.ts'
import type { KafkaSettings } from './settings.ts'
import { configSources, configTypes, type ShownConfig } from './topic-configs.ts'

/** Partitions of a topic whose creator leaves it to the broker, or that is made because somebody asked for it. */
export const DEFAULT_PARTITIONS = 1

/** By name. */
export function showBrokerConfig(settings: KafkaSettings): (ShownConfig & { readonly source: number })[] {
  const shown = (name: string, value: string, type: number, documentation: string) => ({
    name,
    value,
    isFixed: true,
    type,
    documentation,
    source: configSources.broker
  })
  return [
    shown('auto.create.topics.enable', String(settings.autoCreateTopics), configTypes.boolean, '--auto-create-topics'),
    shown('default.replication.factor', String(COPIES), configTypes.int, 'there is one copy'),
    shown('delete.topic.enable', 'true', configTypes.boolean, 'topics can be deleted'),
    shown('log.segment.bytes', String(settings.segmentBytes), configTypes.int, '--segment-bytes'),
    shown(
      'message.max.bytes',
      String(batchBytesMax(settings.maxRecordBytes)),
      configTypes.int,
      '--max-record-bytes, and 1 MiB'
    ),
    shown(
      'num.partitions',
      String(DEFAULT_PARTITIONS),
      configTypes.int,
      'of a topic whose creator leaves it to the broker'
    )
  ]
}
