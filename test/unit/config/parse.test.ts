/** Sizes, durations, numbers and addresses as people write them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLoopbackAddress, parseAddress } from '../../../src/config/address.ts'
import { nearestOf } from '../../../src/config/nearest.ts'
import {
  parseBytes,
  parseDuration,
  parseInteger,
  showBytes,
  showDuration,
  type Reading
} from '../../../src/config/parse.ts'
import { defaultShardCount } from '../../../src/config/shards.ts'

function valueOf<T>(reading: Reading<T>): T | string {
  return reading.ok ? reading.value : reading.problem
}

test('a size is read with binary, decimal and no unit, in any case', () => {
  const written = ['67108864', '64MiB', '64 mib', '10MB', '1kb', '1.5GiB', '0', '7B']
  const expected = [67_108_864, 67_108_864, 67_108_864, 10_000_000, 1_000, 1_610_612_736, 0, 7]
  assert.deepEqual(
    written.map(text => valueOf(parseBytes(text))),
    expected
  )
})

test('a size that is ambiguous, negative, fractional or inexact is refused', () => {
  for (const text of ['64M', '', 'MiB', '-1', '1e6', '0x10', '0.3B', '9007199254740993', '99999999TiB', '1 2']) {
    assert.equal(parseBytes(text).ok, false, text)
  }
})

test('a duration is read with one unit or several', () => {
  const written = ['150ms', '10m', '1h', '7d', '1h 30m', '2S', '0']
  const expected = [150, 600_000, 3_600_000, 604_800_000, 5_400_000, 2_000, 0]
  assert.deepEqual(
    written.map(text => valueOf(parseDuration(text))),
    expected
  )
})

test('a duration without a unit is refused and the message shows two ways to write it', () => {
  assert.equal(valueOf(parseDuration('5')), 'has no unit: write 5ms or 5s')
  for (const text of ['', 'ms', '-1s', '1.5h', '1w', '1s!', '99999999999999999999d']) {
    assert.equal(parseDuration(text).ok, false, text)
  }
})

test('a whole number beyond the exact range is refused, not rounded', () => {
  assert.equal(valueOf(parseInteger('9007199254740991')), Number.MAX_SAFE_INTEGER)
  assert.equal(parseInteger('9007199254740992').ok, false)
  for (const text of ['', '1.0', '1e3', 'five', '0x1']) assert.equal(parseInteger(text).ok, false, text)
})

test('what is shown can be read back to the same value', () => {
  for (const bytes of [0, 1, 127, 128, 1023, 1024, 1536, 8 * 2 ** 20, 2 ** 40, 2 ** 31 - 1]) {
    assert.equal(valueOf(parseBytes(showBytes(bytes))), bytes)
  }
  for (const ms of [0, 1, 999, 1_000, 61_000, 3_600_000, 86_400_000, 86_400_001]) {
    assert.equal(valueOf(parseDuration(showDuration(ms))), ms)
  }
})

test('an address is split into host and port, IPv6 in brackets', () => {
  assert.deepEqual(valueOf(parseAddress('127.0.0.1:9000')), { host: '127.0.0.1', port: 9000 })
  assert.deepEqual(valueOf(parseAddress('localhost:0')), { host: 'localhost', port: 0 })
  assert.deepEqual(valueOf(parseAddress('[::1]:65535')), { host: '::1', port: 65_535 })
  for (const text of [
    '9000',
    ':9000',
    '127.0.0.1',
    '::1:9000',
    '[::1',
    '[x]:1',
    'a:65536',
    'a:-1',
    '127.1:80',
    '1.2.3.4.5:1',
    'a b:1'
  ]) {
    assert.equal(parseAddress(text).ok, false, text)
  }
})

test('only real loopback addresses count as loopback, names never do', () => {
  for (const host of ['127.0.0.1', '127.255.0.9', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1']) {
    assert.equal(isLoopbackAddress(host), true, host)
  }
  for (const host of [
    '127.evil.example',
    'localhost',
    'localhost.evil.example',
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '::2',
    '::ffff:128.0.0.1',
    ''
  ]) {
    assert.equal(isLoopbackAddress(host), false, host)
  }
})

test('the nearest known word is offered for a slip and nothing for a stranger', () => {
  const known = ['--data-dir', '--bind', '--bind-binary', '--shards']
  assert.equal(nearestOf('--dta-dir', known), '--data-dir')
  assert.equal(nearestOf('--bidn', known), '--bind')
  assert.equal(nearestOf('--shard', known), '--shards')
  assert.equal(nearestOf('--colour-scheme', known), null)
  assert.equal(nearestOf('x'.repeat(100_000), known), null)
})

test('a new data directory gets one shard per core less one, and at least one', () => {
  assert.deepEqual([1, 2, 3, 64].map(defaultShardCount), [1, 1, 2, 63])
  assert.ok(defaultShardCount() >= 1)
})
