/** Frames of the Kafka protocol worked out by hand, byte for byte; headers, sizes, and strangers at the door. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { apiOfKey, apis } from '../../../../src/wire/kafka/apis/index.ts'
import {
  FRAME_SIZE_BYTES,
  checkFrameSize,
  foreignProtocolOf,
  readRequestHeader,
  readResponseHeader,
  requestFrame,
  responseFrame,
  responseSteps
} from '../../../../src/wire/kafka/headers.ts'
import type { AnyApi } from '../../../../src/wire/kafka/message.ts'

/** Hex with spaces and line breaks for the reader; 'quoted' parts are text. */
function hex(text: string): Buffer {
  const parts = text.match(/'[^']*'|[0-9a-f]+/g) ?? []
  return Buffer.concat(
    parts.map(part => (part.startsWith("'") ? Buffer.from(part.slice(1, -1)) : Buffer.from(part, 'hex')))
  )
}

/** The frame of a response that is written in steps, and how many there were. */
function writtenInSteps(
  api: AnyApi,
  version: number,
  body: object
): { readonly bytes: Buffer; readonly count: number } {
  const steps = responseSteps(api as never, version, 7, body as never)
  let step = steps.next()
  let count = 1
  for (; step.done !== true; count++) step = steps.next()
  return { bytes: Buffer.concat(step.value.pieces), count }
}

/** Both ways: the frame of that response is these bytes, and these bytes are that response. */
function assertResponse(api: AnyApi, version: number, body: object, bytes: Buffer): void {
  const frame = Buffer.concat(responseFrame(api as never, version, 7, body as never).pieces)
  assert.equal(frame.toString('hex'), bytes.toString('hex'))
  assert.deepEqual(writtenInSteps(api, version, body).bytes, frame)
  const header = readResponseHeader(api, version, bytes, FRAME_SIZE_BYTES, bytes.length)
  assert.ok(typeof header !== 'string')
  assert.equal(header.correlationId, 7)
  assert.partialDeepStrictEqual(api.response.decode(version, bytes, header.bodyStart), body)
}

/** The same of a request. */
function assertRequest(api: AnyApi, version: number, body: object, bytes: Buffer): void {
  const fields = { apiVersion: version, correlationId: 7, clientId: 'me' }
  const frame = Buffer.concat(requestFrame(api as never, fields, body as never))
  assert.equal(frame.toString('hex'), bytes.toString('hex'))
  const header = readRequestHeader(bytes, FRAME_SIZE_BYTES, bytes.length)
  assert.ok(typeof header !== 'string')
  const { bodyStart, apiKey, ...rest } = header
  assert.deepEqual({ apiKey, ...rest }, { apiKey: api.key, ...fields })
  assert.partialDeepStrictEqual(api.request.decode(version, bytes, bodyStart), body)
}

describe('ApiVersions', () => {
  const apiKeys = [
    { apiKey: 0, minVersion: 0, maxVersion: 11 },
    { apiKey: 18, minVersion: 0, maxVersion: 4 }
  ]

  it('version 3 is asked with a header of version 2 and answered with one of version 0', () => {
    assertRequest(
      apis.apiVersions,
      3,
      { clientSoftwareName: 'rd', clientSoftwareVersion: '2.0' },
      hex(`00000015 0012 0003 00000007 0002 'me' 00
           03 'rd' 04 '2.0' 00`)
    )
    assertResponse(
      apis.apiVersions,
      3,
      { errorCode: 0, apiKeys, throttleTimeMs: 0 },
      hex(`0000001a 00000007
           0000 03 0000 0000 000b 00 0012 0000 0004 00 00000000 00`)
    )
  })

  it('version 4 tells of features in tagged fields', () => {
    assertResponse(
      apis.apiVersions,
      4,
      {
        errorCode: 0,
        apiKeys: apiKeys.slice(1),
        throttleTimeMs: 1,
        supportedFeatures: [{ name: 'group.version', minVersion: 0, maxVersion: 1 }],
        finalizedFeaturesEpoch: 5,
        finalizedFeatures: [{ name: 'group.version', maxVersionLevel: 1, minVersionLevel: 1 }]
      },
      hex(`00000049 00000007
           0000 02 0012 0000 0004 00 00000001
           03 00 14 02 0e 'group.version' 0000 0001 00
              01 08 0000000000000005
              02 14 02 0e 'group.version' 0001 0001 00`)
    )
  })

  it('of a version that is not known is refused in version 0, which has no tagged fields', () => {
    assertResponse(
      apis.apiVersions,
      0,
      { errorCode: 35, apiKeys: apiKeys.slice(1) },
      hex('00000010 00000007 0023 00000001 0012 0000 0004')
    )
  })
})

describe('Metadata', () => {
  it('version 12 has ids of topics, and no authorized operations of the cluster', () => {
    const id = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex').toString('base64url')
    assertResponse(
      apis.metadata,
      12,
      {
        throttleTimeMs: 0,
        brokers: [{ nodeId: 1, host: 'localhost', port: 9092, rack: null }],
        clusterId: 'c1',
        controllerId: 1,
        topics: [
          {
            errorCode: 0,
            name: 't',
            topicId: id,
            isInternal: false,
            partitions: [
              {
                errorCode: 0,
                partitionIndex: 0,
                leaderId: 1,
                leaderEpoch: 2,
                replicaNodes: [1],
                isrNodes: [1],
                offlineReplicas: []
              }
            ],
            topicAuthorizedOperations: -2147483648
          }
        ]
      },
      hex(`0000005c 00000007 00
           00000000
           02 00000001 0a 'localhost' 00002384 00 00
           03 'c1' 00000001
           02 0000 02 't' 000102030405060708090a0b0c0d0e0f 00
              02 0000 00000000 00000001 00000002 02 00000001 02 00000001 01 00
              80000000 00
           00`)
    )
  })

  it('asks for all topics with null, and for none with an empty list', () => {
    const all = { topics: null, allowAutoTopicCreation: true, includeTopicAuthorizedOperations: false }
    assertRequest(apis.metadata, 12, all, hex(`00000011 0003 000c 00000007 0002 'me' 00 00 01 00 00`))
    assertRequest(
      apis.metadata,
      12,
      { ...all, topics: [] },
      hex(`00000011 0003 000c 00000007 0002 'me' 00 01 01 00 00`)
    )
    assertRequest(apis.metadata, 1, { topics: null }, hex(`00000010 0003 0001 00000007 0002 'me' ffffffff`))
  })
})

describe('Fetch version 12', () => {
  const partition = {
    partitionIndex: 1,
    errorCode: 0,
    highWatermark: 5,
    lastStableOffset: 5,
    logStartOffset: 0,
    abortedTransactions: null,
    preferredReadReplica: -1,
    records: Buffer.from('abc')
  }

  it('opens a session with all partitions', () => {
    assertResponse(
      apis.fetch,
      12,
      { throttleTimeMs: 0, errorCode: 0, sessionId: 42, responses: [{ topic: 't', partitions: [partition] }] },
      hex(`0000003d 00000007 00
           00000000 0000 0000002a
           02 02 't'
              02 00000001 0000 0000000000000005 0000000000000005 0000000000000000 00 ffffffff 04 'abc' 00
              00
           00`)
    )
  })

  it('answers a session without news with no topics, and a wrong epoch with its error and session 0', () => {
    const none = { throttleTimeMs: 0, responses: [] }
    assertResponse(
      apis.fetch,
      12,
      { ...none, errorCode: 0, sessionId: 42 },
      hex('00000011 00000007 00 00000000 0000 0000002a 01 00')
    )
    assertResponse(
      apis.fetch,
      12,
      { ...none, errorCode: 71, sessionId: 0 },
      hex('00000011 00000007 00 00000000 0047 00000000 01 00')
    )
  })

  it('tells of a leader elsewhere in a tagged field, and of no records with no bytes', () => {
    const moved = {
      ...partition,
      errorCode: 6,
      currentLeader: { leaderId: 3, leaderEpoch: 4 },
      records: Buffer.alloc(0)
    }
    assertResponse(
      apis.fetch,
      12,
      { throttleTimeMs: 0, errorCode: 0, sessionId: 0, responses: [{ topic: 't', partitions: [moved] }] },
      hex(`00000045 00000007 00
           00000000 0000 00000000
           02 02 't'
              02 00000001 0006 0000000000000005 0000000000000005 0000000000000000 00 ffffffff 01
                 01 01 09 00000003 00000004 00
              00
           00`)
    )
  })
})

describe('Produce', () => {
  it('version 9 has compact forms, and errors of records in its answer', () => {
    assertRequest(
      apis.produce,
      9,
      {
        transactionalId: null,
        acks: -1,
        timeoutMs: 1000,
        topicData: [{ name: 't', partitionData: [{ index: 1, records: Buffer.from('abc') }] }]
      },
      hex(`00000023 0000 0009 00000007 0002 'me' 00
           00 ffff 000003e8
           02 02 't' 02 00000001 04 'abc' 00 00
           00`)
    )
    assertResponse(
      apis.produce,
      9,
      {
        responses: [
          {
            name: 't',
            partitionResponses: [
              {
                index: 1,
                errorCode: 87,
                baseOffset: -1,
                logAppendTimeMs: -1,
                logStartOffset: 0,
                recordErrors: [{ batchIndex: 2, batchIndexErrorMessage: null }],
                errorMessage: 'bad'
              }
            ]
          }
        ],
        throttleTimeMs: 0
      },
      hex(`00000039 00000007 00
           02 02 't'
              02 00000001 0057 ffffffffffffffff ffffffffffffffff 0000000000000000
                 02 00000002 00 00
                 04 'bad' 00
              00
           00000000 00`)
    )
  })

  it('version 0, which is advertised for the sake of older clients, can be answered', () => {
    const wanted = { topicData: [{ name: 't', partitionData: [{ index: 1, records: Buffer.from('abc') }] }] }
    const bytes = hex(`0001 000003e8 00000001 0001 't' 00000001 00000001 00000003 'abc'`)
    assert.partialDeepStrictEqual(apis.produce.request.decode(0, bytes), wanted)
    const refused = { responses: [{ name: 't', partitionResponses: [{ index: 1, errorCode: 35, baseOffset: -1 }] }] }
    assertResponse(
      apis.produce,
      0,
      refused,
      hex(`0000001d 00000007 00000001 0001 't' 00000001 00000001 0023 ffffffffffffffff`)
    )
  })
})

describe('a request header', () => {
  const read = (text: string): ReturnType<typeof readRequestHeader> => {
    const bytes = hex(text)
    return readRequestHeader(bytes, 0, bytes.length)
  }
  const told = { apiKey: 3, apiVersion: 9, correlationId: 7, clientId: 'me' }

  it('has tagged fields in flexible versions, which are passed over, behind a client id of the older form', () => {
    assert.deepEqual(read(`0003 0009 00000007 0002 'me' 00`), { ...told, bodyStart: 13 })
    assert.deepEqual(read(`0003 0009 00000007 0002 'me' 01 05 02 abcd`), { ...told, bodyStart: 17 })
    assert.deepEqual(read(`0003 0008 00000007 0002 'me' 01`), { ...told, apiVersion: 8, bodyStart: 12 })
    assert.deepEqual(read(`0003 0008 00000007 ffff`), { ...told, apiVersion: 8, clientId: null, bodyStart: 10 })
  })

  it('is read of an API or a version that is not known too, so that it can be refused', () => {
    assert.equal(apiOfKey(999), undefined)
    assert.deepEqual(read(`03e7 0009 00000007 0002 'me' 00`), { ...told, apiKey: 999, bodyStart: 12 })
    // ApiVersions of a later version is flexible like the last that is known.
    assert.deepEqual(read(`0012 0009 00000007 0002 'me' 00`), { ...told, apiKey: 18, bodyStart: 13 })
  })

  it('that is malformed is refused with what is wrong', () => {
    const start = 'the header of the request:'
    assert.equal(read('0003 0009 0000'), `${start} client id is cut off by the end of the message`)
    assert.equal(read(`0003 0009 00000007 0003 'me'`), `${start} client id has 3 bytes, but 2 are left`)
    assert.equal(read('0003 0009 00000007 0002 c328 00'), `${start} client id is not UTF-8`)
    assert.equal(read(`0003 0009 00000007 0002 'me'`), `${start} (tags) is cut off by the end of the message`)
    assert.equal(read(`0003 0009 00000007 0002 'me' 01 05 02 ab`), `${start} (tags) has 2 bytes, but 1 are left`)
  })
})

describe('a response header', () => {
  it('has tagged fields in flexible versions, and is refused when it is cut', () => {
    const read = (version: number, text: string): unknown => {
      const bytes = hex(text)
      return readResponseHeader(apis.heartbeat, version, bytes, 0, bytes.length)
    }
    assert.deepEqual(read(3, '00000007 00'), { correlationId: 7, bodyStart: 4 })
    assert.deepEqual(read(4, '00000007 01 05 01 ff'), { correlationId: 7, bodyStart: 8 })
    assert.match(String(read(4, '00000007')), /^the header of the response: .* is cut off/)
    assert.match(String(read(3, '000000')), /^the header of the response: .* is cut off/)
  })
})

describe('the first bytes of a connection', () => {
  it('tell HTTP, TLS and ES01 from a size', () => {
    const strangers: readonly [string, string | null][] = [
      [`'GET / HTTP/1.1'`, 'HTTP'],
      [`'POST'`, 'HTTP'],
      [`'PRI * HTTP/2.0'`, 'HTTP'],
      ['16030100', 'TLS'],
      ['16030300', 'TLS'],
      [`'ES01'`, 'ES01'],
      ['00000023', null],
      ['7fffffff', null],
      [`'GETS'`, null]
    ]
    for (const [bytes, wanted] of strangers) assert.equal(foreignProtocolOf(hex(bytes), 0), wanted, bytes)
  })

  it('are a size that has room for a header and is within the limit', () => {
    assert.equal(checkFrameSize(10, 1000), null)
    assert.equal(checkFrameSize(1000, 1000), null)
    assert.equal(checkFrameSize(9, 1000), 'the size of the request is 9: the least is 10')
    assert.equal(checkFrameSize(-1, 1000), 'the size of the request is -1: the least is 10')
    assert.equal(checkFrameSize(1001, 1000), 'the size of the request is 1001: over the limit of 1000')
  })
})

describe('a long response', () => {
  const partitions = Array.from({ length: 100 }, (_, partitionIndex) => ({
    errorCode: partitionIndex % 2,
    partitionIndex,
    leaderId: 1,
    replicaNodes: [1],
    isrNodes: [1],
    offlineReplicas: []
  }))
  const body = (count: number) => ({
    brokers: [{ nodeId: 1, host: 'here', port: 9092 }],
    clusterId: 'c',
    controllerId: 1,
    topics: Array.from({ length: count }, (_, index) => ({ errorCode: 0, name: `t${index}`, partitions }))
  })

  it('is the same bytes, whether it is written at once or in steps', () => {
    for (const version of [8, 12]) {
      const { pieces, errorCodes } = responseFrame(apis.metadata, version, 7, body(1000))
      const inSteps = writtenInSteps(apis.metadata, version, body(1000))
      assert.ok(Buffer.concat(pieces).equals(inSteps.bytes))
      assert.equal(errorCodes.length, 50 * 1000)
      assert.ok(inSteps.count > 10, `${inSteps.count} steps`)
    }
  })

  it('has steps within one topic too, whose partitions have lists that are empty', () => {
    const partitionResponses = Array.from({ length: 20_000 }, (_, index) => ({ index, errorCode: 3, baseOffset: -1 }))
    const topic = { responses: [{ name: 't', partitionResponses }] }
    assert.ok(writtenInSteps(apis.produce, 9, topic).count > 10)
  })

  it('needs one step only if it is short after all', () => {
    assert.equal(writtenInSteps(apis.metadata, 12, body(3)).count, 1)
  })
})
