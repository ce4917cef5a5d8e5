/** What a scan of a produce body found, read back from the ring layout that it writes. */
import assert from 'node:assert/strict'
import { keyHashes } from '../../../../src/model/key-hashes.ts'
import { scanOutcomes, type RecordRows, type ScanOutcome } from '../../../../src/wire/produce/record-rows.ts'
import type { Reference } from '../json/random-bodies.ts'

const LEAD = 8

export interface BodyScanner extends RecordRows {
  scan(bytes: Buffer, start: number, end: number): ScanOutcome
}

/** Headers as a record of a batch has them, decoded plainly. */
function headersOf(bytes: Buffer): [string, Buffer | null][] {
  let at = 0
  const part = (): Buffer | null => {
    const length = number()
    if (length < 0) return null
    assert.ok(at + length <= bytes.length)
    at += length
    return Buffer.from(bytes.subarray(at - length, at))
  }
  const number = (): number => {
    let zigzag = 0
    for (let unit = 1; ; unit *= 0x80) {
      const byte = bytes[at++] as number
      zigzag += (byte & 0x7f) * unit
      if (byte < 0x80) return zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2
    }
  }
  const headers = Array.from({ length: number() }, (): [string, Buffer | null] => [String(part()), part()])
  assert.equal(at, bytes.length)
  return headers
}

/** Scans source[start, end), and checks all that the records say of themselves against what they write. */
export function scanned(scanner: BodyScanner, source: Buffer, start = 0, end = source.length): Reference {
  const outcome = scanner.scan(source, start, end)
  if (outcome === scanOutcomes.malformed) return { outcome: 'malformed' }
  if (outcome === scanOutcomes.illTyped) return { outcome: 'ill-typed', field: scanner.field }
  const partitions = Uint32Array.from({ length: scanner.count }, (_, i) => Math.max(scanner.partitionOf(i), 0))
  const ring = Buffer.from(new SharedArrayBuffer(LEAD + scanner.ringBytes))
  assert.equal(scanner.writeAll(partitions, ring, LEAD), ring.length, 'exactly ringBytes are written')
  let at = LEAD
  const sizes: number[] = []
  const records = Array.from({ length: scanner.count }, (_, i) => {
    const first = at
    const keyBytes = ring.readInt32BE(at)
    at += 4 + Math.max(keyBytes, 0)
    const key = keyBytes < 0 ? null : Buffer.from(ring.subarray(at - keyBytes, at))
    const valueBytes = ring.readUInt32BE(at)
    at += 4 + valueBytes
    const value = Buffer.from(ring.subarray(at - valueBytes, at))
    assert.equal(ring.readUInt32BE(at), partitions[i])
    const sequence = ring.readBigInt64BE(at + 4)
    assert.equal((BigInt(scanner.sequenceHighOf(i)) << 32n) + BigInt(scanner.sequenceLowOf(i)), sequence)
    at += 12
    const headersLength = scanner.hasHeaders ? ring.readUInt32BE(at) : 1
    const headers = scanner.hasHeaders ? headersOf(ring.subarray(at + 4, at + 4 + headersLength)) : []
    if (scanner.hasHeaders) at += 4 + headersLength
    const payloadBytes = (key?.length ?? 0) + value.length + (headers.length === 0 ? 0 : headersLength)
    assert.equal(scanner.ringBytesOf(i), at - first)
    assert.equal(scanner.payloadBytesOf(i), payloadBytes)
    for (const hash of Object.values(keyHashes))
      assert.equal(scanner.hashKeyOf(i, 7, hash), key === null ? -1 : hash(key, 0, key.length, 7))
    sizes.push(payloadBytes)
    return { key, value, partition: scanner.partitionOf(i), sequence, headers }
  })
  assert.equal(
    scanner.hasHeaders,
    records.some(({ headers }) => headers.length > 0)
  )
  assert.equal(scanner.largestPayloadBytes, Math.max(0, ...sizes))
  if (sizes.length > 0) assert.equal(sizes[scanner.largestPayloadIndex], scanner.largestPayloadBytes)
  return { outcome: 'sound', records, producerId: scanner.producerId }
}
