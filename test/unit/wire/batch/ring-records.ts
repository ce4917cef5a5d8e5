/** Test records and their ring layout (src/model/requests.ts), written here independently of the product's encoder. */
export interface TestRecord {
  readonly key: Buffer | null
  readonly value: Buffer
}

/** One record in ring layout: key_len i32 · key · value_len u32 · value · partition i32 · sequence i64. */
export function ringBytesOf(record: TestRecord): Buffer {
  const key = record.key ?? Buffer.alloc(0)
  const bytes = Buffer.alloc(20 + key.length + record.value.length)
  bytes.writeInt32BE(record.key === null ? -1 : key.length, 0)
  key.copy(bytes, 4)
  bytes.writeUInt32BE(record.value.length, 4 + key.length)
  record.value.copy(bytes, 8 + key.length)
  bytes.writeInt32BE(7, 8 + key.length + record.value.length)
  bytes.writeBigInt64BE(-(2n ** 63n), 12 + key.length + record.value.length)
  return bytes
}

/** Zig-zag varint of any i64, by exact arithmetic. */
export function varint(value: number | bigint): Buffer {
  let rest = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n))
  const bytes: number[] = []
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80)
    rest >>= 7n
  }
  bytes.push(Number(rest))
  return Buffer.from(bytes)
}

/** A record as any Kafka producer may send it, headers and all; for what the product's own encoder never writes. */
export interface KafkaRecord {
  readonly timestampDelta?: number | bigint
  readonly offsetDelta: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers?: readonly (readonly [string, Buffer | null])[]
}

const nullable = (bytes: Buffer | null): Buffer =>
  bytes === null ? varint(-1) : Buffer.concat([varint(bytes.length), bytes])

export function kafkaRecord(record: KafkaRecord): Buffer {
  const headers = record.headers ?? []
  const body = Buffer.concat([
    Buffer.from([0]),
    varint(record.timestampDelta ?? 0),
    varint(record.offsetDelta),
    nullable(record.key),
    nullable(record.value),
    varint(headers.length),
    ...headers.flatMap(([name, value]) => [nullable(Buffer.from(name)), nullable(value)])
  ])
  return Buffer.concat([varint(body.length), body])
}
