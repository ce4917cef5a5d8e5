/** The decoder of kafkajs, an independent reader of the format, makes the same of a segment's `.log` as we wrote into it. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import { BlockTable } from '../../src/log/segment-blocks.ts'
import { chosenSeed, diceOf, replayLine } from '../support/log-random.ts'
import { blocksBytes, sampleKinds, sampleSegment, type SampleSegment } from '../support/log-segments.ts'

const FILE = 'test/integration/kafkajs-decoder.test.ts'

interface KafkajsRecord {
  readonly offset: string
  readonly timestamp: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly isControlRecord: boolean
  readonly batchContext: { readonly partitionLeaderEpoch: number; readonly lastOffsetDelta: number }
}

const require = createRequire(import.meta.url)
const Decoder: new (bytes: Buffer) => object = require('kafkajs/src/protocol/decoder.js')
/** What kafkajs does with the records of a fetch response: a length and batches, the last of them perhaps cut. */
const decodeMessages: (
  decoder: object
) => Promise<KafkajsRecord[]> = require('kafkajs/src/protocol/requests/fetch/v4/decodeMessages.js')

async function decode(batches: Buffer): Promise<KafkajsRecord[]> {
  const length = Buffer.alloc(4)
  length.writeInt32BE(batches.length)
  return decodeMessages(new Decoder(Buffer.concat([length, batches])))
}

interface Row {
  readonly offset: string
  readonly timestamp: string
  readonly key: string | null
  readonly value: string | null
  readonly isControl: boolean
  readonly leaderEpoch: number
}

const textOf = (bytes: Buffer | null): string | null => bytes?.toString('hex') ?? null

function wantedRows(segment: SampleSegment, position: number): Row[] {
  return segment.batches
    .filter(batch => batch.position >= position)
    .flatMap(batch =>
      batch.records.map(record => ({
        offset: String(record.offset),
        timestamp: String(record.timestampMs),
        key: textOf(record.key),
        value: textOf(record.value),
        isControl: batch.isControl,
        leaderEpoch: batch.leaderEpoch
      }))
    )
}

function seenRows(records: readonly KafkajsRecord[]): Row[] {
  return records.map(record => ({
    offset: record.offset,
    timestamp: record.timestamp,
    key: textOf(record.key),
    value: textOf(record.value),
    isControl: record.isControlRecord,
    leaderEpoch: record.batchContext.partitionLeaderEpoch
  }))
}

describe('the decoder of kafkajs', () => {
  for (const kind of sampleKinds) {
    it(`reads a ${kind} segment as it was written, from any block on`, async () => {
      const seed = chosenSeed()
      const segment = sampleSegment(diceOf(seed), kind, 150_000)
      const blocks = new BlockTable(blocksBytes(segment), segment.segmentBase)
      assert.ok(blocks.count > 15, replayLine(seed, FILE))
      for (let i = 0; i < blocks.count; i += 5) {
        const position = blocks.position(i)
        const records = await decode(segment.log.subarray(position))
        assert.deepEqual(seenRows(records), wantedRows(segment, position), `block ${i}, ${replayLine(seed, FILE)}`)
      }
    })
  }
})
