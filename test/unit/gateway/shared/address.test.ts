/** Addresses as text. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plainAddress, splitAddress, textOfAddress } from '../../../../src/gateway/shared/address.ts'

test('a listening address comes apart, brackets removed', () => {
  assert.deepEqual(splitAddress('[::1]:80'), { host: '::1', port: 80 })
  assert.deepEqual(splitAddress('127.0.0.1:0'), { host: '127.0.0.1', port: 0 })
})

test('one client has one address, whether a listener for IPv4 or for both took its connection', () => {
  assert.equal(plainAddress('::ffff:10.0.0.7'), '10.0.0.7')
  assert.equal(plainAddress('10.0.0.7'), '10.0.0.7')
  assert.equal(plainAddress('::ffff:1'), '::ffff:1')
  assert.equal(plainAddress('fe80::1'), 'fe80::1')
  const mapped = new Uint8Array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 7])
  assert.equal(textOfAddress(mapped), '10.0.0.7')
  assert.equal(textOfAddress(mapped.subarray(12)), '10.0.0.7')
  assert.equal(textOfAddress(new Uint8Array(16).fill(1, 15)), `${'0'.repeat(30)}01`)
})
