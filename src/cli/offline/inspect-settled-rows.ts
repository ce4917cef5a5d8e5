/** The rows of `inspect manifest` and `inspect segments`. Pure. Field names are those of the HTTP API where it has the thing. */
import type { Extent, Manifest, ManifestPartition, ManifestProducer } from '../../log/manifest.ts'
import { packPath, segmentPath } from '../../log/segment-files.ts'
import { leaderEpochOf } from '../../model/leader-epochs.ts'
import { SEQUENCE_END, epochOf, unwrappedOf } from '../../wire/batch/sequences.ts'
import type { PlacedManifest, PlacedSegment } from './inspect-settled.ts'
import { showTime } from '../format.ts'
import type { Row } from './inspect-rows.ts'
import { showPartition, type PartitionNames } from './partition-names.ts'

/** What a manifest says of its shard, then a row for each of its partitions. */
export function* manifestRows({ journal, manifest, problem }: PlacedManifest, names: PartitionNames): Generator<Row> {
  if (manifest === null) {
    yield {
      json: { shard: journal.shard, problem },
      text: `shard=${journal.shard} DAMAGED: ${problem}`,
      isDamage: true
    }
    return
  }
  yield headRow(manifest, journal.shard)
  for (const partition of manifest.partitions.values()) yield partitionRow(partition, journal.shard, names)
}

function headRow(manifest: Manifest, shard: number): Row {
  const { commit, placementEpoch, settledSequence, settledGroup, receiveMsMax, nextPack, partitions, removals } =
    manifest
  const lines = removals.map(({ path, dueMs }) => `  to remove: ${path} from ${showTime(dueMs)} on`)
  return {
    json: {
      shard,
      commit,
      placement_epoch: placementEpoch,
      settled_slot: settledSequence,
      settled_group: settledGroup,
      receive_ms: receiveMsMax,
      next_pack: nextPack,
      partitions: partitions.size,
      removals: removals.map(({ path, dueMs }) => ({ file: path, due_ms: dueMs }))
    },
    text: [
      `shard=${shard} commit=${commit} settled_slot=${settledSequence} settled_group=${settledGroup} ` +
        `received=${showTime(receiveMsMax)} next_pack=${nextPack} partitions=${partitions.size} removals=${removals.length}`,
      ...lines
    ].join('\n'),
    isDamage: false
  }
}

function partitionRow(partition: ManifestPartition, shard: number, names: PartitionNames): Row {
  const { handle, directory, generation, startOffset, nextOffset, epochs, producers, segments, damaged } = partition
  const name = names.nameOf(handle)
  const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0)
  const lines = damaged.map(
    ({ firstOffset, nextOffset: next, path }) =>
      `  DAMAGED offsets=${firstOffset}..${next - 1}${path === null ? '' : ` kept in ${path}`}`
  )
  return {
    json: {
      shard,
      handle,
      topic: name.topic,
      partition: name.partition,
      directory,
      generation,
      start_offset: startOffset,
      next_offset: nextOffset,
      size_bytes: bytes,
      segments: segments.length,
      leader_epochs: epochs.map(({ epoch, startOffset: start }) => ({ epoch, start_offset: start })),
      producers: producers.map(producerJson),
      damaged: damaged.map(range => ({
        first_offset: range.firstOffset,
        last_offset: range.nextOffset - 1,
        file: range.path
      }))
    },
    text: [
      `  ${showPartition(name)} directory=${directory} start_offset=${startOffset} next_offset=${nextOffset} ` +
        `segments=${segments.length} size_bytes=${bytes} epoch=${leaderEpochOf(epochs)} ` +
        `producers=${producers.length} generation=${generation}`,
      ...lines
    ].join('\n'),
    // What it says of damage is not damage of the manifest.
    isDamage: false
  }
}

/** What is known of a producer; of one of Kafka's protocol in Kafka's terms, where its sequences begin anew with each epoch. */
function producerJson({ number, originHigh, originLow, next, usedMs }: ManifestProducer): object {
  const accepted = { number, accepted: next, used_ms: usedMs }
  if (originHigh >= 0) return accepted
  const nextSequence = (unwrappedOf(originHigh, originLow) + next) % SEQUENCE_END
  return { ...accepted, producer_epoch: epochOf(originHigh), next_sequence: nextSequence }
}

/** A segment with its extents. */
export function segmentRow({ journal, partition, segment }: PlacedSegment, names: PartitionNames): Row {
  const name = names.nameOf(partition.handle)
  const fileOf = ({ pack }: Extent): string =>
    pack === 0 ? segmentPath(partition.directory, segment, '.log') : packPath(journal, pack)
  const { baseOffset, nextOffset, bytes, receiveMsMax, firstReceiveMs, isSealed, compaction, extents } = segment
  const state = `${isSealed ? 'sealed' : 'active'}${compaction === 0 ? '' : ` compaction=${compaction}`}`
  return {
    json: {
      shard: journal.shard,
      topic: name.topic,
      partition: name.partition,
      base_offset: baseOffset,
      next_offset: nextOffset,
      size_bytes: bytes,
      first_receive_ms: firstReceiveMs,
      receive_ms: receiveMsMax,
      sealed: isSealed,
      compaction,
      extents: extents.map(extent => ({
        file: fileOf(extent),
        position: extent.position,
        bytes: extent.bytes,
        base_offset: extent.baseOffset,
        next_offset: extent.nextOffset,
        blocks: extent.blockCount
      }))
    },
    text: [
      `${showPartition(name)} segment=${baseOffset} offsets=${baseOffset}..${nextOffset - 1} size_bytes=${bytes} ` +
        `received=${showTime(firstReceiveMs)}..${showTime(receiveMsMax)} ${state}`,
      ...extents.map(
        extent =>
          `  ${fileOf(extent)} position=${extent.position} bytes=${extent.bytes} ` +
          `offsets=${extent.baseOffset}..${extent.nextOffset - 1} blocks=${extent.blockCount}`
      )
    ].join('\n'),
    isDamage: false
  }
}
