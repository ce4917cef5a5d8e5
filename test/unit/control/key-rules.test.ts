/** Which names a prefix covers, what rules add up to, and which keys may be made. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { checkedKey, covers, grants, isAdministrator } from '../../../src/control/key-rules.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import type { CreateKeyRequest, GrantRule } from '../../../src/model/keys.ts'
import { grantActions } from '../../../src/model/principal.ts'

/** Spec 2.9: prefix, names that it covers, names that it does not. */
const truthTable: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  [
    'orders',
    ['orders', 'orders.eu', 'orders-archive', 'orders_1', 'orders.'],
    ['ordersecret', 'ordersarchive', 'order']
  ],
  ['orders.', ['orders.eu', 'orders.', 'orders.eu.west'], ['orders', 'orders-eu', 'orders_eu']],
  ['orders-', ['orders-value', 'orders-'], ['orders', 'orders.value']],
  ['orders_', ['orders_1'], ['orders', 'orders.1']],
  ['*', ['orders', 'a', '_', '*'], []],
  ['', [], ['', 'orders', '.orders', '-']],
  ['o', ['o', 'o.rders'], ['orders', 'O']]
]

describe('a prefix', () => {
  for (const [prefix, covered, others] of truthTable) {
    test(`'${prefix}' covers what the table says, and nothing else of it`, () => {
      for (const name of covered) assert.equal(covers(prefix, name), true, name)
      for (const name of others) assert.equal(covers(prefix, name), false, name)
    })
  }
})

describe('the rules of a key', () => {
  const rule = (action: GrantRule['action'], topicPrefix: string): GrantRule => ({ action, topicPrefix })

  test('let it do what an action gives, and what those before it give', () => {
    for (const [i, given] of grantActions.entries()) {
      for (const [j, asked] of grantActions.entries()) {
        assert.equal(grants([rule(given, 'a')], asked, 'a.b'), j <= i, `${given} given, ${asked} asked`)
      }
    }
  })

  test('add up, and no rules give nothing', () => {
    const rules = [rule('read', 'a'), rule('write', 'b')]
    assert.deepEqual(
      [grants(rules, 'read', 'b'), grants(rules, 'write', 'a'), grants([], 'read', 'a')],
      [true, false, false]
    )
  })

  test('make an administrator only of everything', () => {
    assert.equal(isAdministrator([rule('write', '*'), rule('admin', 'orders')]), false)
    assert.equal(isAdministrator([rule('read', 'x'), rule('admin', '*')]), true)
  })
})

describe('a key that is asked for', () => {
  const sound: CreateKeyRequest = { name: 'n', rules: [], produceBytesPerSec: null, consumeBytesPerSec: null }

  test('may have any name of 1 to 200 bytes, up to 100 rules, and quotas of which 0 is none', () => {
    for (const name of ['n', 'Ä "name" with\n🔑', 'é'.repeat(100), 'n'.repeat(200)]) {
      assert.equal(checkedKey({ ...sound, name }).name, name)
    }
    const rules = Array.from({ length: 100 }, () => ({ action: 'read', topicPrefix: 'n'.repeat(200) }) as const)
    const key = checkedKey({ ...sound, rules, produceBytesPerSec: 0, consumeBytesPerSec: 4_294_967_295 })
    assert.deepEqual([key.rules.length, key.produceBytesPerSec, key.consumeBytesPerSec], [100, null, 4_294_967_295])
  })

  test('is refused by the field that is wrong', () => {
    const read = (topicPrefix: string): Partial<CreateKeyRequest> => ({ rules: [{ action: 'read', topicPrefix }] })
    const cases: readonly (readonly [Partial<CreateKeyRequest>, string, RegExp])[] = [
      [{ name: '' }, 'FIELD_INVALID', /^name: has 0 bytes/],
      [{ name: 'é'.repeat(101) }, 'FIELD_INVALID', /^name: has 202 bytes: 1 to 200/],
      [{ name: '\ud800' }, 'FIELD_INVALID', /^name: is not Unicode text/],
      [
        { rules: Array.from({ length: 101 }, () => ({ action: 'read', topicPrefix: '*' }) as const) },
        'FIELD_INVALID',
        /101.*100/
      ],
      [read(''), 'NAME_INVALID', /^acls\[0\]\.topic_prefix ''/],
      [read('a b'), 'NAME_INVALID', /'a b'/],
      [read('orders*'), 'NAME_INVALID', /'orders\*'/],
      [read('n'.repeat(201)), 'NAME_INVALID', /…/],
      [{ produceBytesPerSec: 4_294_967_296 }, 'FIELD_RANGE', /^produce_bytes_per_sec is 4294967296/],
      [{ consumeBytesPerSec: -1 }, 'FIELD_RANGE', /^consume_bytes_per_sec is -1/],
      [{ consumeBytesPerSec: 1.5 }, 'FIELD_RANGE', /1\.5/]
    ]
    for (const [change, code, message] of cases) {
      assert.throws(
        () => checkedKey({ ...sound, ...change }),
        (error: unknown) => error instanceof BrokerError && error.code === code && message.test(error.message),
        JSON.stringify(change)
      )
    }
  })
})
