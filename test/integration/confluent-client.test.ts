/**
 * A client library for Confluent's schema registry, from npm and unchanged, against a real broker: it registers, encodes and
 * decodes Avro, JSON and Protobuf, and hears of what is refused in the way that it knows.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { COMPATIBILITY, SchemaRegistry, SchemaType } from '@kafkajs/confluent-schema-registry'
import { makeTestKey, startGuarded } from '../support/access.ts'
import { startBroker } from '../support/broker.ts'

interface Stage {
  /** A new client, which has nothing in its memory. */
  readonly connect: () => SchemaRegistry
}

/** What the client gives of a refusal. */
interface Refusal {
  readonly status: number
  readonly unauthorized: boolean
  readonly message: string
}

async function assertRefused(call: Promise<unknown>, status: number, words: RegExp): Promise<void> {
  await assert.rejects(call, (error: Refusal) => {
    assert.deepEqual([error.status, error.unauthorized], [status, status === 401], error.message)
    assert.match(error.message, words)
    return true
  })
}

function clientOf(url: string, password: string | null): SchemaRegistry {
  const auth = password === null ? {} : { auth: { username: 'anybody', password } }
  return new SchemaRegistry({ host: `${url}/confluent`, ...auth, retry: { retries: 0 } })
}

const order = {
  type: 'record',
  name: 'Order',
  namespace: 'shop',
  fields: [{ name: 'id', type: 'long' }]
}
const withField = (field: object): object => ({ ...order, fields: [...order.fields, field] })
const avro = (schema: object): { type: SchemaType.AVRO; schema: string } => ({
  type: SchemaType.AVRO,
  schema: JSON.stringify(schema)
})

async function tellAvro({ connect }: Stage): Promise<void> {
  const registry = connect()
  const { id } = await registry.register(avro(order))
  assert.equal((await connect().register(avro(order))).id, id, 'the same text has the same id')
  const message = await registry.encode(id, { id: 42 })
  assert.deepEqual([message[0], message.readUInt32BE(1)], [0, id])
  assert.equal(((await connect().decode(message)) as { id: number }).id, 42, 'a client that has not seen it')

  const evolved = avro(withField({ name: 'note', type: 'string', default: 'none' }))
  const next = await registry.register(evolved)
  assert.notEqual(next.id, id)
  assert.equal(await registry.getLatestSchemaId('shop.Order'), next.id)
  assert.equal(await registry.getRegistryId('shop.Order', 1), id)
  assert.equal(await registry.getRegistryIdBySchema('shop.Order', avro(order)), id)
  const read = await connect().decode(message, { [SchemaType.AVRO]: { readerSchema: JSON.parse(evolved.schema) } })
  assert.deepEqual({ ...(read as object) }, { id: 42, note: 'none' }, 'the new schema reads what the old one wrote')

  await assertRefused(registry.register(avro(withField({ name: 'amount', type: 'int' }))), 409, /incompatible.*amount/)
  assert.equal(await registry.getLatestSchemaId('shop.Order'), next.id, 'nothing was registered')
  assert.equal((await registry.register(avro(order), { subject: 'other' })).id, id, 'in another subject too')
}

const person = (properties: object, required: readonly string[]): { type: SchemaType.JSON; schema: string } => ({
  type: SchemaType.JSON,
  schema: JSON.stringify({ type: 'object', properties, required, additionalProperties: false })
})

async function tellJson({ connect }: Stage): Promise<void> {
  const registry = connect()
  const subject = 'people-value'
  const first = person({ name: { type: 'string' } }, ['name'])
  const { id } = await registry.register(first, { subject })
  const message = await registry.encode(id, { name: 'Ada' })
  assert.deepEqual(await connect().decode(message), { name: 'Ada' })
  await assert.rejects(connect().encode(id, { name: 5 }), /invalid payload/, 'it compiles the schema that it was given')
  const wider = person({ name: { type: 'string' }, age: { type: 'integer' } }, ['name'])
  const next = await registry.register(wider, { subject })
  assert.equal(await connect().getLatestSchemaId(subject), next.id)
  const demanding = person({ name: { type: 'string' }, age: { type: 'integer' } }, ['name', 'age'])
  await assertRefused(registry.register(demanding, { subject }), 409, /age/)
}

const proto = (fields: string): { type: SchemaType.PROTOBUF; schema: string } => ({
  type: SchemaType.PROTOBUF,
  schema: `syntax = "proto3";\npackage shop;\nmessage Item {\n  string name = 1;\n${fields}}\n`
})

async function tellProtobuf({ connect }: Stage): Promise<void> {
  const registry = connect()
  const subject = 'items-value'
  const { id } = await registry.register(proto(''), { subject })
  const message = await registry.encode(id, { name: 'pen' })
  assert.deepEqual({ ...((await connect().decode(message)) as object) }, { name: 'pen' })
  const next = await registry.register(proto('  int32 count = 2;\n'), { subject })
  assert.equal(await connect().getLatestSchemaId(subject), next.id)
  await assertRefused(registry.register(proto('  string count = 2;\n'), { subject }), 409, /count/)
}

async function tellUnknown({ connect }: Stage): Promise<void> {
  const registry = connect()
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0x27, 0x0f]), Buffer.from('{}')])
  await assertRefused(registry.decode(message), 404, /no schema 9999/)
  await assertRefused(registry.getLatestSchemaId('nothing'), 404, /no subject 'nothing'/)
  await assert.rejects(registry.getRegistryIdBySchema('nothing', avro(order)), /no subject 'nothing'/)
  const { id } = await registry.register(avro({ ...order, name: 'Strict' }))
  await assertRefused(registry.getRegistryId('shop.Strict', 2), 404, /no version 2/)
  const other = { compatibility: COMPATIBILITY.FULL }
  await assert.rejects(registry.register(avro({ ...order, name: 'Strict' }), other), /FULL != BACKWARD/)
  assert.equal(await registry.getLatestSchemaId('shop.Strict'), id)
  const schema = 'syntax = "proto3"; import "other.proto"; message M { int32 a = 1; }'
  await assertRefused(registry.register({ type: SchemaType.PROTOBUF, schema }, { subject: 'bad' }), 422, /other\.proto/)
}

async function tellAll(t: TestContext, stage: Stage): Promise<void> {
  await t.test('it registers, evolves, encodes and decodes Avro', () => tellAvro(stage))
  await t.test('it registers, evolves, encodes and decodes JSON', () => tellJson(stage))
  await t.test('it registers, evolves, encodes and decodes Protobuf', () => tellProtobuf(stage))
  await t.test('it hears what is not there, and what does not fit', () => tellUnknown(stage))
}

for (const engine of ['uws', 'node'] as const) {
  test(`a client of Confluent's registry works unchanged, on ${engine}`, async t => {
    const { url } = await startBroker(t, { variant: { engine, shards: 1 } })
    await tellAll(t, { connect: () => clientOf(url, null) })
  })

  test(`and with the secret of a key as its password, on ${engine}`, async t => {
    const { broker, admin } = await startGuarded(t, { variant: { engine, shards: 1 } })
    await tellAll(t, { connect: () => clientOf(broker.url, admin.secret) })

    await t.test('one that may read decodes, and registers nothing', async () => {
      const { id } = await clientOf(broker.url, admin.secret).register(avro(order))
      const reader = await makeTestKey(admin.api, 'read:shop')
      const registry = clientOf(broker.url, reader.secret)
      const message = await registry.encode(id, { id: 7 })
      assert.equal(((await registry.decode(message)) as { id: number }).id, 7)
      assert.equal(await registry.getRegistryIdBySchema('shop.Order', avro(order)), id)
      await assertRefused(registry.register(avro({ ...order, name: 'New' })), 403, /register schema/)
      await assertRefused(registry.getLatestSchemaId('people-value'), 404, /people-value/)
    })

    await t.test('one with another password, or with none, gets nothing', async () => {
      await assertRefused(clientOf(broker.url, 'wrong').getLatestSchemaId('shop.Order'), 401, /no valid key/)
      await assertRefused(clientOf(broker.url, null).getLatestSchemaId('shop.Order'), 401, /no valid key/)
    })
  })
}
