/** Offsets of partitions as JSON text. Pure; any thread. All numbers are exact: they are safe integers. */
import type { PartitionOffsets } from '../../model/topic.ts'

/**
 * One partition. @param isByTime a time was asked for: where no record is that late, `offset` is the end and
 * `timestamp_ms` null.
 */
export function writePartitionOffsets(entry: PartitionOffsets, isByTime: boolean): string {
  const { partition, earliest, latest, found } = entry
  const bounds = `"partition":${partition},"earliest":${earliest},"latest":${latest}`
  if (!isByTime) return `{${bounds}}`
  return `{${bounds},"offset":${found?.offset ?? latest},"timestamp_ms":${found?.timestampMs ?? null}}`
}

/** All partitions of a topic. */
export function writeTopicOffsets(entries: readonly PartitionOffsets[], isByTime: boolean): string {
  return `{"partitions":[${entries.map(entry => writePartitionOffsets(entry, isByTime)).join(',')}]}`
}
