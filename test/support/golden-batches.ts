/** The batches of test/fixtures/client-batches, by codec: the same records, as Kafka's Java client makes them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const directory = fileURLToPath(new URL('../fixtures/client-batches', import.meta.url))

export const goldenCodecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
export type GoldenCodec = (typeof goldenCodecs)[number]

export function goldenFile(name: string): Buffer {
  return readFileSync(join(directory, name))
}

export function goldenBatch(codec: GoldenCodec): Buffer {
  return goldenFile(`${codec}.batch`)
}

/** What all of them stand for: the records, encoded one behind another. */
export function goldenRecords(): Buffer {
  return goldenBatch('none').subarray(61)
}
