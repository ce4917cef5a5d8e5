/** Produces to validated topics: what is matched with which schema, what is refused, in which order the rest goes on. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BrokerError } from '../../../src/model/errors.ts'
import { limits } from '../../../src/model/limits.ts'
import { anonymous, type Principal } from '../../../src/model/principal.ts'
import { submitOutcomes, type SubmitOutcome } from '../../../src/model/requests.ts'
import type { SchemaVersion } from '../../../src/model/schemas.ts'
import { configure, remove } from '../control/topics.ts'
import { BrokerStage, keyWith, recordOf, turn } from './broker-stage.ts'

function schemaOf(id: number, version = id, subject = 't-value'): SchemaVersion {
  return { id, subject, version, type: 'json_schema', schema: `{"id":${id}}`, createdAtMs: 0 }
}

/** A topic `t` that is validated, with one schema. */
function validatedStage(): BrokerStage {
  const stage = new BrokerStage()
  stage.create('t', 2, { validate_schema: true })
  stage.schemaVersions.push(schemaOf(1))
  return stage
}

/** Answers the first that the engine was given. */
async function append(stage: BrokerStage): Promise<number> {
  const next = stage.appends.shift()
  assert.ok(next !== undefined, 'something was dispatched')
  const { count } = next.append.records
  next.caller.onProduced(Buffer.alloc(0), 0, count, 0, 0)
  await turn()
  return count
}

describe('a produce to a validated topic', () => {
  test('is held until its records match, and goes on as it came', async () => {
    const stage = validatedStage()
    const records = [recordOf(5, { partition: 1 }), recordOf(1), recordOf(3)]
    assert.equal(await stage.produce('a', anonymous, records), submitOutcomes.held)
    assert.deepEqual([stage.appends.length, stage.dispatched], [0, []])
    assert.ok(stage.validated.usedBytes > 0)
    assert.deepEqual(await stage.validate('matches'), ['vvvv', 'v', 'vv'])
    const { records: held, partitions, producer } = stage.appends[0]?.append ?? assert.fail('it was not dispatched')
    assert.deepEqual([[...partitions].length, partitions[0], producer], [3, 1, 0])
    const target = Buffer.alloc(held.ringBytes)
    assert.equal(held.writeAll(partitions, target, 0), target.length)
    assert.equal(target.toString('latin1').split('v').length - 1, 4 + 1 + 2)
    assert.deepEqual(stage.dispatched, ['a'])
    await append(stage)
    assert.deepEqual([stage.told(), stage.validated.usedBytes], [['a produced 3'], 0])
  })

  test('is not copied or held in a topic that is not', async () => {
    const stage = new BrokerStage()
    stage.create('t')
    assert.equal(await stage.produce('a', anonymous, [recordOf(1)]), submitOutcomes.taken)
    assert.deepEqual([stage.validations.length, stage.validated.usedBytes], [0, 0])
  })

  test('is refused with the index and the reason, and gives back its memory and its quota', async () => {
    const stage = validatedStage()
    const who = keyWith({ produceBytesPerSec: 100, consumeBytesPerSec: null })
    await stage.produce('a', who, [recordOf(60)])
    assert.equal(await stage.produce('over', who, [recordOf(60)]), submitOutcomes.taken)
    await stage.validate([0, 'it is not JSON'])
    assert.deepEqual(stage.told(), ['over RATE_LIMITED', 'a SCHEMA_MISMATCH'])
    assert.deepEqual([stage.validated.usedBytes, stage.appends.length, stage.dispatched], [0, 0, ['a']])
    assert.equal(await stage.produce('b', who, [recordOf(60)]), submitOutcomes.held)
    assert.equal(
      stage.failures.at(-1)?.message,
      "record 0 does not match schema 1 (version 1 of 't-value'): it is not JSON; nothing was written"
    )
  })

  test('is refused while no schema is registered, and not before it is refused for itself', async () => {
    const stage = validatedStage()
    stage.schemaVersions.length = 0
    await stage.produce('a', anonymous, [recordOf(1)])
    await stage.produce('b', anonymous, [recordOf(1, { partition: 2 })])
    await stage.produce('c', anonymous, [])
    stage.schemaVersions.push(schemaOf(1))
    await stage.produce('d', anonymous, [recordOf(1)])
    assert.deepEqual(stage.told(), ['a SCHEMA_MISSING', 'b PARTITION_RANGE', 'c produced 0'])
    assert.equal(stage.validations.length, 1)
  })

  test('is matched with the schema that was the latest when it came', async () => {
    const stage = validatedStage()
    await stage.produce('a', anonymous, [recordOf(1)])
    stage.schemaVersions.push(schemaOf(7, 2))
    await stage.produce('b', anonymous, [recordOf(1)])
    assert.equal(stage.validations[0]?.value.schemaId, 1)
    await stage.validate('matches')
    assert.equal(stage.validations[0]?.value.schemaId, 7)
  })

  test('sends the text of the schema only to a thread that asks for it', async () => {
    const stage = validatedStage()
    await stage.produce('a', anonymous, [recordOf(2)])
    assert.equal(stage.validations[0]?.value.text, null)
    assert.deepEqual(await stage.validate('textless'), ['v'])
    assert.deepEqual(stage.validations[0]?.value.text, { type: 'json_schema', schema: '{"id":1}' })
    assert.deepEqual(await stage.validate('matches'), ['v'])
    assert.equal(await append(stage), 1)
  })

  test('has more time the larger it is, and is refused with its schema when that is over, or its memory', async () => {
    const stage = validatedStage()
    await stage.produce('a', anonymous, [recordOf(1000)])
    const bound = stage.validations[0]?.bound ?? assert.fail('it has a bound')
    assert.equal(bound.timeMs, 1001)
    const time = bound.failure('time')
    assert.match(time.message, /^matching the records with schema 1 .*took more than 1001 ms; nothing was written$/)
    assert.match(bound.failure('memory').message, /took more than \d+ MiB of memory;/)
    await stage.validate(time)
    assert.deepEqual([stage.told(), stage.validated.usedBytes], [['a VALIDATION_LIMIT'], 0])
  })
})

describe('produces of one key to one validated topic', () => {
  test('are matched one at a time and go on in order, a refused one too', async () => {
    const stage = validatedStage()
    for (const name of ['a', 'b', 'c']) await stage.produce(name, anonymous, [recordOf(name.charCodeAt(0))])
    assert.equal(stage.validations.length, 1)
    await stage.validate('matches')
    await stage.validate([0, 'no'])
    await stage.validate('matches')
    assert.deepEqual(stage.dispatched, ['a', 'b', 'c'])
    assert.deepEqual(
      stage.appends.map(({ append: { records } }) => records.largestPayloadBytes),
      [97, 99]
    )
  })

  test('do not hold up those of another key, or to another topic', async () => {
    const stage = validatedStage()
    stage.create('u', 1, { validate_schema: true })
    stage.schemaVersions.push(schemaOf(2, 1, 'u-value'))
    await stage.produce('a', anonymous, [recordOf(1)])
    await stage.produce('b', keyWith({ produceBytesPerSec: null, consumeBytesPerSec: null }), [recordOf(1)])
    await stage.produce('c', anonymous, [recordOf(1)], { topic: 'u' })
    assert.equal(stage.validations.length, 3)
  })

  test('keep their order when the topic is no longer validated', async () => {
    const stage = validatedStage()
    await stage.produce('a', anonymous, [recordOf(1)])
    configure(stage.catalog, 't', { validate_schema: false })
    assert.equal(await stage.produce('b', anonymous, [recordOf(2)]), submitOutcomes.held)
    await stage.validate('matches')
    assert.deepEqual([stage.dispatched, stage.validations.length], [['a', 'b'], 0])
    assert.equal(await stage.produce('c', anonymous, [recordOf(1)]), submitOutcomes.taken)
  })

  test('wait for room in the rings in that order', async () => {
    const stage = validatedStage()
    await stage.produce('a', anonymous, [recordOf(1)])
    await stage.produce('b', anonymous, [recordOf(2)])
    stage.isFull = true
    await stage.validate('matches')
    assert.deepEqual([stage.dispatched, stage.validations.length], [[], 0])
    stage.isFull = false
    for (const waiter of stage.roomWaiters.splice(0)) waiter()
    await turn()
    assert.deepEqual([stage.dispatched, stage.validations.length], [['a'], 1])
  })

  test('hold a part of the memory, one alone any; more of them wait where they are', async () => {
    const stage = validatedStage()
    const part = stage.validated.limitBytes / limits.validationLineShare
    assert.equal(await stage.produce('a', anonymous, Array(30).fill(recordOf(9_000))), submitOutcomes.held)
    assert.ok(stage.validated.usedBytes > part)
    assert.equal(await stage.produce('b', anonymous, [recordOf(1)]), submitOutcomes.full)
    const other = keyWith({ produceBytesPerSec: null, consumeBytesPerSec: null })
    assert.equal(await stage.produce('c', other, [recordOf(1)]), submitOutcomes.held)
    await stage.validate('matches')
    assert.equal(await stage.produce('b', anonymous, [recordOf(1)]), submitOutcomes.held)
  })

  test('that found no room are tried again also when the one before them is refused, and nothing else goes on', async () => {
    const stage = validatedStage()
    let tries = 0
    await stage.produce('a', anonymous, Array(30).fill(recordOf(9_000)))
    assert.equal(await stage.produce('b', anonymous, [recordOf(1)]), submitOutcomes.full)
    stage.broker.whenRoom(() => void tries++)
    await stage.validate([0, 'it is not JSON'])
    assert.deepEqual([stage.told(), tries], [['a SCHEMA_MISMATCH'], 1])
  })

  test('are no longer than a line may be', async () => {
    const stage = validatedStage()
    const outcomes: number[] = []
    for (let i = 0; i <= limits.validationLineMax; i++)
      outcomes.push(stage.submit('a', anonymous, [{ key: null, value: '' }]))
    const { held, full } = submitOutcomes
    assert.deepEqual([outcomes.indexOf(full), outcomes[0]], [limits.validationLineMax, held])
  })
})

describe('a produce that was to be matched', () => {
  const cases: readonly (readonly [string, string, (stage: BrokerStage, who: { isRevoked: boolean }) => void])[] = [
    ['whose key is revoked', 'KEY_REVOKED', (_, who) => void (who.isRevoked = true)],
    ['whose topic is deleted', 'TOPIC_NOT_FOUND', stage => remove(stage.catalog, 't')],
    [
      'whose topic is made anew under its name',
      'TOPIC_NOT_FOUND',
      stage => {
        remove(stage.catalog, 't')
        stage.create('t', 1, { validate_schema: true })
      }
    ]
  ]
  for (const [what, code, change] of cases) {
    test(`${what} is refused, and one behind it without being matched`, async () => {
      const stage = validatedStage()
      const who: { isRevoked: boolean } & Principal = { ...anonymous, isRevoked: false }
      await stage.produce('a', who, [recordOf(1)])
      await stage.produce('b', who, [recordOf(1)])
      change(stage, who)
      await stage.validate('matches')
      assert.deepEqual([stage.told(), stage.validations.length], [[`a ${code}`, `b ${code}`], 0])
      assert.deepEqual([stage.appends.length, stage.validated.usedBytes], [0, 0])
    })
  }
})

describe('an idempotent produce to a validated topic', () => {
  test('is matched, then stored as a producer, then dispatched; the next keeps behind it', async () => {
    const stage = validatedStage()
    const numbered = (sequence: bigint) => [recordOf(1, { partition: 0, sequence })]
    await stage.produce('a', anonymous, numbered(0n), { producerId: 'p' })
    await stage.produce('b', anonymous, numbered(1n), { producerId: 'p' })
    assert.equal(stage.appends.length, 0)
    await stage.validate('matches')
    await stage.validate('matches')
    assert.deepEqual(
      stage.appends.map(({ append: { producer, records } }) => [producer, records.sequenceLowOf(0)]),
      [
        [1, 0],
        [1, 1]
      ]
    )
    assert.deepEqual(stage.dispatched, ['a', 'b'])
    await append(stage)
    await append(stage)
    assert.deepEqual([stage.told(), stage.validated.usedBytes], [['a produced 1', 'b produced 1'], 0])
  })

  test('that does not match leaves no producer behind', async () => {
    const stage = validatedStage()
    await stage.produce('a', anonymous, [recordOf(1, { partition: 0, sequence: 0n })], { producerId: 'p' })
    await stage.validate([0, 'no'])
    assert.deepEqual([stage.told(), stage.producers.withId('p')], [['a SCHEMA_MISMATCH'], undefined])
  })

  test('hears what its producer id or its sequences are refused for', async () => {
    const stage = validatedStage()
    await stage.produce('a', anonymous, [recordOf(1)], { producerId: 'p' })
    await stage.produce('b', anonymous, [recordOf(1, { sequence: 0n })], { producerId: 'not a name' })
    await stage.validate('matches')
    assert.deepEqual([stage.told(), stage.validated.usedBytes], [['a SEQUENCE_INVALID', 'b NAME_INVALID'], 0])
  })
})

describe('schemas with which matching takes too long', () => {
  /** Topics a, b, c … with a schema each. */
  function topicsOf(stage: BrokerStage, names: readonly string[]): void {
    for (const [index, name] of names.entries()) {
      stage.create(name, 1, { validate_schema: true })
      stage.schemaVersions.push(schemaOf(index + 1, 1, `${name}-value`))
    }
  }
  const over = new BrokerError('VALIDATION_LIMIT')
  const schemasAtWork = (stage: BrokerStage): number[] => stage.validations.map(({ value }) => value.schemaId)

  test('have one thread together, and others do not wait for them', async () => {
    const stage = new BrokerStage()
    topicsOf(stage, ['a', 'b', 'c', 'good'])
    for (const topic of ['a', 'b', 'c', 'a', 'b', 'c']) await stage.produce(topic, anonymous, [recordOf(1)], { topic })
    assert.deepEqual(schemasAtWork(stage), [1, 2, 3])
    for (let i = 0; i < 3; i++) await stage.validate(over)
    assert.deepEqual(schemasAtWork(stage), [1])
    await stage.produce('good', anonymous, [recordOf(1)], { topic: 'good' })
    assert.deepEqual(schemasAtWork(stage), [1, 4])
    await stage.validate(over)
    assert.deepEqual(schemasAtWork(stage), [4, 2])
    await stage.validate('matches')
    await stage.validate([0, 'no'])
    await stage.validate('matches')
    assert.deepEqual(
      stage.appends.map(given => given.append.topic.name),
      ['good', 'c']
    )
  })

  test('let little wait for them: what came before they were known to be slow is refused beyond it, like what comes', async () => {
    const stage = new BrokerStage()
    topicsOf(stage, ['a', 'b'])
    const names = Array.from({ length: limits.slowValidationsMax + 4 }, (_, i) => `a${i}`)
    for (const name of names) await stage.produce(name, anonymous, [recordOf(1)], { topic: 'a' })
    await stage.validate(over)
    assert.deepEqual(stage.told(), ['a0 VALIDATION_LIMIT', 'a1 OVERLOADED', 'a2 OVERLOADED', 'a3 OVERLOADED'])
    await stage.produce('more', anonymous, [recordOf(1)], { topic: 'a' })
    await stage.produce('b', anonymous, [recordOf(1)], { topic: 'b' })
    assert.deepEqual([stage.told(), schemasAtWork(stage)], [['more OVERLOADED'], [1, 2]])
    assert.equal(
      stage.failures.at(-1)?.message,
      'the line of records whose schemas take too long is at its limit of 16; try again shortly'
    )
  })

  test('let little memory wait for them', async () => {
    const stage = new BrokerStage()
    topicsOf(stage, ['a'])
    const records = Array.from({ length: 9 }, () => recordOf(9_000))
    const submit = (name: string): Promise<SubmitOutcome> => stage.produce(name, anonymous, records, { topic: 'a' })
    for (const name of ['a0', 'a1', 'a2']) assert.equal(await submit(name), submitOutcomes.held)
    assert.equal(await submit('a3'), submitOutcomes.full)
    await stage.validate(over)
    assert.equal(await submit('a3'), submitOutcomes.held)
    assert.equal(await submit('a4'), submitOutcomes.taken)
    assert.deepEqual(stage.told(), ['a0 VALIDATION_LIMIT', 'a4 OVERLOADED'])
    assert.equal(
      stage.failures.at(-1)?.message,
      'the line of records whose schemas take too long is at its limit of 250000 bytes; try again shortly'
    )
    for (let i = 0; i < 3; i++) await stage.validate('matches')
    while (stage.appends.length > 0) await append(stage)
    assert.equal(stage.validated.usedBytes, 0)
  })

  test('are like any other again when they have long been matched in time', async () => {
    const stage = new BrokerStage()
    topicsOf(stage, ['a', 'b'])
    for (const topic of ['a', 'b']) {
      await stage.produce(topic, anonymous, [recordOf(1)], { topic })
      await stage.validate(over)
    }
    const both = async (): Promise<number[]> => {
      for (const topic of ['a', 'b']) await stage.produce(topic, anonymous, [recordOf(1)], { topic })
      return schemasAtWork(stage)
    }
    for (let i = 0; i < limits.slowSchemaRequests; i++) {
      assert.deepEqual(await both(), [1], `after ${i} in time`)
      await stage.validate('matches')
      await stage.validate('matches')
    }
    assert.deepEqual(await both(), [1, 2])
  })
})
