/** Who holds which copies of what: the answer of `GET /raft`, in its field names. */

/** One partition, as the member that is asked sees it. */
export interface ReplicatedPartition {
  readonly topic: string
  readonly partition: number
  readonly role: 'leader' | 'follower' | 'candidate'
  readonly term: number
  /** Node id; null: none is known. */
  readonly leader: number | null
  readonly commit_index: number
  readonly last_log_index: number
  /** Node ids, ascending. */
  readonly caught_up: readonly number[]
  /** null: only a leader knows. */
  readonly has_quorum: boolean | null
}

export interface Replication {
  /** null: this broker stands alone. */
  readonly node_id: number | null
  /** Node ids of all configured members, this one included, ascending. */
  readonly members: readonly number[]
  readonly partitions: readonly ReplicatedPartition[]
  /** True if what is acknowledged is on more than one machine. */
  readonly replicating: boolean
}

/** Of an engine that keeps one copy (D31). */
export const unreplicated: Replication = { node_id: null, members: [], partitions: [], replicating: false }
