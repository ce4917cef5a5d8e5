import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { checkFolder, checkKey, isKey } from '../../../src/cold/keys.ts'
import { isCold } from './store-contract.ts'

const digits = '00000000000000000042'

describe('keys of objects', () => {
  for (const ending of ['.log', '.blocks', '.index', '.timeindex']) {
    test(`the ${ending} of a segment has a key`, () => checkKey(`orders.v2_x-y~17/9999/${digits}${ending}`))
  }

  test('a topic whose own name looks like a file has keys, because its id follows', () => {
    checkKey(`access.log~3/0/${digits}.log`)
    checkKey(`..~3/0/c12/${digits}.log`)
    checkKey(`${'x'.repeat(200)}~9007199254740991/9999/${digits}.timeindex`)
  })

  const bad = [
    '',
    '/',
    `${digits}.log`,
    `/a~1/0/${digits}.log`,
    `a~1/0/${digits}.log/`,
    `a~1//${digits}.log`,
    `a~1/../b~2/${digits}.log`,
    `../${digits}.log`,
    `a~1/./${digits}.log`,
    'a~1/0/.log',
    'a~1/0/..',
    `a~1/0/${digits}`,
    `a~1/0/${digits}.txt`,
    `a~1/0/${digits}.log.part`,
    `a.log/0/${digits}.log`,
    `+incoming/0/${digits}.log`,
    `a~1\\0/${digits}.log`,
    `a~1/0/${digits}.log\0`,
    `a~1/0/\n${digits}.log`,
    `ä~1/0/${digits}.log`,
    `a%2e~1/0/${digits}.log`,
    `a b~1/0/${digits}.log`,
    `${'x'.repeat(256)}/0/${digits}.log`,
    `${`${'x'.repeat(200)}/`.repeat(3)}${digits}.log`
  ]
  for (const text of bad) {
    test(`${JSON.stringify(text.slice(0, 60))} (${text.length}) is none`, () => {
      assert.throws(() => checkKey(text), isCold('refused'))
      assert.equal(isKey(text), false)
    })
  }
})

describe('folders of objects', () => {
  for (const text of ['', 'a~1/', 'a~1/0/', 'a~1/0/c5/']) test(`'${text}' is one`, () => checkFolder(text))

  for (const text of ['/', 'a~1', 'a~1//', '/a~1/', '../', 'a~1/../', './', `a~1/0/${digits}.log/`, '+incoming/']) {
    test(`'${text}' is none`, () => assert.throws(() => checkFolder(text), isCold('refused')))
  }
})
