/** kafkajs as a second opinion on the versions that it speaks: its requests are read here, and it reads our responses. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import { apis } from '../../../../src/wire/kafka/apis/index.ts'
import {
  assignment,
  decodeEmbedded,
  encodeEmbedded,
  subscription
} from '../../../../src/wire/kafka/consumer-protocol.ts'
import { readRequestHeader } from '../../../../src/wire/kafka/headers.ts'
import type { AnyApi } from '../../../../src/wire/kafka/message.ts'
import { isIn, type FieldTable, type Type } from '../../../../src/wire/kafka/schema.ts'
import { randomStruct } from '../../../support/kafka-messages.ts'
import { chosenSeed, diceOf, replayLine } from '../../../support/log-random.ts'

const FILE = 'test/unit/wire/kafka/kafkajs.test.ts'
const require = createRequire(import.meta.url)

interface KafkajsRequest {
  readonly apiKey: number
  readonly apiVersion: number
}
interface KafkajsApi {
  readonly versions: readonly string[]
  protocol(choice: { readonly version: number }): (fields: object) => {
    readonly request: KafkajsRequest
    readonly response: { decode(body: Buffer): Promise<object> }
  }
}
type ApiName = keyof typeof apis

const frameOf: (fields: object) => Promise<{ readonly buffer: Buffer }> = require('kafkajs/src/protocol/request.js')
const consumerProtocol: {
  readonly MemberMetadata: { encode(fields: object): Buffer; decode(bytes: Buffer): object }
  readonly MemberAssignment: { encode(fields: object): Buffer; decode(bytes: Buffer): object }
} = require('kafkajs/src/consumer/assignerProtocol.js')

function kafkajsApi(name: ApiName): KafkajsApi {
  return require(`kafkajs/src/protocol/requests/${name}/index.js`) as KafkajsApi
}

/** Versions that kafkajs and our table have both. */
function sharedVersions(name: ApiName): number[] {
  const { first, last } = apis[name].versions
  return kafkajsApi(name)
    .versions.map(Number)
    .filter(version => version >= first && version <= last)
}

/** What kafkajs is told of each request, and what is to be read of it; fields that only some versions have by the version. */
interface Told {
  readonly fields: object
  readonly wanted: (version: number) => object
}

const groupMember = { groupId: 'g', memberId: 'm' }
const requests: { readonly [N in ApiName]?: Told } = {
  produce: {
    fields: {
      acks: -1,
      timeout: 1500,
      topicData: [
        { topic: 't', partitions: [{ partition: 3, firstSequence: 0, messages: [{ key: 'k', value: 'v' }] }] }
      ]
    },
    wanted: () => ({ acks: -1, timeoutMs: 1500, topicData: [{ name: 't', partitionData: [{ index: 3 }] }] })
  },
  fetch: {
    fields: {
      replicaId: -1,
      maxWaitTime: 500,
      minBytes: 1,
      maxBytes: 10_000,
      rackId: 'rack',
      isolationLevel: 1,
      topics: [{ topic: 't', partitions: [{ partition: 2, fetchOffset: '9007199254740991', maxBytes: 1024 }] }]
    },
    wanted: version => ({
      replicaId: -1,
      maxWaitMs: 500,
      minBytes: 1,
      maxBytes: 10_000,
      isolationLevel: 1,
      sessionId: 0,
      sessionEpoch: -1,
      topics: [{ topic: 't', partitions: [{ partition: 2, fetchOffset: 2 ** 53 - 1, partitionMaxBytes: 1024 }] }],
      forgottenTopicsData: [],
      rackId: version >= 11 ? 'rack' : ''
    })
  },
  listOffsets: {
    fields: {
      replicaId: -1,
      isolationLevel: 1,
      topics: [{ topic: 't', partitions: [{ partition: 1, timestamp: '-2' }] }]
    },
    wanted: version => ({
      replicaId: -1,
      isolationLevel: version >= 2 ? 1 : 0,
      topics: [{ name: 't', partitions: [{ partitionIndex: 1, timestamp: -2 }] }]
    })
  },
  metadata: {
    fields: { topics: ['a', 'b'] },
    wanted: () => ({ topics: [{ name: 'a' }, { name: 'b' }], allowAutoTopicCreation: true })
  },
  offsetCommit: {
    fields: {
      ...groupMember,
      groupGenerationId: 5,
      retentionTime: '-1',
      topics: [{ topic: 't', partitions: [{ partition: 1, offset: '77', metadata: 'note' }] }]
    },
    wanted: () => ({
      ...groupMember,
      generationIdOrMemberEpoch: 5,
      topics: [{ name: 't', partitions: [{ partitionIndex: 1, committedOffset: 77, committedMetadata: 'note' }] }]
    })
  },
  offsetFetch: {
    fields: { groupId: 'g', topics: [{ topic: 't', partitions: [{ partition: 1 }, { partition: 4 }] }] },
    wanted: () => ({ groupId: 'g', topics: [{ name: 't', partitionIndexes: [1, 4] }] })
  },
  findCoordinator: {
    fields: { groupId: 'g', coordinatorKey: 'g', coordinatorType: 1 },
    wanted: version => ({ key: 'g', keyType: version >= 1 ? 1 : 0 })
  },
  joinGroup: {
    fields: {
      ...groupMember,
      sessionTimeout: 30_000,
      rebalanceTimeout: 60_000,
      protocolType: 'consumer',
      groupProtocols: [{ name: 'roundrobin', metadata: Buffer.from('meta') }]
    },
    wanted: version => ({
      ...groupMember,
      sessionTimeoutMs: 30_000,
      rebalanceTimeoutMs: version >= 1 ? 60_000 : -1,
      groupInstanceId: null,
      protocolType: 'consumer',
      protocols: [{ name: 'roundrobin', metadata: Buffer.from('meta') }]
    })
  },
  heartbeat: {
    fields: { ...groupMember, groupGenerationId: 5, groupInstanceId: 'i' },
    wanted: version => ({ ...groupMember, generationId: 5, groupInstanceId: version >= 3 ? 'i' : null })
  },
  leaveGroup: {
    fields: { ...groupMember, members: [{ memberId: 'm' }] },
    wanted: version =>
      version >= 3 ? { groupId: 'g', members: [{ memberId: 'm', groupInstanceId: null }] } : groupMember
  },
  syncGroup: {
    fields: {
      ...groupMember,
      generationId: 5,
      groupAssignment: [{ memberId: 'm', memberAssignment: Buffer.from('mine') }]
    },
    wanted: () => ({
      ...groupMember,
      generationId: 5,
      assignments: [{ memberId: 'm', assignment: Buffer.from('mine') }]
    })
  },
  describeGroups: { fields: { groupIds: ['a', 'b'] }, wanted: () => ({ groups: ['a', 'b'] }) },
  listGroups: { fields: {}, wanted: () => ({}) },
  saslHandshake: { fields: { mechanism: 'PLAIN' }, wanted: () => ({ mechanism: 'PLAIN' }) },
  apiVersions: { fields: {}, wanted: () => ({}) },
  createTopics: {
    fields: {
      timeout: 1500,
      validateOnly: true,
      topics: [
        {
          topic: 't',
          numPartitions: 3,
          replicationFactor: 1,
          replicaAssignment: [{ partition: 0, replicas: [1, 2] }],
          configEntries: [{ name: 'a', value: 'b' }]
        }
      ]
    },
    wanted: () => ({
      timeoutMs: 1500,
      validateOnly: true,
      topics: [
        {
          name: 't',
          numPartitions: 3,
          replicationFactor: 1,
          assignments: [{ partitionIndex: 0, brokerIds: [1, 2] }],
          configs: [{ name: 'a', value: 'b' }]
        }
      ]
    })
  },
  deleteTopics: {
    fields: { topics: ['a', 'b'], timeout: 1500 },
    wanted: () => ({ topicNames: ['a', 'b'], timeoutMs: 1500 })
  },
  deleteRecords: {
    fields: { timeout: 1500, topics: [{ topic: 't', partitions: [{ partition: 1, offset: '-1' }] }] },
    wanted: () => ({ timeoutMs: 1500, topics: [{ name: 't', partitions: [{ partitionIndex: 1, offset: -1 }] }] })
  },
  initProducerId: {
    fields: { transactionalId: null, transactionTimeout: 1500 },
    wanted: () => ({ transactionalId: null, transactionTimeoutMs: 1500, producerId: -1n })
  },
  describeConfigs: {
    fields: { includeSynonyms: true, resources: [{ type: 2, name: 't', configNames: ['a'] }] },
    wanted: () => ({
      includeSynonyms: true,
      resources: [{ resourceType: 2, resourceName: 't', configurationKeys: ['a'] }]
    })
  },
  alterConfigs: {
    fields: { validateOnly: true, resources: [{ type: 2, name: 't', configEntries: [{ name: 'a', value: 'b' }] }] },
    wanted: () => ({
      validateOnly: true,
      resources: [{ resourceType: 2, resourceName: 't', configs: [{ name: 'a', value: 'b' }] }]
    })
  },
  // It wants the token behind its length already.
  saslAuthenticate: {
    fields: { authBytes: Buffer.from('\0\0\0\x05token') },
    wanted: () => ({ authBytes: Buffer.from('token') })
  },
  createPartitions: {
    fields: { timeout: 1500, validateOnly: true, topicPartitions: [{ topic: 't', count: 9, assignments: [[1, 2]] }] },
    wanted: () => ({
      timeoutMs: 1500,
      validateOnly: true,
      topics: [{ name: 't', count: 9, assignments: [{ brokerIds: [1, 2] }] }]
    })
  },
  deleteGroups: { fields: ['a', 'b'], wanted: () => ({ groupsNames: ['a', 'b'] }) }
}
const names = Object.keys(requests) as ApiName[]

/** Fields that kafkajs makes up, moves or decodes further. */
const leftOut: ReadonlySet<string> = new Set([
  ...['throttleTimeMs', 'throttleTime', 'clientSideThrottleTime', 'isDefault', 'error', 'records', 'messages']
])

/** All values within, in order. */
function leavesOf(value: unknown): string[] {
  if (Buffer.isBuffer(value)) return [value.toString('hex')]
  if (value === null || typeof value !== 'object') return [String(value)]
  return Object.entries(value).flatMap(([name, part]) => (leftOut.has(name) ? [] : leavesOf(part)))
}

/** The same of the fields that a version has. */
function writtenLeaves(fields: FieldTable, version: number, value: Record<string, unknown>): string[] {
  const partLeaves = (type: Type, part: unknown): string[] => {
    if (part === null) return type.kind === 'array' ? [] : ['null']
    if (type.kind === 'array') return (part as unknown[]).flatMap(element => partLeaves(type.element, element))
    return type.kind === 'struct'
      ? writtenLeaves(type.fields, version, part as Record<string, unknown>)
      : leavesOf(part)
  }
  const present = Object.entries(fields).filter(([name, field]) => isIn(field, version) && !leftOut.has(name))
  return present.flatMap(([name, field]) => partLeaves(field.type, value[name]))
}

/** Kept to what kafkajs can be asked: it sorts topics, refuses error 35 by itself, and would decode records. */
function forKafkajs(value: Record<string, unknown>): Record<string, unknown> {
  const kept = Object.entries(value).map(([name, part]) => {
    if (name === 'records') return [name, Buffer.alloc(0)]
    if (name === 'errorCode' && part === 35) return [name, 0]
    if (!Array.isArray(part)) return [name, part]
    const elements = part.map(one => (isStruct(one) ? forKafkajs(one) : (one as unknown)))
    return [name, ['topics', 'responses', 'results'].includes(name) ? elements.slice(0, 1) : elements]
  })
  return Object.fromEntries(kept) as Record<string, unknown>
}

function isStruct(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Buffer.isBuffer(value)
}

describe('kafkajs', () => {
  it('writes requests that are read as it meant them, to their last byte', async () => {
    for (const name of names) {
      const { fields, wanted } = requests[name] as Told
      const api: AnyApi = apis[name]
      for (const version of sharedVersions(name)) {
        const { request } = kafkajsApi(name).protocol({ version })(fields)
        const frame = (await frameOf({ correlationId: 7, clientId: 'kafkajs', request })).buffer
        const header = readRequestHeader(frame, 4, frame.length)
        assert.ok(typeof header !== 'string', name)
        const { bodyStart, ...told } = header
        assert.deepEqual(told, { apiKey: api.key, apiVersion: version, correlationId: 7, clientId: 'kafkajs' })
        const body = api.request.decode(version, frame, bodyStart)
        assert.ok(typeof body !== 'string', `${name} v${version}: ${String(body)}`)
        assert.partialDeepStrictEqual(body, wanted(version), `${name} v${version}`)
        assert.deepEqual(api.request.encode(version, body as never), frame.subarray(bodyStart), `${name} v${version}`)
      }
    }
  })

  it('reads our responses as we meant them, in every version that it speaks', async () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    let count = 0
    for (const name of names) {
      const api: AnyApi = apis[name]
      for (const version of sharedVersions(name)) {
        for (let round = 0; round < 10; round++) {
          const told = `${name} v${version}, ${replayLine(seed, FILE)}`
          const value = forKafkajs(randomStruct(api.response.fields, version, dice))
          const body = api.response.encode(version, value as never)
          const { fields } = requests[name] as Told
          const decoded = (await kafkajsApi(name).protocol({ version })(fields).response.decode(body)) as Record<
            string,
            unknown
          >
          // It puts the length before the token again.
          if (name === 'saslAuthenticate') decoded['authBytes'] = (decoded['authBytes'] as Buffer).subarray(4)
          assert.deepEqual(leavesOf(decoded), writtenLeaves(api.response.fields, version, value), told)
          count++
        }
      }
    }
    assert.ok(count > 500, `${count} responses`)
  })

  it('writes subscriptions and assignments that are read, and reads ours', () => {
    const { MemberMetadata, MemberAssignment } = consumerProtocol
    const userData = Buffer.from('mine')
    const wanted = { topics: ['a', 'b'], userData, ownedPartitions: [], generationId: -1, rackId: null }
    const metadata = MemberMetadata.encode({ version: 0, topics: ['a', 'b'], userData })
    assert.deepEqual(decodeEmbedded(subscription, metadata), wanted)
    assert.deepEqual(encodeEmbedded(subscription, 0, { topics: ['a', 'b'], userData }), metadata)
    const later = encodeEmbedded(subscription, 3, { ...wanted, generationId: 4, rackId: 'r' })
    assert.deepEqual(MemberMetadata.decode(later), { version: 3, topics: ['a', 'b'], userData })

    const assigned = { assignedPartitions: [{ topic: 't', partitions: [0, 2] }], userData }
    const bytes = MemberAssignment.encode({ version: 0, assignment: { t: [0, 2] }, userData })
    assert.deepEqual(decodeEmbedded(assignment, bytes), assigned)
    assert.deepEqual(MemberAssignment.decode(encodeEmbedded(assignment, 2, assigned)), {
      version: 2,
      assignment: { t: [0, 2] },
      userData
    })
  })
})

describe('a subscription or assignment', () => {
  it('of a newer version is read as the newest that is known, and a broken one is refused', () => {
    const bytes = encodeEmbedded(subscription, 3, { topics: ['t'], rackId: 'r' })
    const newer = Buffer.concat([Buffer.from([0, 9]), bytes.subarray(2), Buffer.from('more')])
    assert.deepEqual(decodeEmbedded(subscription, newer), decodeEmbedded(subscription, bytes))
    assert.match(String(decodeEmbedded(assignment, Buffer.alloc(0))), /version of the consumer protocol/)
    assert.match(String(decodeEmbedded(assignment, Buffer.from([0xff, 0xff]))), /version of the consumer protocol/)
    assert.equal(
      decodeEmbedded(assignment, Buffer.from([0, 0])),
      'assignedPartitions is cut off by the end of the message'
    )
  })
})
