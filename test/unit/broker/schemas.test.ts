/**
 * The use cases of the registry: what is told when, who may read what, one change of a subject at a time, and what a hostile
 * schema costs. The store and the other thread are played by the test, but where a thread is to hang.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SchemaJobs } from '../../../src/background/jobs.ts'
import { BackgroundPool } from '../../../src/background/pool.ts'
import type { CheckSchemaResult, CheckSchemaValue } from '../../../src/background/schema-check.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { SchemaCommands, type SchemaParts } from '../../../src/broker/schemas.ts'
import { ChangeTurns } from '../../../src/control/change-turns.ts'
import { SchemaTable } from '../../../src/control/schemas.ts'
import type { StoreChange } from '../../../src/control/store-image.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { limits } from '../../../src/model/limits.ts'
import { anonymous, type Principal } from '../../../src/model/principal.ts'
import { compatibilityModes, type RegisterRequest } from '../../../src/model/schemas.ts'
import { waitFor } from '../../support/broker.ts'
import { ManualClock } from '../../support/log-harness.ts'
import { emptyImage } from '../control/topics.ts'

const request = (subject: string, schema: string): RegisterRequest => ({ subject, type: 'json_schema', schema })

/** Reads one subject, and changes nothing. */
function readerOf(subject: string): Principal & { isRevoked: boolean } {
  const mayRead = (name: string): boolean => name === subject
  return { ...anonymous, isAdmin: false, isRevoked: false, mayRead, mayWrite: () => false }
}

class Stage {
  readonly table = new SchemaTable(emptyImage)
  readonly checks: { value: CheckSchemaValue; settle: (result: CheckSchemaResult) => void }[] = []
  readonly commits: { changes: readonly StoreChange[]; settle: (error?: BrokerError) => void }[] = []
  readonly schemas: SchemaCommands

  constructor(parts: Partial<SchemaParts> = {}) {
    const commit = (changes: readonly StoreChange[]): Promise<void> =>
      new Promise((resolve, reject) => {
        this.commits.push({ changes, settle: error => (error === undefined ? resolve() : reject(error)) })
      })
    const run = (_job: string, value: CheckSchemaValue): Promise<CheckSchemaResult> =>
      new Promise(settle => {
        this.checks.push({ value, settle })
      })
    const played = { store: { commit }, pool: { run }, clock: new ManualClock(), checkMs: limits.schemaCheckMs }
    this.schemas = new SchemaCommands({ table: this.table, turns: new ChangeTurns(), ...played, ...parts })
  }

  /** The next comparison ends so. @returns what was compared. */
  async check(incompatibilities: readonly string[] = []): Promise<CheckSchemaValue> {
    const check = await waitFor('a check', () => this.checks.shift())
    check.settle({ kind: 'compared', incompatibilities })
    return check.value
  }

  async commit(error?: BrokerError): Promise<readonly StoreChange[]> {
    const commit = await waitFor('a commit', () => this.commits.shift())
    commit.settle(error)
    return commit.changes
  }

  /** Registers, and everything goes well. @returns the id. */
  async add(subject: string, schema: string): Promise<number> {
    const registering = this.schemas.register(anonymous, request(subject, schema))
    await this.check()
    await this.commit()
    return (await registering).id
  }

  async setMode(...mode: Parameters<SchemaCommands['setMode']>): Promise<void> {
    const setting = this.schemas.setMode(...mode)
    await this.commit()
    await setting
  }
}

const full = new BrokerError('DISK_FULL', {}, { written: 'no' })

describe('a schema that is registered', () => {
  test('is there when it is durable and not before, as it was sent', async () => {
    const stage = new Stage()
    const registering = stage.schemas.register(anonymous, request('s', '{"a": 1}'))
    const compared = await stage.check()
    assert.deepEqual(compared, {
      candidate: { type: 'json_schema', schema: '{"a": 1}' },
      previous: [],
      mode: 'default'
    })
    await waitFor('the commit', () => stage.commits.length === 1)
    assert.deepEqual(stage.schemas.list(anonymous), [])
    const version = { id: 1, ...request('s', '{"a": 1}'), version: 1, createdAtMs: new ManualClock().nowMs() }
    assert.deepEqual(await stage.commit(), [{ kind: 'schema-added', version }])
    assert.deepEqual(await registering, version)
    assert.deepEqual(stage.schemas.version(anonymous, 's', null), version)
  })

  test('whose commit is refused is not there, and the next version takes its number', async () => {
    const stage = new Stage()
    const registering = stage.schemas.register(anonymous, request('s', '1'))
    await stage.check()
    await stage.commit(full)
    await assert.rejects(registering, { code: 'DISK_FULL' })
    assert.deepEqual(stage.schemas.subjects(anonymous), [])
    await stage.add('s', '2')
    assert.deepEqual(
      stage.schemas.versionsOf(anonymous, 's').map(({ version, schema }) => [version, schema]),
      [[1, '2']]
    )
  })

  test('is compared with the one before it, though both were sent at once; another subject does not wait', async () => {
    const stage = new Stage()
    const [first, second, other] = [
      stage.schemas.register(anonymous, request('s', '1')),
      stage.schemas.register(anonymous, request('s', '2')),
      stage.schemas.register(anonymous, request('t', '3'))
    ]
    await waitFor('two checks', () => stage.checks.length === 2)
    assert.deepEqual(
      stage.checks.map(({ value }) => value.candidate.schema),
      ['1', '3']
    )
    for (let i = 0; i < 2; i++) await stage.check()
    for (let i = 0; i < 2; i++) await stage.commit()
    assert.deepEqual((await stage.check(['it differs'])).previous, [{ type: 'json_schema', schema: '1' }])
    const incompatible = { code: 'SCHEMA_INCOMPATIBLE', message: 'backward-incompatible: it differs' }
    await assert.rejects(second, incompatible)
    assert.deepEqual([(await first).id, (await other).id], [1, 2])
  })

  test('tells each thing that is incompatible, under the name of the mode', async () => {
    const stage = new Stage()
    await stage.setMode(anonymous, 's', 'full_transitive')
    const registering = stage.schemas.register(anonymous, request('s', '1'))
    await stage.check(['one thing', 'another'])
    await assert.rejects(registering, { message: 'full_transitive-incompatible: one thing; another' })
  })

  test('is refused before it is looked at: names, sizes, and what is not Unicode', async () => {
    const stage = new Stage()
    const wrong: readonly (readonly [RegisterRequest, string, RegExp])[] = [
      [request('', '{}'), 'NAME_INVALID', /^subject ''/],
      [request('a/b', '{}'), 'NAME_INVALID', /^subject 'a\/b'/],
      [request('x'.repeat(201), '{}'), 'NAME_INVALID', /200/],
      [request('s', ''), 'SCHEMA_TOO_LARGE', /0 bytes: allowed is 1 to 524288/],
      [request('s', 'é'.repeat(limits.schemaBytesMax / 2) + '1'), 'SCHEMA_TOO_LARGE', /524289 bytes/],
      [request('s', '"\ud800"'), 'SCHEMA_INVALID', /not Unicode/]
    ]
    for (const [sent, code, message] of wrong)
      await assert.rejects(stage.schemas.register(anonymous, sent), { code, message })
    assert.equal(stage.checks.length, 0)
    void stage.schemas.register(anonymous, request('x'.repeat(200), 'x'.repeat(limits.schemaBytesMax)))
    await stage.check()
  })

  test('that does not parse is refused with the reason', async () => {
    const stage = new Stage()
    const registering = stage.schemas.register(anonymous, request('s', '{'))
    const check = await waitFor('a check', () => stage.checks.shift())
    check.settle({ kind: 'invalid', problem: 'it ends early' })
    await assert.rejects(registering, { code: 'SCHEMA_INVALID', message: /json_schema schema: it ends early; nothing/ })
  })

  test('is not stored for a key that was revoked while it was looked at', async () => {
    const stage = new Stage()
    const who = { ...anonymous, isRevoked: false }
    const registering = stage.schemas.register(who, request('s', '1'))
    await waitFor('the check', () => stage.checks.length === 1)
    who.isRevoked = true
    await stage.check()
    await assert.rejects(registering, { code: 'KEY_REVOKED' })
    assert.equal(stage.commits.length, 0)
  })

  test('does not wait for comparisons that change nothing, which have one thread and a line of their own', async () => {
    const stage = new Stage()
    await stage.add('s', '1')
    const reader = readerOf('s')
    const comparing = Array.from({ length: limits.schemaComparisonsMax }, (_, i) =>
      stage.schemas.incompatibilities(reader, request('s', `{"n":${i}}`), 'all')
    )
    await assert.rejects(stage.schemas.incompatibilities(reader, request('s', '{}'), 'all'), {
      code: 'OVERLOADED',
      message: `the line of schema comparisons is at its limit of ${limits.schemaComparisonsMax}; try again shortly`
    })
    await waitFor('the first of them', () => stage.checks.length === 1)
    const registering = stage.schemas.register(anonymous, request('s', '2'))
    await waitFor('it beside the first', () => stage.checks.length === 2)
    assert.deepEqual(
      stage.checks.map(({ value }) => value.candidate.schema),
      ['{"n":0}', '2']
    )
    stage.checks.pop()?.settle({ kind: 'compared', incompatibilities: [] })
    await stage.commit()
    assert.equal((await registering).version, 2)
    for (let i = 0; i < comparing.length; i++) {
      assert.equal((await stage.check([`${i}`])).candidate.schema, `{"n":${i}}`)
      assert.deepEqual(await comparing[i], [`${i}`])
    }
  })

  test('waits in a line of so many, and one more is refused', async () => {
    const stage = new Stage()
    const waiting = Array.from({ length: limits.schemaChangesMax }, (_, i) =>
      stage.schemas.register(anonymous, request('s', String(i)))
    )
    const refusal = { code: 'OVERLOADED', message: /line of schema changes.*64/ }
    await assert.rejects(stage.schemas.register(anonymous, request('t', '1')), refusal)
    for (const registered of waiting) {
      await stage.check()
      await stage.commit()
      await registered
    }
    assert.equal(await stage.add('t', '1'), limits.schemaChangesMax + 1)
  })

  test('that keeps its thread too long is refused, and the next one is not', async t => {
    const entry = new URL('./spinning-entry.ts', import.meta.url)
    const hanging = new BackgroundPool<SchemaJobs>({ threadsMax: 1, jobsMax: 8, logger: silentLogger, entry })
    t.after(() => hanging.close())
    const { schemas } = new Stage({ pool: hanging, checkMs: 100 })
    const refusal = { code: 'SCHEMA_TIMEOUT', message: /more than 100 ms to parse and compare.*nothing was written/ }
    await assert.rejects(schemas.register(anonymous, request('s', '{}')), refusal)
    await assert.rejects(schemas.incompatibilities(anonymous, request('s', '{}'), 'all'), refusal)
    assert.equal(hanging.jobCount, 0)
  })
})

describe('a schema that is registered once', () => {
  test('has the version and the id that it had', async () => {
    const stage = new Stage()
    await stage.add('a', '1')
    await stage.add('a', '2')
    assert.equal((await stage.schemas.registerOnce(anonymous, request('a', '1'))).version, 1)
    const registering = stage.schemas.registerOnce(anonymous, request('b', '2'))
    await stage.check()
    await stage.commit()
    assert.deepEqual([(await registering).id, (await registering).version], [2, 1])
    assert.deepEqual(
      stage.schemas.versionsOfId(anonymous, 2).map(({ subject }) => subject),
      ['a', 'b']
    )
  })
})

describe('what a version is compared with', () => {
  test('is the latest, all of them where the mode is transitive, or nothing', async () => {
    const stage = new Stage()
    for (const schema of ['1', '2', '2', '3']) await stage.add('s', schema)
    for (const mode of compatibilityModes) {
      await (mode === 'default' ? Promise.resolve() : stage.setMode(anonymous, 's', mode))
      const comparing = stage.schemas.incompatibilities(anonymous, request('s', '4'), 'all')
      const value = await stage.check(['x'])
      const expected = mode === 'none' ? [] : mode.endsWith('_transitive') ? ['3', '2', '2', '1'] : ['3']
      assert.deepEqual([value.mode, value.previous.map(({ schema }) => schema)], [mode, expected])
      assert.deepEqual(await comparing, ['x'])
    }
  })

  test('is one version, if that is asked for, and changes nothing', async () => {
    const stage = new Stage()
    for (const schema of ['1', '2']) await stage.add('s', schema)
    const comparing = stage.schemas.incompatibilities(anonymous, request('s', '3'), 1)
    assert.deepEqual((await stage.check()).previous, [{ type: 'json_schema', schema: '1' }])
    assert.deepEqual([await comparing, stage.schemas.versionsOf(anonymous, 's').length], [[], 2])
    const missing = { code: 'VERSION_NOT_FOUND', message: "subject 's' has no version 3" }
    await assert.rejects(stage.schemas.incompatibilities(anonymous, request('s', '3'), 3), missing)
    await assert.rejects(stage.schemas.incompatibilities(anonymous, request('t', '3'), null), {
      code: 'SUBJECT_NOT_FOUND'
    })
  })

  test('is bounded: the newest so many texts of a transitive mode, and so many bytes', async () => {
    const stage = new Stage()
    await stage.setMode(anonymous, 's', 'backward_transitive')
    const text = (i: number): string => `"${i}${'x'.repeat(limits.schemaBytesMax - 10)}"`
    for (let i = 0; i < 40; i++) await stage.add('s', text(i))
    const comparing = stage.schemas.incompatibilities(anonymous, request('s', '1'), 'all')
    const { previous } = await stage.check()
    await comparing
    const bytes = previous.reduce((sum, { schema }) => sum + schema.length, 0)
    assert.ok(bytes <= limits.comparedSchemaBytesMax && bytes > limits.comparedSchemaBytesMax - limits.schemaBytesMax)
    assert.equal(previous[0]?.schema, text(39))
  })
})

describe('a key', () => {
  test('finds what it may read, and for all else the same as if it were not there', async () => {
    const stage = new Stage()
    for (const subject of ['mine', 'other']) await stage.add(subject, '1')
    const who = readerOf('mine')
    const { schemas } = stage
    assert.deepEqual(
      [schemas.list(who).map(({ id }) => id), schemas.subjects(who), schemas.byId(who, 1).id],
      [[1], ['mine'], 1]
    )
    const looks: readonly ((subject: string, id: number) => unknown)[] = [
      (_subject, id) => schemas.byId(who, id),
      (_subject, id) => schemas.versionsOfId(who, id),
      subject => schemas.versionsOf(who, subject),
      subject => schemas.version(who, subject, 1),
      subject => schemas.lookup(who, request(subject, '1')),
      subject => schemas.modeOf(who, subject)
    ]
    for (const look of looks) {
      const [there, notThere] = [['other', 2] as const, ['otter', 3] as const].map(([subject, id]) => {
        try {
          return assert.fail(`${String(look)} finds ${String(look(subject, id))}`)
        } catch (error) {
          assert.ok(error instanceof BrokerError && error.spec.http === 404, String(error))
          return error.message.replace(subject, '…').replace(String(id), '…')
        }
      })
      assert.equal(there, notThere)
    }
    await assert.rejects(schemas.incompatibilities(who, request('other', '1'), 'all'), { code: 'SUBJECT_NOT_FOUND' })
  })

  test('that is no administrator changes nothing', async () => {
    const { schemas, checks, commits } = new Stage()
    const who = readerOf('mine')
    await assert.rejects(schemas.register(who, request('mine', '1')), { code: 'FORBIDDEN' })
    await assert.rejects(schemas.registerOnce(who, request('mine', '1')), { code: 'FORBIDDEN' })
    await assert.rejects(schemas.setMode(who, 'mine', 'none'), { code: 'FORBIDDEN' })
    assert.deepEqual([checks.length, commits.length], [0, 0])
  })

  test('that is revoked reads nothing', () => {
    const { schemas } = new Stage()
    const who = { ...anonymous, isRevoked: true }
    assert.throws(() => schemas.list(who), { code: 'KEY_REVOKED' })
    assert.throws(() => schemas.versionsOf(who, 's'), { code: 'KEY_REVOKED' })
  })
})

describe('a compatibility mode', () => {
  test('counts when it is durable, for a subject without versions too, and is taken back with null', async () => {
    const stage = new Stage()
    const { schemas } = stage
    const setting = schemas.setMode(anonymous, 's', 'full')
    await waitFor('the commit', () => stage.commits.length === 1)
    assert.equal(schemas.modeOf(anonymous, 's'), null)
    await stage.commit()
    await setting
    assert.equal(schemas.modeOf(anonymous, 's'), 'full')
    await schemas.setMode(anonymous, 's', 'full')
    assert.equal(stage.commits.length, 0, 'what is chosen is not stored again')
    await stage.setMode(anonymous, 's', null)
    await stage.setMode(anonymous, null, 'none')
    assert.deepEqual([schemas.modeOf(anonymous, 's'), schemas.modeOf(anonymous, null)], [null, 'none'])
    await assert.rejects(schemas.setMode(anonymous, 'a b', 'none'), { code: 'NAME_INVALID' })
  })
})
