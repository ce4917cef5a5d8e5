/** Settles all shards of a stopped broker, so that no record lies in a journal. Holds the directory's lock meanwhile. */
import { randomBytes } from 'node:crypto'
import { systemClock } from '../../base/clock.ts'
import type { Disk } from '../../disk/disk.ts'
import type { StoreImage } from '../../control/store-image.ts'
import { SettleMemory } from '../../log/settle/settle-memory.ts'
import { settleAll, type SettleAllOptions } from '../../log/settle/settle-all.ts'
import type { HandlePlace } from '../../log/settle/settle.ts'
import { BrokerError } from '../../model/errors.ts'
import type { DataDirectory, ShardJournal } from './data-directory.ts'
import type { SettledShard } from './dump-plan.ts'
import { DumpRefusal } from './dump-refusal.ts'
import { PartitionNames } from './partition-names.ts'

/**
 * Brings everything from the journals into segment files and packs.
 * @param onProgress hears how many bytes of how many of the present shard are done.
 * @returns by shard. @throws DumpRefusal where a start would be refused; DiskError.
 */
export function settleShards(
  disk: Disk,
  directory: DataDirectory,
  image: StoreImage,
  onProgress: (doneBytes: number, totalBytes: number) => void
): SettledShard[] {
  const memory = new SettleMemory()
  const placeOf = placesOf(image)
  return journalsOf(directory, image).map(journal => {
    const { shard, label } = journal
    const options = {
      disk,
      directory: journal.directory,
      dataDirectory: directory.path,
      shard,
      placementEpoch: image.placementEpoch,
      hasManifest: image.placementEpoch > 1,
      newestSlot: newestSlotOf(image, shard),
      clock: systemClock,
      drawSalt: () => randomBytes(8),
      placeOf,
      memory
    }
    return { manifest: settleOne(options, onProgress), label }
  })
}

function settleOne(
  options: SettleAllOptions,
  onProgress: (doneBytes: number, totalBytes: number) => void
): SettledShard['manifest'] {
  try {
    const steps = settleAll(options)
    for (;;) {
      const step = steps.next()
      if (step.done === true) return step.value.manifest
      onProgress(step.value.doneBytes, step.value.totalBytes)
    }
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error
    const problem = String(error.details['problem'] ?? error.message)
    throw new DumpRefusal(
      `shard ${options.shard} cannot be read: ${problem}. 'millrace verify' says what is damaged; nothing was dumped`
    )
  }
}

/** The journals of the shards that own partitions; in the first epoch one that never wrote may have none. */
function journalsOf({ journals }: DataDirectory, image: StoreImage): readonly ShardJournal[] {
  const shardCount = image.shardCount ?? 0
  for (const { shard, sequence } of image.newestSlots) {
    if (sequence === 0 || shard >= shardCount || journals.some(journal => journal.shard === shard)) continue
    throw journalMissing(shard)
  }
  for (let shard = 0; shard < shardCount && image.placementEpoch > 1; shard++) {
    if (!journals.some(journal => journal.shard === shard)) throw journalMissing(shard)
  }
  return journals.filter(({ shard }) => shard < shardCount)
}

function journalMissing(shard: number): DumpRefusal {
  return new DumpRefusal(`the journal of shard ${shard} is missing: its records are gone; nothing was dumped`)
}

function newestSlotOf({ newestSlots }: StoreImage, shard: number): number {
  return newestSlots.find(slot => slot.shard === shard)?.sequence ?? 0
}

/** Where the files of a handle are, by the names in the store: what the broker itself says to its settler. */
function placesOf(image: StoreImage): (handle: number) => HandlePlace {
  const names = new PartitionNames(image)
  const directories = new Map(image.topics.map(({ name, id }) => [name, `topics/${name}~${id}`]))
  return handle => {
    const { topic, partition, isDeleted } = names.nameOf(handle)
    if (isDeleted) return { kind: 'dropped' }
    const directory = topic === null ? undefined : directories.get(topic)
    return {
      kind: 'kept',
      directory: directory === undefined ? `topics/unknown~h${handle}/0` : `${directory}/${partition}`
    }
  }
}
