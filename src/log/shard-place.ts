/**
 * Where the files of a shard are, below the data directory: the one place that knows (durability, V7). Pure.
 *
 *   placement epoch 1        journal/003        packs/003
 *   from epoch 2 on          journal/e2/003     packs/e2/003
 *
 * A change of the number of shards makes the files of the next epoch beside those of the present one, so that until the
 * commit nothing of the present one is touched. Files of topics do not move: they belong to no shard.
 */

/** A shard in one placement. Manifests have these fields too. */
export interface ShardOfEpoch {
  readonly shard: number
  /** From 1; one more with each change of the number of shards. */
  readonly placementEpoch: number
}

/** The two folders of which each shard has a directory. */
export type ShardFolder = 'journal' | 'packs'

/** Directory of a shard's slots and manifest, relative to the data directory. */
export function journalPath(shard: ShardOfEpoch): string {
  return shardPath('journal', shard)
}

/** Directory of a shard's pack files, relative to the data directory. */
export function packDirectory(shard: ShardOfEpoch): string {
  return shardPath('packs', shard)
}

/** Directory that holds those of all shards of an epoch, relative to the data directory. */
export function epochDirectory(folder: ShardFolder, placementEpoch: number): string {
  return placementEpoch <= 1 ? folder : `${folder}/e${placementEpoch}`
}

/** The shard whose directory has that name; null: it is no directory of a shard. */
export function shardOfName(name: string): number | null {
  return /^\d{3,4}$/.test(name) ? Number(name) : null
}

function shardPath(folder: ShardFolder, { shard, placementEpoch }: ShardOfEpoch): string {
  return `${epochDirectory(folder, placementEpoch)}/${String(shard).padStart(3, '0')}`
}
