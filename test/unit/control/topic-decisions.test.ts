import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Catalog } from '../../../src/control/catalog.ts'
import { decideConfigure, decideCreate, decideDelete, decideGrow } from '../../../src/control/topic-decisions.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import type { ErrorCode } from '../../../src/model/errors.ts'
import { handleOf } from '../../../src/model/handles.ts'
import { limits } from '../../../src/model/limits.ts'
import type { TopicConfigPatch } from '../../../src/model/topic.ts'
import { configure, create, defaultConfig, defaults, emptyImage, grow, remove, topicOf } from './topics.ts'

const refused = (code: ErrorCode, mention = '') => {
  return (error: unknown) => error instanceof BrokerError && error.code === code && error.message.includes(mention)
}

describe('creating a topic', () => {
  test('gives it the defaults, the first free id and one handle per partition', () => {
    const catalog = new Catalog(emptyImage)
    const request = { name: 'orders', partitions: 3, config: {} }
    const { topic, change } = decideCreate(catalog, request, defaults)
    assert.deepEqual(topic, topicOf({ id: 1, name: 'orders', firstHandle: 1, partitionCount: 3 }))
    assert.deepEqual(change, { kind: 'topic-created', topic })
    assert.equal(catalog.topicNamed('orders'), undefined)
  })

  const names = [
    ['a', true],
    ['orders.eu-1_2', true],
    ['...', true],
    ['A'.repeat(200), true],
    ['A'.repeat(201), false],
    ['', false],
    ['.', false],
    ['..', false],
    ['a b', false],
    ['a/b', false],
    ['a~1', false],
    ['ä', false],
    ['a\n', false]
  ] as const
  for (const [name, isAllowed] of names) {
    test(`a name ${JSON.stringify(name.slice(0, 20))} of ${name.length} characters is ${isAllowed ? 'accepted' : 'refused'}`, () => {
      const decide = () => decideCreate(new Catalog(emptyImage), { name, partitions: 1, config: {} }, defaults)
      if (isAllowed) assert.equal(decide().topic.name, name)
      else assert.throws(decide, refused('NAME_INVALID', '200'))
    })
  }

  test('a refused name of a megabyte is not sent back whole', () => {
    const request = { name: 'x'.repeat(1_000_000), partitions: 1, config: {} }
    assert.throws(
      () => decideCreate(new Catalog(emptyImage), request, defaults),
      (error: unknown) => error instanceof BrokerError && error.message.length < 400
    )
  })

  for (const partitions of [0, -1, 1.5, 10_001, 2 ** 32, NaN]) {
    test(`${partitions} partitions are refused with the allowed range`, () => {
      const request = { name: 'a', partitions, config: {} }
      assert.throws(
        () => decideCreate(new Catalog(emptyImage), request, defaults),
        refused('FIELD_RANGE', `partitions is ${partitions}: allowed is 1 to 10000`)
      )
    })
  }

  test('10,000 partitions are accepted', () => {
    assert.equal(create(new Catalog(emptyImage), 'a', 10_000).partitionCount, 10_000)
  })

  test('faults are reported in the order: exists, partitions, name, config', () => {
    const catalog = new Catalog(emptyImage)
    create(catalog, 'taken')
    const decide = (name: string, partitions: number, config: TopicConfigPatch) => () =>
      decideCreate(catalog, { name, partitions, config }, defaults)
    const badConfig = { segment_bytes: 1 }
    assert.throws(decide('taken', 0, badConfig), refused('TOPIC_EXISTS'))
    assert.throws(decide('no good', 0, badConfig), refused('FIELD_RANGE', 'partitions'))
    assert.throws(decide('no good', 1, badConfig), refused('NAME_INVALID'))
    assert.throws(decide('good', 1, badConfig), refused('FIELD_RANGE', 'config.segment_bytes is 1'))
  })

  test('a name is taken while its creation is in flight, and free again when that failed', () => {
    const catalog = new Catalog(emptyImage)
    const request = { name: 'a', partitions: 2, config: {} }
    const first = decideCreate(catalog, request, defaults)
    catalog.reserve(first.change)
    assert.throws(() => decideCreate(catalog, request, defaults), refused('TOPIC_EXISTS'))
    assert.deepEqual(catalog.names(), [])
    catalog.abandon(first.change)
    const second = decideCreate(catalog, request, defaults).topic
    assert.deepEqual([second.id, second.firstHandle], [2, 3])
  })

  test('two creations in flight get different ids and handles', () => {
    const catalog = new Catalog(emptyImage)
    const a = decideCreate(catalog, { name: 'a', partitions: 5, config: {} }, defaults)
    catalog.reserve(a.change)
    const b = decideCreate(catalog, { name: 'b', partitions: 1, config: {} }, defaults)
    catalog.reserve(b.change)
    assert.deepEqual([b.topic.id, b.topic.firstHandle], [2, 6])
    catalog.apply(a.change)
    catalog.apply(b.change)
    assert.deepEqual(catalog.names(), ['a', 'b'])
  })

  test('the partitions of all topics are bounded, those in flight included', () => {
    const catalog = new Catalog(emptyImage)
    for (let i = 0; i < 19; i++) create(catalog, `t${i}`, 10_000)
    const last = decideCreate(catalog, { name: 'last', partitions: 10_000, config: {} }, defaults)
    catalog.reserve(last.change)
    const more = { name: 'more', partitions: 1, config: {} }
    assert.throws(() => decideCreate(catalog, more, defaults), refused('FIELD_INVALID', '200000'))
    catalog.abandon(last.change)
    assert.equal(decideCreate(catalog, more, defaults).topic.partitionCount, 1)
  })

  test('the number of topics is bounded', () => {
    const topics = Array.from({ length: limits.topicsMax }, (_, i) =>
      topicOf({ id: i + 1, name: `t${i}`, firstHandle: i + 1 })
    )
    const next = { nextTopicId: limits.topicsMax + 1, nextHandle: limits.topicsMax + 1 }
    const catalog = new Catalog({ ...emptyImage, topics, ...next })
    assert.throws(() => create(catalog, 'more'), refused('TOPICS_TOO_MANY', 'more than the 20000'))
  })

  test('handles are never wrapped around: the last one can be given, then no more', () => {
    const catalog = new Catalog({ ...emptyImage, nextHandle: 0xffff_fffe })
    assert.throws(() => create(catalog, 'a', 3), refused('FIELD_INVALID', 'used up'))
    assert.equal(create(catalog, 'a', 2).firstHandle, 0xffff_fffe)
    assert.throws(() => create(catalog, 'b', 1), refused('FIELD_INVALID', 'used up'))
  })
})

const U64_MAX = 18_446_744_073_709_551_615n

describe('the configuration of a topic', () => {
  const accepted: readonly (readonly [TopicConfigPatch, TopicConfigPatch])[] = [
    [{}, {}],
    [{ retention_ms: 0 }, { retention_ms: 0 }],
    [{ retention_ms: U64_MAX }, { retention_ms: U64_MAX }],
    [{ retention_bytes: 9_007_199_254_740_993n }, { retention_bytes: 9_007_199_254_740_993n }],
    [{ retention_bytes: 1024n }, { retention_bytes: 1024 }],
    [
      { retention_ms: -1, retention_bytes: -1n },
      { retention_ms: null, retention_bytes: null }
    ],
    [{ retention_ms: null, segment_bytes: null, cleanup_policy: null }, {}],
    [{ cleanup_policy: 'compact' }, { cleanup_policy: 'compact' }],
    [{ cleanup_policy: 'compact,delete' }, { cleanup_policy: 'compact,delete' }],
    [{ segment_bytes: 128 }, { segment_bytes: 128 }],
    [{ segment_bytes: 2 ** 40 }, { segment_bytes: 2 ** 40 }],
    [{ tombstone_retention_ms: 0 }, { tombstone_retention_ms: 0 }],
    [{ tombstone_retention_ms: U64_MAX }, { tombstone_retention_ms: U64_MAX }],
    [{ validate_schema: true }, { validate_schema: true }],
    [{ validate_schema: null }, {}]
  ]
  for (const [patch, result] of accepted) {
    const shown = Object.entries(patch).map(([field, value]) => `${field}=${value}`)
    test(`${shown.join(' ') || 'nothing'} is accepted at creation`, () => {
      assert.deepEqual(create(new Catalog(emptyImage), 'a', 1, patch).config, { ...defaultConfig, ...result })
    })
  }

  const refusals: readonly (readonly [string, Record<string, unknown>, ErrorCode, string])[] = [
    ['a negative retention', { retention_ms: -2 }, 'FIELD_RANGE', '-1 to 18446744073709551615'],
    ['a retention beyond 64 bits', { retention_bytes: U64_MAX + 1n }, 'FIELD_RANGE', 'is 18446744073709551616'],
    ['a fraction', { retention_ms: 0.5 }, 'FIELD_RANGE', 'retention_ms is 0.5'],
    ['a rounded number', { retention_ms: 2 ** 60 }, 'FIELD_RANGE', 'retention_ms'],
    ['an unknown policy', { cleanup_policy: 'keep' }, 'FIELD_INVALID', "'keep' is not one of 'delete', 'compact'"],
    ['small segments', { segment_bytes: 127 }, 'FIELD_RANGE', 'segment_bytes is 127: allowed is 128 to 1099511627776'],
    ['huge segments', { segment_bytes: 2 ** 40 + 1 }, 'FIELD_RANGE', 'segment_bytes'],
    ['clearing the tombstone retention', { tombstone_retention_ms: -1 }, 'FIELD_RANGE', '0 to 18446744073709551615']
  ]
  for (const [what, patch, code, mention] of refusals) {
    test(`${what} is refused, at creation and as a change`, () => {
      const catalog = new Catalog(emptyImage)
      assert.throws(() => create(catalog, 'a', 1, patch), refused(code, mention))
      create(catalog, 'a')
      assert.throws(() => configure(catalog, 'a', patch), refused(code, mention))
      assert.deepEqual(catalog.topicNamed('a')?.config, defaultConfig)
    })
  }

  test('a change keeps the fields it does not name, and -1 takes a limit away', () => {
    const catalog = new Catalog(emptyImage)
    create(catalog, 'a', 2, { retention_ms: 5, retention_bytes: 7, cleanup_policy: 'compact' })
    const changed = configure(catalog, 'a', { retention_ms: -1, segment_bytes: 256, retention_bytes: null })
    const expected = { ...defaultConfig, retention_bytes: 7, cleanup_policy: 'compact', segment_bytes: 256 }
    assert.deepEqual(changed.config, expected)
    assert.deepEqual(catalog.topicNamed('a'), changed)
  })

  test('asks for no schema where there can be no subject of that name', () => {
    const catalog = new Catalog(emptyImage)
    const longest = 'n'.repeat(limits.nameBytesMax - '-value'.length)
    assert.equal(create(catalog, longest, 1, { validate_schema: true }).config.validate_schema, true)
    const mention = 'would have 201 characters: a subject has at most 200; nothing was changed'
    assert.throws(() => create(catalog, `${longest}n`, 1, { validate_schema: true }), refused('FIELD_INVALID', mention))
    create(catalog, `${longest}n`)
    assert.throws(() => configure(catalog, `${longest}n`, { validate_schema: true }), refused('FIELD_INVALID', mention))
    assert.deepEqual(configure(catalog, `${longest}n`, { validate_schema: false }).config, defaultConfig)
  })

  test('of an unknown topic cannot be changed', () => {
    assert.throws(() => configure(new Catalog(emptyImage), 'a', {}), refused('TOPIC_NOT_FOUND'))
  })

  test('a second change while one is in flight is refused, so that neither is lost', () => {
    const catalog = new Catalog(emptyImage)
    create(catalog, 'a')
    const { change } = decideConfigure(catalog, 'a', { retention_ms: 5 }, defaults)
    catalog.reserve(change)
    assert.throws(() => decideConfigure(catalog, 'a', { segment_bytes: 256 }, defaults), refused('OVERLOADED'))
    assert.throws(() => decideDelete(catalog, 'a'), refused('OVERLOADED'))
    assert.equal(catalog.topicNamed('a')?.config.retention_ms, null)
    catalog.apply(change)
    assert.equal(configure(catalog, 'a', { segment_bytes: 256 }).config.retention_ms, 5)
  })
})

describe('giving a topic more partitions', () => {
  test('adds handles that nobody had, and keeps those that there are', () => {
    const catalog = new Catalog(emptyImage)
    create(catalog, 'a', 2)
    create(catalog, 'b', 3)
    grow(catalog, 'a', 3)
    create(catalog, 'c', 1)
    const topic = grow(catalog, 'a', 5)
    assert.deepEqual(
      [0, 1, 2, 3, 4].map(partition => handleOf(topic, partition)),
      [1, 2, 6, 8, 9]
    )
    assert.deepEqual(catalog.topicNamed('a'), topic)
  })

  test('is refused where they would not become more, and beyond the limits, and changes nothing', () => {
    const catalog = new Catalog(emptyImage)
    create(catalog, 'a', 3)
    for (const count of [1, 2, 3])
      assert.throws(() => grow(catalog, 'a', count), refused('FIELD_INVALID'), String(count))
    for (const count of [0, 1.5, limits.partitionsMax + 1])
      assert.throws(() => grow(catalog, 'a', count), refused('FIELD_RANGE'), String(count))
    assert.throws(() => grow(catalog, 'b', 4), refused('TOPIC_NOT_FOUND'))
    assert.deepEqual([catalog.topicNamed('a')?.partitionCount, catalog.next.handle], [3, 4])
    while (catalog.claimed.partitionCount + limits.partitionsMax <= limits.partitionsTotalMax)
      create(catalog, `t${catalog.next.topicId}`, limits.partitionsMax)
    create(catalog, 'last', limits.partitionsMax - 10)
    const left = limits.partitionsTotalMax - catalog.claimed.partitionCount
    assert.throws(() => grow(catalog, 'a', 3 + left + 1), refused('FIELD_INVALID'))
    grow(catalog, 'a', 3 + left)
    assert.equal(catalog.claimed.partitionCount, limits.partitionsTotalMax)
  })

  /** Topic 'a' in as many ranges as it may be. */
  function scattered(): Catalog {
    const catalog = new Catalog(emptyImage)
    create(catalog, 'a', 1)
    for (let ranges = 1; ranges < limits.topicRangesMax; ranges++) {
      create(catalog, `t${ranges}`, 1)
      grow(catalog, 'a', ranges + 1)
    }
    return catalog
  }

  test('is refused where its handles would be in too many ranges, with what and why, and changes nothing', () => {
    const catalog = scattered()
    const before = catalog.topicNamed('a')
    create(catalog, 'last', 1)
    const { handle } = catalog.next
    const max = limits.topicRangesMax
    for (const mention of [`partitions: topic 'a' cannot come to have ${max + 1}`, `${max + 1} rows, and ${max} is`])
      assert.throws(() => decideGrow(catalog, 'a', max + 1), refused('FIELD_INVALID', mention))
    assert.throws(() => decideGrow(catalog, 'a', max + 1), /nothing was written/)
    assert.deepEqual([catalog.topicNamed('a'), catalog.next.handle], [before, handle])
  })

  test('goes on in as many ranges as there may be, where the handles follow on', () => {
    const catalog = scattered()
    for (let count = limits.topicRangesMax + 1; count < 500; count++) grow(catalog, 'a', count)
    const topic = catalog.topicNamed('a')
    assert.deepEqual([topic?.partitionCount, topic?.added?.length], [499, limits.topicRangesMax - 1])
  })

  test('that the store refuses leaves the topic as it was, and the handles unused', () => {
    const catalog = new Catalog(emptyImage)
    create(catalog, 'a', 3)
    const { change } = decideGrow(catalog, 'a', 5)
    catalog.reserve(change)
    assert.equal(catalog.claimed.partitionCount, 5)
    assert.throws(() => decideGrow(catalog, 'a', 6), refused('OVERLOADED'))
    catalog.abandon(change)
    assert.deepEqual([catalog.claimed.partitionCount, catalog.topicNamed('a')?.partitionCount], [3, 3])
    assert.equal(handleOf(grow(catalog, 'a', 4), 3), 6)
  })
})

describe('deleting a topic', () => {
  test('a topic made again under the name of a deleted one is a new topic', () => {
    const catalog = new Catalog(emptyImage)
    const first = create(catalog, 'a', 3)
    remove(catalog, 'a')
    assert.equal(catalog.topicNamed('a'), undefined)
    const second = create(catalog, 'a', 3)
    assert.deepEqual([first.id, first.firstHandle], [1, 1])
    assert.deepEqual([second.id, second.firstHandle], [2, 4])
  })

  test('of an unknown topic, or twice, is refused', () => {
    const catalog = new Catalog(emptyImage)
    assert.throws(() => remove(catalog, 'a'), refused('TOPIC_NOT_FOUND'))
    create(catalog, 'a')
    remove(catalog, 'a')
    assert.throws(() => remove(catalog, 'a'), refused('TOPIC_NOT_FOUND'))
  })

  test('a name stays taken until its deletion is committed, and the topic stays if that fails', () => {
    const catalog = new Catalog(emptyImage)
    create(catalog, 'a')
    const { change } = decideDelete(catalog, 'a')
    catalog.reserve(change)
    assert.throws(() => create(catalog, 'a'), refused('TOPIC_EXISTS'))
    catalog.abandon(change)
    assert.equal(remove(catalog, 'a').name, 'a')
  })
})
