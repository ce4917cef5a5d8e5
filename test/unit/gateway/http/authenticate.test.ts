/** Which header a secret is taken from, on which paths. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { authenticate, type Credentials } from '../../../../src/gateway/http/authenticate.ts'
import { BrokerError } from '../../../../src/model/errors.ts'
import { anonymous } from '../../../../src/model/principal.ts'

/** The secret that was asked about; null: none was, the headers have none. */
function secretOf(head: Partial<Credentials>): string | null {
  const asked: string[] = []
  const keys = {
    principalOf: (secret: string) => {
      asked.push(secret)
      return anonymous
    }
  }
  try {
    authenticate({ authorization: null, apiKey: null, path: '/topics', ...head }, keys)
  } catch (error) {
    assert.ok(error instanceof BrokerError && error.code === 'UNAUTHENTICATED')
  }
  return asked[0] ?? null
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

test('a bearer token and X-Es-Key are secrets on every path, and the token wins', () => {
  for (const path of ['/topics', '/confluent/subjects']) {
    assert.equal(secretOf({ path, authorization: 'Bearer s' }), 's')
    assert.equal(secretOf({ path, apiKey: 'k' }), 'k')
    assert.equal(secretOf({ path, authorization: 'Bearer s', apiKey: 'k' }), 's')
    assert.equal(secretOf({ path, authorization: 'bearer s', apiKey: 'k' }), null)
    assert.equal(secretOf({ path }), null)
  }
})

test('who sends no key is told how to send one, by Basic only where that is taken', () => {
  const keys = { principalOf: () => anonymous }
  const told = (path: string): string => {
    try {
      authenticate({ authorization: null, apiKey: null, path }, keys)
    } catch (error) {
      if (error instanceof BrokerError) return error.message
    }
    return 'nothing was refused'
  }
  assert.match(told('/topics'), /send 'Authorization: Bearer <secret>' or 'X-Es-Key: <secret>'$/)
  assert.match(told('/confluent/subjects'), /'X-Es-Key: <secret>', or by Basic, as the password of any user$/)
})

test('a password is a secret under /confluent alone, whoever the user is', () => {
  const authorization = `Basic ${base64('user:secret')}`
  for (const path of ['/confluent', '/confluent/', '/confluent/nothing'])
    assert.equal(secretOf({ path, authorization }), 'secret')
  for (const path of ['/', '/confluents', '/Confluent/subjects', '/subjects', '/topics/confluent/'])
    assert.equal(secretOf({ path, authorization }), null, path)
})

test('of a user and a password all behind the first colon is the password', () => {
  const path = '/confluent/subjects'
  for (const [pair, secret] of [
    ['u:a:b', 'a:b'],
    [':s', 's'],
    ['u:', ''],
    ['u:ü', 'ü']
  ] as const)
    assert.equal(secretOf({ path, authorization: `Basic ${base64(pair)}` }), secret)
  for (const scheme of ['basic', 'BASIC', 'Basic  '])
    assert.equal(secretOf({ path, authorization: `${scheme} ${base64('u:s')}` }), 's')
})

test('what is no user and password is none', () => {
  for (const authorization of [
    'Basic',
    'Basic ',
    `Basic ${base64('nocolon')}`,
    'Basic dTpz!',
    'Basic dTpz x',
    'dTpz',
    ''
  ])
    assert.equal(secretOf({ path: '/confluent/subjects', authorization, apiKey: 'k' }), null, authorization)
})
