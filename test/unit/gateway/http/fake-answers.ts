/** What a broker in memory answers to a read. */
import { readFormats, type ReadRequest } from '../../../../src/model/requests.ts'
import { encodeFrames } from '../../../support/record-frames.ts'

export interface StoredRecord {
  readonly key: Buffer | null
  readonly value: Buffer
  readonly sequence: bigint
  /** As they lie in the ring; absent where no record of its request has headers. */
  readonly headers?: Buffer
}

function jsonOf(record: StoredRecord, partition: number, offset: number, encoding: 'utf8' | 'base64'): object {
  const { key, value } = record
  return { partition, offset, timestamp_ms: 1, key: key && key.toString(encoding), value: value.toString(encoding) }
}

/** The answer of a read, in the format that it asks for. */
export function readAnswer(log: readonly StoredRecord[], read: ReadRequest): Buffer {
  const { partition, offsetHigh, offsetLow, maxRecords, format } = read
  const start = Math.min(offsetHigh * 2 ** 32 + offsetLow, log.length)
  const isBase64 = format === readFormats.jsonBase64 || format === readFormats.framesBase64
  const encoding = isBase64 ? 'base64' : 'utf8'
  const records = log
    .slice(start, start + maxRecords)
    .map((record, i) => jsonOf(record, partition, start + i, encoding))
  const offset = (BigInt(offsetHigh) << 32n) | BigInt(offsetLow)
  const next = records.length === 0 ? offset : BigInt(start + records.length)
  if (format === readFormats.framesUtf8 || format === readFormats.framesBase64) {
    const texts = records.map((record, i) => ({ offset: start + i, text: JSON.stringify(record) }))
    return encodeFrames({ nextOffset: next, highWatermark: log.length, records: texts })
  }
  const text = JSON.stringify(records)
  return Buffer.from(`{"records":${text},"next_offset":${next},"high_watermark":${log.length}}`)
}
