/** What the settler thread says of a shard, passed on to that shard. Main thread only. */
import { BrokerError } from '../model/errors.ts'
import type { ControlMessage } from '../wire/shard/messages.ts'
import { rethrowUnlessLost } from './shard-death.ts'
import type { ShardLink } from './shard-link.ts'
import type { SettlerListener } from './settler-thread.ts'

export interface ListenerParts {
  /** The link of a shard that runs, ready or not; null: it is down. */
  readonly linkOf: (shard: number) => ShardLink | null
  /** Sends a control message that nobody waits for. */
  readonly tell: (shard: number, make: (id: number) => ControlMessage) => void
  /** A job is committed and the shard has adopted it. */
  readonly onSettled: (shard: number, sequence: number) => void
}

export function settlerListener({ linkOf, tell, onSettled }: ListenerParts): SettlerListener {
  const ask = async (shard: number, make: (id: number) => ControlMessage): Promise<void> => {
    const link = linkOf(shard)
    if (link === null) throw new BrokerError('SHARD_DOWN', { shard })
    await link.control(make)
  }
  return {
    onFilled: (shard, file) => tell(shard, id => ({ kind: 'slots-filled', id, files: [file] })),
    onFillFailed: (shard, bytes) => tell(shard, id => ({ kind: 'slots-failed', id, bytes })),
    onSettledPart: (shard, changes) => {
      linkOf(shard)?.sendChanges(changes).catch(rethrowUnlessLost)
    },
    onSettled: async (shard, report) => {
      await ask(shard, id => ({ kind: 'settled', id, report }))
      onSettled(shard, report.sequence)
    },
    onFilesUnused: (shard, paths) => ask(shard, id => ({ kind: 'files-unused', id, paths })),
    onSettleFailed: (shard, failure) => tell(shard, id => ({ kind: 'settle-failed', id, failure }))
  }
}
