/** What the table of operations lets whom do. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { authorise, operations, type Operation } from '../../../src/model/access.ts'
import { BrokerError, type ErrorCode } from '../../../src/model/errors.ts'
import { anonymous, type Principal } from '../../../src/model/principal.ts'

function keyThat(may: Partial<Principal>): Principal {
  return { keyId: 'key_1', isRevoked: false, isAdmin: false, mayRead: () => false, mayWrite: () => false, ...may }
}

function denied(who: Principal, operation: Operation, topic: string | null = null): ErrorCode | null {
  try {
    authorise(who, operation, topic)
    return null
  } catch (error) {
    assert.ok(error instanceof BrokerError)
    return error.code
  }
}

const everything = Object.keys(operations) as Operation[]

describe('an operation', () => {
  it('is open to everybody while authentication is off', () => {
    for (const operation of everything) assert.equal(denied(anonymous, operation, 'orders'), null, operation)
  })

  it('is refused with FORBIDDEN to a key without a grant, unless any key will do', () => {
    for (const operation of everything) {
      const isOpen = ['nothing', 'key', 'group'].includes(operations[operation])
      assert.equal(denied(keyThat({}), operation, 'orders'), isOpen ? null : 'FORBIDDEN', operation)
    }
  })

  it('that takes a grant asks for the topic that it is about, and says so', () => {
    const reader = keyThat({ mayRead: name => name === 'orders' })
    assert.equal(denied(reader, 'consume', 'orders'), null)
    assert.equal(denied(reader, 'consume', 'bills'), 'FORBIDDEN')
    assert.throws(() => authorise(reader, 'produce', 'orders'), {
      message: "this key may not produce: that takes write on 'orders'"
    })
    assert.throws(() => authorise(reader, 'create topic'), {
      message: "this key may not create topic: that takes admin on '*'"
    })
  })

  it('is refused to a revoked key, whatever it was granted', () => {
    for (const operation of everything) {
      assert.equal(denied({ ...anonymous, isRevoked: true }, operation, 'orders'), 'KEY_REVOKED', operation)
    }
  })
})
