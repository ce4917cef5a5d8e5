/** What partitions hold, read to their end by Fetch: batches as they are stored, and the records in them. */
import assert from 'node:assert/strict'
import { codecs, inflate } from '../../src/wire/compression/inflate.ts'
import { BatchView, RecordCursor } from '../../src/wire/batch/view.ts'
import { splitBatches } from './client-batches.ts'
import { fetchPartitions } from './kafka-calls.ts'
import type { KafkaClient } from './kafka-client.ts'

export interface KeyedRecord {
  readonly offset: number
  readonly key: string | null
  readonly value: string
}

const INFLATED_MAX = 64 * 1024 * 1024

/** Every batch of a partition from an offset on. */
export async function fetchBatches(
  client: KafkaClient,
  topic: string,
  partition: number,
  from = 0
): Promise<readonly Buffer[]> {
  const batches: Buffer[] = []
  for (let offset = from; ;) {
    const [part] = await fetchPartitions(client, topic, { [partition]: offset })
    assert.ok(part !== undefined)
    assert.equal(part.errorCode, 0, `${topic}/${partition} offset ${offset}`)
    const got = splitBatches(part.records ?? Buffer.alloc(0))
    batches.push(...got)
    const last = got.at(-1)
    if (last !== undefined) offset = nextOffsetOf(last)
    if (offset >= part.highWatermark) return batches
    assert.ok(last !== undefined, 'a fetch before the end brings something')
  }
}

/** The offset behind a stored batch. */
export function nextOffsetOf(batch: Buffer): number {
  return Number(batch.readBigInt64BE(0)) + batch.readInt32BE(23) + 1
}

/** The records of a stored batch; null as a value is the empty text, as over HTTP. */
export function recordsOf(batch: Buffer): KeyedRecord[] {
  const view = new BatchView()
  view.open(batch, 0, batch.length)
  const cursor = new RecordCursor()
  const codec = view.attributes & 7
  let bytes = batch
  if (codec === codecs.none) cursor.open(batch, view)
  else {
    const inflated = inflate(codec, batch, view.recordsStart, view.end, INFLATED_MAX)
    assert.ok(inflated !== null, 'what a client compressed can be inflated')
    bytes = inflated
    cursor.openInflated(bytes, view)
  }
  const records: KeyedRecord[] = []
  const text = (start: number, length: number): string => bytes.toString('utf8', start, start + length)
  while (cursor.next()) {
    const key = cursor.keyLength < 0 ? null : text(cursor.keyStart, cursor.keyLength)
    const value = text(cursor.valueStart, Math.max(0, cursor.valueLength))
    records.push({ offset: view.baseOffset + cursor.offsetDelta, key, value })
  }
  assert.equal(cursor.status, 0)
  return records
}
