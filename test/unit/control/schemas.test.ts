/** The registry's state: ids, versions and modes as changes come, what a start makes of an image, and the limits. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SchemaTable, type SchemaLimits } from '../../../src/control/schemas.ts'
import { limits } from '../../../src/model/limits.ts'
import type { SchemaVersion } from '../../../src/model/schemas.ts'
import { emptyImage } from './topics.ts'

const textOf = (title: string): string => JSON.stringify({ title })

/** A table that plays the store besides: what it applied is there at its next start. */
class Stage {
  table: SchemaTable
  readonly #bounds: SchemaLimits
  #stored: SchemaVersion[] = []
  #nextId = 1

  constructor(bounds: Partial<SchemaLimits> = {}) {
    this.#bounds = { ...limits, ...bounds }
    this.table = new SchemaTable(emptyImage, this.#bounds)
  }

  decide(subject: string, schema: string, sharesId = false): SchemaVersion {
    return this.table.decideVersion({ subject, type: 'json_schema', schema }, sharesId, 7)
  }

  add(subject: string, schema: string, sharesId = false): SchemaVersion {
    const version = this.decide(subject, schema, sharesId)
    this.table.reserve(version)
    this.carryOut(version)
    return version
  }

  carryOut(version: SchemaVersion): void {
    this.table.apply({ kind: 'schema-added', version })
    this.#stored.push(version)
    this.#nextId = Math.max(this.#nextId, version.id + 1)
  }

  /** @param keeps which rows the store still has. */
  restart(keeps: (version: SchemaVersion) => boolean = () => true): void {
    this.#stored = this.#stored.filter(keeps)
    const schemaVersions = [...this.#stored].reverse()
    this.table = new SchemaTable({ schemaVersions, schemaModes: [], nextSchemaId: this.#nextId }, this.#bounds)
  }
}

const idsOf = (versions: readonly SchemaVersion[]): string[] =>
  versions.map(({ id, subject, version }) => `${id} ${subject} ${version}`)

describe('ids of schemas', () => {
  test('count from 1 over all subjects, and the same text again has a new one', () => {
    const stage = new Stage()
    for (const subject of ['b', 'a', 'b']) stage.add(subject, textOf('x'))
    assert.deepEqual(idsOf(stage.table.versions()), ['1 b 1', '2 a 1', '3 b 2'])
  })

  test('are shared by equal texts of a type where that is asked for, the lowest of them', () => {
    const stage = new Stage()
    stage.add('a', textOf('x'))
    stage.add('a', textOf('x'))
    stage.add('b', textOf('x'), true)
    stage.add('b', textOf('y'), true)
    const proto = stage.table.decideVersion({ subject: 'c', type: 'protobuf', schema: textOf('x') }, true, 0)
    assert.equal(proto.id, 4, 'another type is another schema')
    stage.restart()
    stage.add('a.c', textOf('x'), true)
    assert.deepEqual(idsOf(stage.table.versions()), ['1 a 1', '1 a.c 1', '1 b 1', '2 a 2', '3 b 2'])
    assert.deepEqual(idsOf(stage.table.versionsOfId(1)), ['1 a 1', '1 a.c 1', '1 b 1'])
  })

  test('go on behind the highest that ever was, though nothing has it any more', () => {
    const stage = new Stage()
    for (const title of ['x', 'y', 'z']) stage.add('a', textOf(title))
    stage.restart(({ id }) => id === 1)
    assert.equal(stage.add('a', textOf('w')).id, 4)
  })

  test('are different for versions that are on their way at once, and shared by equal texts on their way', () => {
    const stage = new Stage()
    const first = stage.decide('a', textOf('x'), true)
    stage.table.reserve(first)
    const second = stage.decide('b', textOf('y'), true)
    stage.table.reserve(second)
    const third = stage.decide('c', textOf('x'), true)
    stage.table.reserve(third)
    assert.deepEqual([first.id, second.id, third.id], [1, 2, 1])
    stage.table.abandon(first)
    for (const version of [second, third]) stage.carryOut(version)
    assert.deepEqual(idsOf(stage.table.versions()), ['1 c 1', '2 b 1'])
  })

  test('whose commit was refused belong to no other text', () => {
    const stage = new Stage()
    const refused = stage.decide('a', textOf('x'))
    stage.table.reserve(refused)
    stage.table.abandon(refused)
    assert.deepEqual([stage.table.versionsOf('a'), stage.table.versionCount, stage.table.textBytes], [[], 0, 0])
    assert.deepEqual([stage.add('a', textOf('y')).id, stage.add('a', textOf('x'), true).id], [2, 1])
  })
})

describe('versions of a subject', () => {
  test('count from 1, and are in that order after a restart, whatever the order of the rows', () => {
    const stage = new Stage()
    for (let i = 0; i < 12; i++) stage.add('a', textOf(`x${i}`))
    // Under an older id than the version before it: the highest version is the latest, not the highest id.
    stage.add('b', textOf('old'))
    stage.add('a', textOf('new'))
    stage.add('a', textOf('old'), true)
    stage.restart()
    const versions = stage.table.versionsOf('a').map(({ version }) => version)
    assert.deepEqual(
      versions,
      Array.from({ length: 14 }, (_, i) => i + 1)
    )
    assert.equal(stage.table.versionsOf('a').at(-1)?.schema, textOf('old'))
    assert.deepEqual(stage.table.versionsOf('nothing'), [])
  })

  test('are found by their text, the newest', () => {
    const stage = new Stage()
    for (const title of ['x', 'y', 'x', 'z']) stage.add('a', textOf(title))
    const like = { subject: 'a', type: 'json_schema', schema: textOf('x') } as const
    assert.equal(stage.table.newestLike(like)?.version, 3)
    assert.equal(stage.table.newestLike({ ...like, type: 'avro' }), undefined)
    assert.equal(stage.table.newestLike({ ...like, subject: 'b' }), undefined)
  })

  test('are listed with what came since the last list', () => {
    const stage = new Stage()
    stage.add('b', textOf('x'))
    assert.deepEqual([stage.table.subjects(), stage.table.versions().length], [['b'], 1])
    stage.add('a', textOf('x'))
    assert.deepEqual([stage.table.subjects(), stage.table.versions().length], [['a', 'b'], 2])
  })
})

describe('the limits of the registry', () => {
  test('refuse one version more, with the limit; what is on its way counts, what was given up does not', () => {
    const stage = new Stage({ schemaVersionsMax: 2 })
    stage.add('a', textOf('x'))
    const waiting = stage.decide('b', textOf('x'))
    stage.table.reserve(waiting)
    const refusal = { code: 'SCHEMAS_TOO_MANY', message: /'c' would be over the limit of 2 versions/ }
    assert.throws(() => stage.decide('c', textOf('x')), refusal)
    stage.table.abandon(waiting)
    stage.add('c', textOf('x'))
    stage.restart()
    assert.throws(() => stage.decide('d', textOf('x')), { code: 'SCHEMAS_TOO_MANY' })
  })

  test('refuse a byte of UTF-8 more than there may be, also under an id that is there', () => {
    const stage = new Stage({ schemaBytesTotalMax: 4 })
    stage.add('a', '"é"')
    assert.equal(stage.table.textBytes, 4)
    const refusal = { code: 'SCHEMAS_TOO_MANY', message: /limit of 4 bytes of texts/ }
    assert.throws(() => stage.decide('b', '1'), refusal)
    assert.throws(() => stage.decide('b', '"é"', true), refusal)
  })

  test('refuse modes of more subjects than there may be versions', () => {
    const { table } = new Stage({ schemaVersionsMax: 1 })
    for (const change of table.decideMode('a', 'full')) table.apply(change)
    assert.throws(() => table.decideMode('b', 'full'), { code: 'SCHEMAS_TOO_MANY', message: /1 modes/ })
    assert.equal(table.decideMode('a', 'none').length, 1)
    assert.equal(table.decideMode(null, 'none').length, 1)
  })
})

describe('compatibility modes', () => {
  test('are the general one unless the subject has its own', () => {
    const { table } = new Stage()
    assert.deepEqual([table.modeOf(null), table.modeOf('a'), table.effectiveMode('a')], ['default', null, 'default'])
    for (const change of [...table.decideMode(null, 'full'), ...table.decideMode('a', 'none')]) table.apply(change)
    assert.deepEqual([table.modeOf(null), table.modeOf('a')], ['full', 'none'])
    assert.deepEqual([table.effectiveMode('a'), table.effectiveMode('b')], ['none', 'full'])
    for (const change of [...table.decideMode(null, null), ...table.decideMode('a', null)]) table.apply(change)
    assert.deepEqual([table.modeOf(null), table.modeOf('a')], ['default', null])
  })

  test('that are chosen already change nothing', () => {
    const { table } = new Stage()
    assert.deepEqual(
      [table.decideMode(null, 'default'), table.decideMode(null, null), table.decideMode('a', null)],
      [[], [], []]
    )
  })
})
