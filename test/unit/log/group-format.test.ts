/** The bytes of directory entries, written out: what is on disks today must be read as long as there are disks. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  DirectoryEntry,
  ENTRY_BYTES,
  GROUP_HEADER_BYTES,
  GROUP_TRAILER_BYTES,
  PRODUCER_RUN_BYTES,
  RUN_ROLLS,
  claimsGroup,
  entryBytes,
  entryKinds,
  groupBytes,
  readEntries,
  readGroupHeader,
  readGroupTrailer,
  sealGroup,
  writeEntry
} from '../../../src/log/group-format.ts'

function sampleEntry(): DirectoryEntry {
  const entry = new DirectoryEntry()
  entry.flags = RUN_ROLLS
  entry.handle = 0x01020304
  entry.baseOffset = 2 ** 40 + 5
  entry.nextOffset = 2 ** 40 + 8
  entry.position = 0x11223344
  entry.bytes = 0x55667788
  entry.checksum = 0x99aabbcc
  entry.batchCount = 2
  entry.receiveMs = 1_700_000_000_000
  entry.leaderEpoch = 7
  entry.recordCount = 3
  entry.producers = [
    { producerId: 2 ** 33 + 1, sequenceHigh: 0x80000000, sequenceLow: 0xfffffffe, count: 3, baseOffset: 2 ** 40 + 5 }
  ]
  return entry
}

const sampleHex = [
  '01010001 01020304 0000010000000005 0000010000000008',
  '11223344 55667788 99aabbcc 00000002 0000018bcfe56800',
  '00000007 00000003 0000000000000000',
  '0000000200000001 80000000fffffffe 00000003 00000000 0000010000000005'
]
  .join('')
  .replaceAll(' ', '')

describe('a directory entry', () => {
  it('has these bytes, producer runs behind it', () => {
    const entry = sampleEntry()
    const bytes = Buffer.alloc(entryBytes(entry))
    assert.equal(writeEntry(bytes, 0, entry), ENTRY_BYTES + PRODUCER_RUN_BYTES)
    assert.equal(bytes.toString('hex'), sampleHex)
  })

  it('reads back as it was written, one behind the other', () => {
    const plain = new DirectoryEntry()
    plain.kind = entryKinds.startOffset
    const bytes = Buffer.concat([Buffer.alloc(5), Buffer.from(sampleHex, 'hex'), Buffer.alloc(ENTRY_BYTES)])
    writeEntry(bytes, 5 + 96, plain)
    assert.deepEqual(readEntries(bytes, 5, bytes.length), [sampleEntry(), plain])
  })

  it('is refused if a directory ends within it or within its producer runs', () => {
    const bytes = Buffer.from(sampleHex, 'hex')
    for (let end = 1; end < bytes.length; end++) assert.equal(readEntries(bytes, 0, end), null, `${end} bytes`)
  })
})

describe('a group', () => {
  const header = {
    number: 9,
    lastSynced: 8,
    totalBytes: groupBytes(96, 0),
    directoryBytes: 96,
    bodyBytes: 0,
    entryCount: 1,
    receiveMs: 5,
    slotSequence: 3
  }
  function sealed(seed: number): Buffer {
    const bytes = Buffer.alloc(header.totalBytes, 0xee)
    Buffer.from(sampleHex, 'hex').copy(bytes, GROUP_HEADER_BYTES)
    sealGroup(bytes, 0, header, seed)
    return bytes
  }

  it('fills whole blocks, header, two directories, bodies and trailer in it', () => {
    const fixed = GROUP_HEADER_BYTES + GROUP_TRAILER_BYTES
    assert.equal(groupBytes(64, 4096 - fixed - 128), 4096)
    assert.equal(groupBytes(64, 4096 - fixed - 127), 8192)
  })

  it('is found by its header from the front and by its trailer from behind', () => {
    const bytes = sealed(1234)
    assert.deepEqual(readGroupHeader(bytes, 0, 1234), header)
    assert.deepEqual(readGroupTrailer(bytes, bytes.length, 1234), { number: 9, totalBytes: 4096, directoryBytes: 96 })
    assert.equal(bytes.toString('hex', 4096 - 32 - 96, 4096 - 32), sampleHex)
  })

  it('is nobody else’s: with the salt of another slot neither header nor trailer is whole', () => {
    const bytes = sealed(1234)
    assert.equal(readGroupHeader(bytes, 0, 1235), null)
    assert.equal(readGroupTrailer(bytes, bytes.length, 1235), null)
  })

  it('with any bit of header or directory turned is no group', () => {
    const bytes = sealed(1234)
    for (let at = 0; at < GROUP_HEADER_BYTES + 96; at++) {
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8))
      assert.equal(readGroupHeader(bytes, 0, 1234), null, `byte ${at}`)
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8))
    }
    for (let at = bytes.length - GROUP_TRAILER_BYTES - 96; at < bytes.length; at++) {
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8))
      assert.equal(readGroupTrailer(bytes, bytes.length, 1234), null, `byte ${at}`)
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8))
    }
    assert.notEqual(readGroupHeader(bytes, 0, 1234), null)
  })

  it('leaves its claim even where its checksum is gone', () => {
    const bytes = sealed(1234)
    bytes[70] = 0
    assert.deepEqual([readGroupHeader(bytes, 0, 1234), claimsGroup(bytes, 0, 9, 3)], [null, true])
    assert.deepEqual([claimsGroup(bytes, 0, 8, 3), claimsGroup(bytes, 0, 9, 2)], [false, false])
  })
})
