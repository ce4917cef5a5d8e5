/**
 * Says whether a partition read back is what was sent: count, offsets, content hash, order. Pure.
 * Finds loss, doubles, wrong order and changed bytes, and names the first place.
 */
import { createHash } from 'node:crypto'
import type { DemoRecord } from './records.ts'

/** A record as it was read. */
export interface ReadRecord extends DemoRecord {
  readonly offset: number
}

/** A partition is not what it should be; the message says where and how. */
export class Mismatch extends Error {
  override readonly name = 'Mismatch'
}

/** SHA-256 over key and value of each record in order, with their lengths, so that no two lists share a text. */
export function contentHash(records: Iterable<DemoRecord>): string {
  const hash = createHash('sha256')
  for (const { key, value } of records) {
    hash.update(`${Buffer.byteLength(key)}:${Buffer.byteLength(value)}:`)
    hash.update(key)
    hash.update(value)
  }
  return hash.digest('hex')
}

/**
 * Compares a whole partition of a fresh topic, read from offset 0, with what was sent to it.
 * @returns the content hash of both. @throws Mismatch
 */
export function verifyPartition(name: string, sent: readonly DemoRecord[], read: readonly ReadRecord[]): string {
  for (let i = 0; i < Math.max(sent.length, read.length); i++) {
    const expected = sent[i]
    const actual = read[i]
    if (actual === undefined) {
      throw new Mismatch(`${name}: ${sent.length - i} of ${sent.length} records are missing from offset ${i} on`)
    }
    if (actual.offset !== i) throw new Mismatch(`${name}: offset ${actual.offset} stands where ${i} belongs`)
    if (expected === undefined || expected.key !== actual.key || expected.value !== actual.value) {
      throw new Mismatch(`${name}: offset ${i} ${describeFault(sent, read, i)}`)
    }
  }
  const hash = contentHash(sent)
  if (contentHash(read) !== hash) throw new Mismatch(`${name}: the content hash differs`)
  return hash
}

/** How the list goes on says what happened at its first wrong place. */
function describeFault(sent: readonly DemoRecord[], read: readonly ReadRecord[], at: number): string {
  const same = (a: DemoRecord | undefined, b: DemoRecord | undefined): boolean =>
    a !== undefined && b !== undefined && a.key === b.key && a.value === b.value
  const actual = read[at]
  const counts = `(${sent.length} sent, ${read.length} read)`
  if (read.length > sent.length) return `repeats a record or holds one that was never sent ${counts}`
  if (read.length < sent.length && same(sent[at + 1], actual)) return `lacks the record that was sent there ${counts}`
  const elsewhere = sent.findIndex(one => same(one, actual))
  if (elsewhere === -1) return `holds a record that was never sent to this partition ${counts}`
  return `holds the record that belongs at ${elsewhere}: out of order ${counts}`
}
