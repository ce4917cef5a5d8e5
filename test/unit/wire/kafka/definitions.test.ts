/**
 * Our tables against the definitions that Apache Kafka publishes: every field of every message in every version that we
 * have, with its place, type, default, null and tag; and our bytes read and written again by Kafka's own library.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { apis } from '../../../../src/wire/kafka/apis/index.ts'
import { assignment, subscription } from '../../../../src/wire/kafka/consumer-protocol.ts'
import { kafkaErrors } from '../../../../src/wire/kafka/errors.ts'
import type { AnyApi, AnyMessage } from '../../../../src/wire/kafka/message.ts'
import { ZERO_UUID, isIn, type Field, type FieldTable, type Type } from '../../../../src/wire/kafka/schema.ts'
import { allMessages, randomStruct } from '../../../support/kafka-messages.ts'
import { KafkaJava, kafkaJavaSkip } from '../../../support/kafka-java.ts'
import { chosenSeed, diceOf, replayLine } from '../../../support/log-random.ts'

const FILE = 'test/unit/wire/kafka/definitions.test.ts'

/** A field of a published definition, as far as it concerns bytes and defaults. */
interface Published {
  readonly name: string
  readonly type: string
  readonly versions: string
  readonly nullableVersions?: string
  readonly taggedVersions?: string
  readonly tag?: number
  readonly default?: string | number
  readonly ignorable?: boolean
  readonly fields?: readonly Published[]
}

interface PublishedMessage {
  readonly apiKey?: number
  readonly validVersions: string
  readonly flexibleVersions: string
  readonly fields: readonly Published[]
  readonly commonStructs?: readonly { readonly name: string; readonly fields: readonly Published[] }[]
}

function isWithin(versions: string | undefined, version: number): boolean {
  if (versions === undefined || versions === 'none') return false
  const [first = '', last] = versions.endsWith('+') ? [versions.slice(0, -1), 'Infinity'] : versions.split('-')
  return version >= Number(first) && version <= Number(last ?? first)
}

/** Kinds of ours that are int64 on the wire. */
const sixtyFourBits: ReadonlySet<string> = new Set(['int64', 'int64Clamped', 'int64Exact'])

function kindOf(type: Type): string {
  if (type.kind === 'array') return `[]${kindOf(type.element)}`
  return sixtyFourBits.has(type.kind) ? 'int64' : type.kind
}

function publishedKind(type: string): string {
  if (type.startsWith('[]')) return `[]${publishedKind(type.slice(2))}`
  return /^[A-Z]/.test(type) ? 'struct' : type
}

function publishedDefault(field: Published): string {
  const value = String(field.default ?? '')
  if (value === 'null') return 'null'
  if (/^u?int/.test(field.type)) return String(Number(value))
  if (field.type === 'bool') return value === '' ? 'false' : value
  return value
}

/** Defaults as texts that compare; those of structs are those of their fields. */
function ourDefault({ type, default: value }: Field): string {
  if (type.kind === 'struct' || value === ZERO_UUID) return ''
  // Kafka has no default of its own for records: null.
  return type.kind === 'records' ? '' : String(value)
}

/** One line for each field that is there in a version, in order: what compares. */
function ourLines(fields: FieldTable, version: number, path: string): string[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    if (!isIn(field, version)) return []
    const isNull = version >= field.nullableSince
    const line = `${path}${name} ${kindOf(field.type)} null=${isNull} tag=${field.tag} ignorable=${field.isIgnorable} default=${ourDefault(field)}`
    const inner = field.type.kind === 'array' ? field.type.element : field.type
    return [line, ...(inner.kind === 'struct' ? ourLines(inner.fields, version, `${path}${name}.`) : [])]
  })
}

function publishedLines(
  message: PublishedMessage,
  fields: readonly Published[],
  version: number,
  path: string
): string[] {
  return fields.flatMap(field => {
    if (!isWithin(field.versions, version)) return []
    const name = field.name.charAt(0).toLowerCase() + field.name.slice(1)
    const tag = isWithin(field.taggedVersions, version) ? field.tag : -1
    const isNull = isWithin(field.nullableVersions, version)
    const kind = publishedKind(field.type)
    const line = `${path}${name} ${kind} null=${isNull} tag=${tag} ignorable=${field.ignorable ?? false} default=${publishedDefault(field)}`
    const shared = message.commonStructs?.find(({ name: struct }) => field.type.endsWith(struct))
    return [line, ...publishedLines(message, field.fields ?? shared?.fields ?? [], version, `${path}${name}.`)]
  })
}

/** What differs between a message of ours and its definition, over all our versions. */
function differencesOf(
  message: Pick<AnyMessage, 'name' | 'versions' | 'fields'>,
  published: PublishedMessage
): string[] {
  const problems: string[] = []
  for (let version = message.versions.first; version <= message.versions.last; version++) {
    const where = `${message.name} v${version}`
    if (!isWithin(published.validVersions, version)) problems.push(`${where} is not valid: ${published.validVersions}`)
    if (isWithin(published.flexibleVersions, version) !== version >= message.versions.flexibleSince) {
      problems.push(`${where}: flexible are ${published.flexibleVersions}`)
    }
    const ours = ourLines(message.fields, version, '')
    const theirs = publishedLines(published, published.fields, version, '')
    for (let i = 0; i < Math.max(ours.length, theirs.length); i++) {
      if (ours[i] !== theirs[i]) problems.push(`${where} field ${i}: ${ours[i]} — published: ${theirs[i]}`)
    }
  }
  return problems
}

describe("Kafka's own definitions", { skip: kafkaJavaSkip }, () => {
  it('say of every field what our tables say, and so do its error codes', async context => {
    const java = await KafkaJava.open()
    context.after(() => java.close())
    const problems: string[] = []
    const definitions = (await java.definitions(allMessages.map(({ name }) => name))) as PublishedMessage[]
    assert.equal(definitions.length, allMessages.length)
    for (const [i, message] of allMessages.entries()) {
      const published = definitions[i] as PublishedMessage
      problems.push(...differencesOf(message, published))
      const api = Object.values<AnyApi>(apis).find(
        ({ request, response }) => message === request || message === response
      )
      if (api !== undefined && api.key !== published.apiKey)
        problems.push(`${message.name} has the key ${published.apiKey}`)
    }
    assert.deepEqual(problems, [])

    const errors = await java.errors()
    const newest = Math.max(...errors.map(line => Number(line.split(' ')[1])))
    for (const [name, { code, isRetriable }] of Object.entries(kafkaErrors)) {
      // Later releases than the one that is asked have more.
      if (code <= newest) assert.ok(errors.includes(`${name} ${code} ${isRetriable}`), `${name} ${code} ${isRetriable}`)
    }
  })

  it('make the same bytes of what Kafka read from ours', async context => {
    const java = await KafkaJava.open()
    context.after(() => java.close())
    const seed = chosenSeed()
    const dice = diceOf(seed)
    const lines: string[] = []
    for (const { key, versions, request, response } of Object.values(apis)) {
      for (const [kind, message] of [
        ['request', request],
        ['response', response]
      ] as const) {
        for (let version = versions.first; version <= versions.last; version++) {
          for (let i = 0; i < 10; i++) {
            const value = randomStruct(message.fields, version, dice)
            const body = message.encode(version, value as never)
            lines.push(`${key} ${kind} ${version} ${body.toString('hex')}`)
          }
        }
      }
    }
    const answers = await java.writeAgain(lines)
    assert.equal(answers.length, lines.length)
    lines.forEach((line, i) => assert.equal(answers[i], line.split(' ')[3], `${line}\n${replayLine(seed, FILE)}`))
  })
})

describe('the comparison with definitions', () => {
  const published: PublishedMessage = {
    validVersions: '0-3',
    flexibleVersions: 'none',
    fields: [
      { name: 'Topics', type: '[]string', versions: '0+' },
      { name: 'UserData', type: 'bytes', versions: '0+', nullableVersions: '0+', default: 'null' },
      {
        name: 'OwnedPartitions',
        type: '[]TopicPartition',
        versions: '1+',
        ignorable: true,
        fields: [
          { name: 'Topic', type: 'string', versions: '1+' },
          { name: 'Partitions', type: '[]int32', versions: '1+' }
        ]
      },
      { name: 'GenerationId', type: 'int32', versions: '2+', default: '-1', ignorable: true },
      { name: 'RackId', type: 'string', versions: '3+', nullableVersions: '3+', default: 'null', ignorable: true }
    ]
  }

  it('finds nothing in a table that agrees', () => assert.deepEqual(differencesOf(subscription, published), []))

  it('finds a field elsewhere, another type, default, null, version and flexibility', () => {
    const [topics, userData, owned, generationId, rackId] = published.fields as [
      Published,
      Published,
      Published,
      Published,
      Published
    ]
    const plants: readonly Partial<PublishedMessage>[] = [
      { fields: [userData, topics, owned, generationId, rackId] },
      { fields: [topics, userData, owned, { ...generationId, type: 'int16' }, rackId] },
      { fields: [topics, userData, owned, { ...generationId, default: '0' }, rackId] },
      { fields: [topics, { ...userData, nullableVersions: '1+' }, owned, generationId, rackId] },
      { fields: [topics, userData, owned, { ...generationId, versions: '1+' }, rackId] },
      { fields: [topics, userData, owned, generationId, { ...rackId, ignorable: false }] },
      { flexibleVersions: '3+' },
      { validVersions: '0-2' }
    ]
    for (const plant of plants) {
      const found = differencesOf(subscription, { ...published, ...plant })
      assert.notDeepEqual(found, [], JSON.stringify(plant))
    }
    assert.notDeepEqual(differencesOf(assignment, published), [])
  })
})
