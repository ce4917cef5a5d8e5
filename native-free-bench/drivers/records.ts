/**
 * The requests that a load sends, as bytes: records of printable pseudo-random text (so that no layer can gain from
 * equal bytes), as an ES01 produce frame or an HTTP request. Pure; made once before a window, never inside one.
 */
import { createDice, fillText, keyOf, KEY_COUNT } from '../../src/client/load/record-text.ts'
import { FRAME_HEAD_BYTES } from './es01.ts'
import type { ProduceTemplate } from './driver.ts'

export interface RecordShape {
  readonly topic: string
  readonly records: number
  /** Bytes of a value. */
  readonly valueBytes: number
  /** True: every record has a key and is routed by it. False: no keys, the partition is patched in. */
  readonly keyed: boolean
}

/** i64::MIN: the record has no sequence. */
const NO_SEQUENCE_HIGH = 0x8000_0000
/** Digits that are kept free for a partition in JSON: up to 99,999, five times what a topic may have. */
const PARTITION_DIGITS = 5

/** ES01 produce frame of `shape`; the request id is left 0. */
export function encodeEs01Produce(shape: RecordShape, seed: number): ProduceTemplate {
  const dice = createDice(seed)
  const topic = Buffer.from(shape.topic)
  const keyBytes = shape.keyed ? keyOf(0).length : 0
  const recordBytes = 4 + keyBytes + 4 + shape.valueBytes + 4 + 8
  const bytes = Buffer.alloc(FRAME_HEAD_BYTES + 2 + topic.length + 4 + 4 + shape.records * recordBytes)
  const positions = new Uint32Array(shape.keyed ? 0 : shape.records)
  bytes.writeUInt32BE(bytes.length - 4, 0)
  bytes[8] = 0x01
  let at = bytes.writeUInt16BE(topic.length, FRAME_HEAD_BYTES)
  at += topic.copy(bytes, at)
  at = bytes.writeInt32BE(-1, at)
  at = bytes.writeUInt32BE(shape.records, at)
  for (let i = 0; i < shape.records; i++) {
    at = bytes.writeInt32BE(shape.keyed ? keyBytes : -1, at)
    if (shape.keyed) at += bytes.write(keyOf(dice() % KEY_COUNT), at, 'latin1')
    at = bytes.writeUInt32BE(shape.valueBytes, at)
    fillText(bytes, at, at + shape.valueBytes, dice)
    at += shape.valueBytes
    if (!shape.keyed) positions[i] = at
    at = bytes.writeInt32BE(-1, at)
    at = bytes.writeUInt32BE(NO_SEQUENCE_HIGH, at)
    at = bytes.writeUInt32BE(0, at)
  }
  return {
    bytes,
    partitionPositions: positions,
    records: shape.records,
    payloadBytes: shape.records * (keyBytes + shape.valueBytes)
  }
}

/** HTTP produce request of `shape`, head and body. Partitions are written over blanks, which JSON allows. */
export function encodeHttpProduce(shape: RecordShape, seed: number, host: string): ProduceTemplate {
  const dice = createDice(seed)
  const parts: string[] = []
  const value = Buffer.alloc(shape.valueBytes)
  for (let i = 0; i < shape.records; i++) {
    fillText(value, 0, value.length, dice)
    const text = value.toString('latin1')
    const route = shape.keyed ? `"key":"${keyOf(dice() % KEY_COUNT)}"` : `"partition":${'0'.padEnd(PARTITION_DIGITS)}`
    parts.push(`{"value":"${text}",${route}}`)
  }
  const body = `{"records":[${parts.join(',')}]}`
  const head =
    `POST /topics/${shape.topic}/produce HTTP/1.1\r\nHost: ${host}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  const bytes = Buffer.from(head + body, 'latin1')
  const positions: number[] = []
  if (!shape.keyed) {
    const mark = Buffer.from('"partition":')
    for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at + 1)) positions.push(at + mark.length)
  }
  const keyBytes = shape.keyed ? keyOf(0).length : 0
  return {
    bytes,
    partitionPositions: Uint32Array.from(positions),
    records: shape.records,
    payloadBytes: shape.records * (keyBytes + shape.valueBytes)
  }
}

/** Writes a partition as JSON digits followed by blanks. */
export function writePartitionDigits(target: Buffer, at: number, partition: number): void {
  const text = String(partition).padEnd(PARTITION_DIGITS)
  for (let i = 0; i < PARTITION_DIGITS; i++) target[at + i] = text.charCodeAt(i)
}
