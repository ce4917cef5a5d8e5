/**
 * Deletes the records of partitions below an offset when asked: start offsets move, durably, before anyone is told (W7).
 * Shard thread only, between groups. All that was asked in one turn is one group and one sync. Files are removed later,
 * by the settler.
 */
import { DiskError } from '../../src/disk/disk.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import type { ControlMessage } from '../../src/wire/shard/messages.ts'
import type { ReplyWriter } from './reply-writer.ts'
import type { Settling } from './settling.ts'

type DeleteRecords = Extract<ControlMessage, { kind: 'delete-records' }>

/** Moves of one group: as those of retention. */
const MOVES_MAX = 8192

export interface RecordDeletionParts {
  readonly log: ShardLog
  readonly settling: Pick<Settling, 'noteDropped'>
  readonly replies: Pick<ReplyWriter, 'acknowledge' | 'fail' | 'refuseByDisk'>
  /** Finishes what is under way: start offsets move between groups. */
  readonly finishGroup: () => void
}

export class RecordDeletion {
  readonly #parts: RecordDeletionParts
  readonly #asked: DeleteRecords[] = []

  constructor(parts: RecordDeletionParts) {
    this.#parts = parts
  }

  ask(message: DeleteRecords): void {
    this.#asked.push(message)
  }

  /** Does what was asked. Of a disk that refuses it nothing moves. @throws DiskError that poisons the shard */
  turn(): void {
    while (this.#asked.length > 0) this.#delete(this.#asked.splice(0, MOVES_MAX))
  }

  #delete(asked: readonly DeleteRecords[]): void {
    const { log, settling, replies, finishGroup } = this.#parts
    // What was sent before is readable by then, and may be deleted.
    finishGroup()
    const accepted = asked.filter(message => this.#accepts(message))
    const moves = new Map<PartitionLog, number>()
    for (const { handle, offset } of accepted) {
      const partition = log.table.logOf(handle)
      if (partition === undefined || offset <= (moves.get(partition) ?? partition.startOffset)) continue
      moves.set(partition, offset)
    }
    try {
      if (moves.size > 0) log.moveStarts([...moves].map(([partition, offset]) => ({ log: partition, offset })))
    } catch (error) {
      if (!(error instanceof DiskError) || log.isPoisoned) throw error
      for (const { id } of accepted) replies.refuseByDisk(id, 'deleting records', error.isFull)
      return
    }
    if (moves.size > 0) settling.noteDropped()
    for (const { id, handle } of accepted) replies.acknowledge(id, log.table.logOf(handle)?.startOffset ?? 0)
  }

  /** Answers what cannot be done. */
  #accepts({ id, handle, offset }: DeleteRecords): boolean {
    const { log, replies } = this.#parts
    if (log.table.topicOf(handle) === undefined) {
      // Deleted while the request was on its way: main knows the name.
      replies.fail(id, 'TOPIC_NOT_FOUND', {}, 'no')
      return false
    }
    // A partition without a log never had a record.
    const end = log.table.logOf(handle)?.highWatermark ?? 0
    if (offset > end) replies.fail(id, 'FIELD_RANGE', { field: 'offset', value: offset, min: 0, max: end }, 'no')
    return offset <= end
  }
}
