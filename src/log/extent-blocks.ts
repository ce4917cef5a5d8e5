/**
 * The blocks of one extent, made again from its batches. Pure over a reader, any thread.
 *
 * Base offset and leader epoch of a batch are outside its own checksum, so here they have other witnesses: in what was
 * settled and never compacted, each batch begins where the one before ends, or behind a range that is known to be damaged,
 * and has the epoch that its offset was written in. After a compaction offsets have gaps anywhere: they only grow.
 */
import { epochAt } from '../model/leader-epochs.ts'
import type { BatchView } from '../wire/batch/view.ts'
import { rebuildBlocks, type ReadLog } from './block-rebuild.ts'
import type { Extent, ManifestPartition, ManifestSegment } from './manifest.ts'
import { BlockBuilder, BlockTable } from './segment-blocks.ts'

/** What a partition knows that its batches are held against. */
export interface BatchWitness {
  readonly epochs: ManifestPartition['epochs']
  readonly damaged: readonly { readonly firstOffset: number; readonly nextOffset: number }[]
}

export interface RebuiltBlocks {
  readonly table: BlockTable
  /** Behind the last batch that is whole. */
  readonly nextOffset: number
  /** False: it ends before a batch that is not whole, or not the one that must stand there. */
  readonly isComplete: boolean
}

/**
 * @param read of the file in which the extent lies: positions from the file's start.
 * @cost reads the whole extent.
 */
export function rebuildExtent(
  read: ReadLog,
  witness: BatchWitness,
  segment: Pick<ManifestSegment, 'baseOffset' | 'compaction'>,
  extent: Pick<Extent, 'pack' | 'position' | 'bytes' | 'baseOffset' | 'nextOffset'>
): RebuiltBlocks {
  const { from, shift } = placeOf(extent)
  const endPosition = from + extent.bytes
  let expected = extent.baseOffset
  const accepts = (view: BatchView): boolean => {
    const { baseOffset, lastOffset, leaderEpoch } = view
    const follows = segment.compaction > 0 ? baseOffset >= expected : isNext(expected, baseOffset, witness.damaged)
    if (!follows || lastOffset >= extent.nextOffset) return false
    if (leaderEpoch !== epochAt(witness.epochs, baseOffset)) return false
    expected = lastOffset + 1
    return true
  }
  const builder = new BlockBuilder()
  const range = {
    segmentBase: segment.baseOffset,
    startPosition: from,
    endPosition,
    batchBytesMax: extent.bytes,
    accepts
  }
  const steps = rebuildBlocks((target, length, at) => read(target, length, at + shift), range, builder)
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  const table = new BlockTable(Buffer.from(builder.entries), segment.baseOffset)
  return { table, nextOffset: expected, isComplete: step.value.endPosition === endPosition }
}

/** Where block positions of an extent begin, and what is added to them for positions in its file. */
function placeOf({ pack, position }: Pick<Extent, 'pack' | 'position'>): { from: number; shift: number } {
  return pack === 0 ? { from: position, shift: 0 } : { from: 0, shift: position }
}

/** True if nothing but damaged ranges lies between the two offsets. */
function isNext(expected: number, offset: number, damaged: BatchWitness['damaged']): boolean {
  let reached = expected
  while (reached < offset) {
    const range = damaged.find(({ firstOffset, nextOffset }) => firstOffset <= reached && reached < nextOffset)
    if (range === undefined) return false
    reached = range.nextOffset
  }
  return reached === offset
}
