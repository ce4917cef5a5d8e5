/** The schema registry in store.db: rows in and out, ids that are never given again, and stores of the format before. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test, type TestContext } from 'node:test'
import type { StoreChange } from '../../../src/control/store-image.ts'
import type { SchemaVersion } from '../../../src/model/schemas.ts'
import { StoreDatabase } from '../../../workers/store/database.ts'
import { prepareTables } from '../../../workers/store/schema.ts'
import { topicOf } from '../control/topics.ts'
import { takeBackTo } from './older-formats.ts'

const version = (id: number, subject: string, number: number, schema = `{"title":"${id}"}`): SchemaVersion => ({
  id,
  subject,
  version: number,
  type: 'json_schema',
  schema,
  createdAtMs: 2 ** 50 + id
})

const added = (version: SchemaVersion): StoreChange => ({ kind: 'schema-added', version })

function openInMemory(t: TestContext): { connection: DatabaseSync; database: StoreDatabase } {
  const connection = new DatabaseSync(':memory:')
  prepareTables(connection, ':memory:')
  const database = new StoreDatabase(connection)
  t.after(() => database.close())
  return { connection, database }
}

describe('schemas in the store', () => {
  test('come back as they were, by id, then subject, texts character for character', t => {
    const { database } = openInMemory(t)
    const odd = version(1, 's', 1, ' {"é": "\u{1F4A5}", "z": "\0"}\r\n')
    const proto: SchemaVersion = { ...version(3, 's', 2, 'syntax = "proto3";'), type: 'protobuf' }
    const shared = version(1, 'b', 1, odd.schema)
    database.commitGroup([[added(odd)], [added(proto)], [added(shared)]])
    const { schemaVersions, nextSchemaId } = database.readImage()
    assert.deepEqual([schemaVersions, nextSchemaId], [[shared, odd, proto], 4])
  })

  test('never change the text of an id', t => {
    const { database } = openInMemory(t)
    database.commitGroup([[added(version(1, 'a', 1))]])
    const [outcome] = database.commitGroup([[added(version(1, 'b', 1, '{}'))]])
    assert.equal(outcome?.kind, 'refused')
    assert.deepEqual(database.readImage().schemaVersions, [version(1, 'a', 1)])
  })

  test('have each version of a subject once', t => {
    const { database } = openInMemory(t)
    const outcomes = database.commitGroup([[added(version(1, 'a', 1))], [added(version(2, 'a', 1))]])
    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      ['committed', 'refused']
    )
    const { schemaVersions, nextSchemaId } = database.readImage()
    assert.deepEqual([schemaVersions, nextSchemaId], [[version(1, 'a', 1)], 2])
  })

  test('keep the modes that were chosen, the general one too', t => {
    const { database } = openInMemory(t)
    database.commitGroup([
      [{ kind: 'schema-mode', subject: 'a', mode: 'full' }],
      [{ kind: 'schema-mode', subject: null, mode: 'none' }],
      [{ kind: 'schema-mode', subject: 'a', mode: 'forward_transitive' }],
      [{ kind: 'schema-mode', subject: 'b', mode: 'backward' }]
    ])
    assert.deepEqual(database.readImage().schemaModes, [
      { subject: null, mode: 'none' },
      { subject: 'a', mode: 'forward_transitive' },
      { subject: 'b', mode: 'backward' }
    ])
    database.commitGroup([
      [{ kind: 'schema-mode', subject: 'a', mode: null }],
      [{ kind: 'schema-mode', subject: null, mode: null }]
    ])
    assert.deepEqual(database.readImage().schemaModes, [{ subject: 'b', mode: 'backward' }])
  })

  test('have their tables in a store of format 5, which keeps what it had', t => {
    const { connection, database } = openInMemory(t)
    database.commitGroup([[{ kind: 'topic-created', topic: topicOf({ id: 1, name: 't', firstHandle: 1 }) }]])
    takeBackTo(connection, 5)
    prepareTables(connection, ':memory:')
    const migrated = new StoreDatabase(connection)
    assert.equal(migrated.readImage().nextSchemaId, 1)
    migrated.commitGroup([[added(version(1, 'a', 1))]])
    const { topics, schemaVersions } = migrated.readImage()
    assert.deepEqual([topics.length, schemaVersions], [1, [version(1, 'a', 1)]])
  })

  test('that no version of this code writes are reported as damage', t => {
    const { connection, database } = openInMemory(t)
    database.commitGroup([[added(version(1, 'a', 1)), { kind: 'schema-mode', subject: 'a', mode: 'full' }]])
    for (const [change, column] of [
      ["UPDATE schemas SET type = 'xml'", 'type'],
      ['DELETE FROM schemas', 'type'],
      ["UPDATE schema_modes SET mode = 'sideways'", 'mode']
    ] as const) {
      connection.exec(`SAVEPOINT one; ${change}`)
      assert.throws(() => database.readImage(), { code: 'damaged', message: new RegExp(`column ${column}`) })
      connection.exec('ROLLBACK TO one; RELEASE one')
    }
    assert.equal(database.readImage().schemaVersions.length, 1)
  })
})
