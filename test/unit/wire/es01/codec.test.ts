/** ES01 bytes against values written out by hand from the specification. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decodeConsumed, decodeConsumeRequest, encodeConsumeFrame } from '../../../../src/wire/es01/consume.ts'
import { encodeFrame, FrameReader, patchRequestId } from '../../../../src/wire/es01/frame.ts'
import { encodeHello, encodeHelloReply, readHello, readHelloReply } from '../../../../src/wire/es01/handshake.ts'
import { frameLengthMax } from '../../../../src/model/limits.ts'
import { NameReader } from '../../../../src/wire/es01/names.ts'
import { decodeProduced, encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import { encodeConsumed } from '../../../support/es01-consumed.ts'

/** Hex with spaces and line breaks for the reader. */
function hex(text: string): Buffer {
  return Buffer.from(text.replace(/\s+/g, ''), 'hex')
}

describe('handshake', () => {
  test('a hello is magic, features, token length, token', () => {
    assert.deepEqual(encodeHello('key', 1), hex('45533031 00000001 00000003 6b6579'))
  })

  test('a reply is magic, status, features, message length, message', () => {
    assert.deepEqual(encodeHelloReply(2, 1, 'no'), hex('45533031 02 00000001 00000002 6e6f'))
    assert.deepEqual(readHelloReply(hex('45533031 02 00000001 00000002 6e6f ff')), {
      bytes: 15,
      status: 2,
      features: 1,
      message: 'no'
    })
  })

  test('a hello is complete with its last token byte and not before', () => {
    const hello = encodeHello('secret', 1)
    for (let end = 0; end < hello.length; end++) assert.equal(readHello(hello, 0, end).kind, 'incomplete', `${end}`)
    assert.deepEqual(readHello(hello, 0, hello.length), { kind: 'complete', bytes: 18, features: 1, tokenBytes: 6 })
  })

  test('a wrong magic is the reason given, also when the token length is wrong too', () => {
    const verdict = readHello(hex('45533032 00000000 ffffffff'), 0, 12)
    assert.deepEqual(verdict.kind === 'refused' && verdict.status, 1)
  })

  test('a token of 1024 bytes is read and one of 1025 is refused before it arrives', () => {
    assert.equal(readHello(hex('45533031 00000000 00000400'), 0, 12).kind, 'incomplete')
    const verdict = readHello(hex('45533031 00000000 00000401'), 0, 12)
    assert.deepEqual(verdict.kind === 'refused' && verdict.status, 2)
  })

  test('a client refuses an answer that is not ES01, and a message without end', () => {
    assert.equal(typeof readHelloReply(Buffer.from('HTTP/1.1 400 Bad')), 'string')
    assert.equal(typeof readHelloReply(hex('45533031 01 00000000 ffffffff')), 'string')
  })
})

describe('produce', () => {
  const golden = hex(`
    0000003f 00000007 01
    0001 74
    ffffffff
    00000002
    00000002 6b31  00000003 612062  00000003 8000000000000000
    ffffffff       00000002 c3a9    ffffffff 0000000000000009`)

  test('a request is laid out as specified', () => {
    const records = [
      { key: 'k1', value: 'a b', partition: 3 },
      { value: Buffer.from('é'), sequence: 9n }
    ]
    const frame = encodeProduceFrame(7, 't', records)
    assert.equal(golden.length, 4 + golden.readUInt32BE(0), 'the example is consistent')
    assert.deepEqual(frame, golden)
  })

  test('a prepared frame is sent under another id by changing four bytes', () => {
    const frame = Buffer.from(golden)
    patchRequestId(frame, 0, 0xfffffffe)
    assert.deepEqual([...frame.subarray(4, 8)], [0xff, 0xff, 0xff, 0xfe])
    patchRequestId(frame, 0, 7)
    assert.deepEqual(frame, golden)
  })

  test('a producer id follows the topic', () => {
    const frame = encodeProduceFrame(1, 't', [], 'p1')
    assert.deepEqual(frame.subarray(9), hex('0001 74 00000002 7031 00000000'))
  })

  test('an answer gives partition, offset and duplicate per record', () => {
    const payload = hex('00000002  00000001 0000000100000002 00  00000003 0000000000000000 01')
    assert.deepEqual(decodeProduced(payload), [
      { partition: 1, offset: 2 ** 32 + 2, duplicate: false },
      { partition: 3, offset: 0, duplicate: true }
    ])
  })

  test('an answer that promises more results than it has is not read', () => {
    assert.equal(typeof decodeProduced(hex('ffffffff 00')), 'string')
    assert.equal(typeof decodeProduced(hex('0000')), 'string')
  })
})

describe('consume', () => {
  test('a request is laid out as specified, its offset exact to 64 bits', () => {
    const request = { topic: 'ab', partition: 2, offset: 2n ** 64n - 2n, maxRecords: 5, maxBytes: 0xffffffff }
    const frame = encodeConsumeFrame(9, request)
    assert.deepEqual(frame, hex('0000001d 00000009 02  0002 6162  00000002 fffffffffffffffe 00000005 ffffffff'))
    assert.deepEqual(decodeConsumeRequest(frame, 9, frame.length, new NameReader()), {
      topic: 'ab',
      partition: 2,
      offsetHigh: 0xffffffff,
      offsetLow: 0xfffffffe,
      maxRecords: 5,
      maxBytes: 0xffffffff
    })
  })

  test('a request that ends early is refused at every length', () => {
    const frame = encodeConsumeFrame(9, { topic: 'ab', partition: 2, offset: 0, maxRecords: 5, maxBytes: 6 })
    for (let end = 9; end < frame.length; end++) {
      assert.equal(typeof decodeConsumeRequest(frame, 9, end, new NameReader()), 'string', `${end}`)
    }
  })

  test('an answer is laid out as specified', () => {
    const payload = hex(`
      0000000000000003 0000000000000009 00000002
      00000001 0000000000000001 0000018bcfe56800 00000001 6b 00000001 76
      00000001 0000000000000002 ffffffffffffffff ffffffff    00000000`)
    const answer = {
      nextOffset: 3,
      highWatermark: 9,
      records: [
        { partition: 1, offset: 1, timestampMs: 1_700_000_000_000, key: Buffer.from('k'), value: Buffer.from('v') },
        { partition: 1, offset: 2, timestampMs: -1, key: null, value: Buffer.alloc(0) }
      ]
    }
    assert.deepEqual(decodeConsumed(payload), answer)
    assert.deepEqual(encodeConsumed(answer), payload)
  })

  test('an offset beyond the exact numbers comes back digit for digit', () => {
    const decoded = decodeConsumed(hex('fffffffffffffffe 0000000000000000 00000000'))
    assert.deepEqual(decoded, { nextOffset: 2n ** 64n - 2n, highWatermark: 0, records: [] })
  })

  test('an answer cut short anywhere, or with lying lengths, is not read', () => {
    const record = { partition: 1, offset: 1, timestampMs: 0, key: Buffer.from('key'), value: Buffer.from('value') }
    const payload = encodeConsumed({ nextOffset: 2, highWatermark: 2, records: [record] })
    for (let end = 0; end < payload.length; end++) {
      assert.equal(typeof decodeConsumed(payload.subarray(0, end)), 'string', `${end}`)
    }
    for (const at of [16, 40, 47]) {
      const lying = Buffer.from(payload)
      lying.writeUInt32BE(0x7fffffff, at)
      assert.equal(typeof decodeConsumed(lying), 'string', `length at ${at}`)
    }
  })
})

describe('frames', () => {
  test('a stream cut anywhere gives the same frames', () => {
    const stream = Buffer.concat([
      encodeFrame(1, 0x83, Buffer.alloc(0)),
      encodeFrame(2, 0xff, Buffer.from('not found: x')),
      encodeFrame(0xffffffff, 0x81, Buffer.alloc(300, 7))
    ])
    for (let cut = 0; cut <= stream.length; cut++) {
      const reader = new FrameReader(1024)
      const found: [number, number, number][] = []
      for (const part of [stream.subarray(0, cut), stream.subarray(cut)]) {
        reader.push(part)
        for (let frame = reader.next(); frame !== null; frame = reader.next()) {
          assert.ok(typeof frame !== 'string')
          found.push([frame.requestId, frame.opcode, frame.payload.length])
        }
      }
      assert.deepEqual(
        found,
        [
          [1, 0x83, 0],
          [2, 0xff, 12],
          [0xffffffff, 0x81, 300]
        ],
        `cut at ${cut}`
      )
      assert.equal(reader.rest.length, 0)
    }
  })

  test('a length below 5 or above the limit breaks the stream', () => {
    for (const length of [0, 4, 1025, 0xffffffff]) {
      const reader = new FrameReader(1024)
      const bytes = Buffer.alloc(9)
      bytes.writeUInt32BE(length)
      reader.push(bytes)
      assert.equal(typeof reader.next(), 'string', `${length}`)
    }
  })

  test('the frame limit leaves room for the largest record', () => {
    const mib = 1024 * 1024
    assert.deepEqual([8 * mib, 15 * mib, 32 * mib].map(frameLengthMax), [16 * mib, 16 * mib, 33 * mib])
  })
})

describe('names', () => {
  test('names that fall into one slot are told apart, and bytes that are no UTF-8 are refused', () => {
    const reader = new NameReader()
    const read = (text: Buffer): string | null => reader.read(text, 0, text.length)
    for (const name of ['axb', 'ayb', 'axb', 'ayb', '', 'größe', 'x'.repeat(300)]) {
      assert.equal(read(Buffer.from(name)), name)
    }
    assert.equal(read(Buffer.from([0xc3, 0x28])), null)
    assert.equal(read(Buffer.from([0xed, 0xa0, 0x80])), null)
  })
})
