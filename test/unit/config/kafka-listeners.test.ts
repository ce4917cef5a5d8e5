/** The setting of the Kafka listeners. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kafkaListenersOf } from '../../../src/config/kafka-listeners.ts'
import { resolveSettings, type ConfigInput } from '../../../src/config/resolve.ts'

function faultsOf(flags: ConfigInput['flags']): readonly string[] {
  const resolution = resolveSettings({ flags, unknownFlags: [], env: {}, file: null })
  return resolution.ok ? [] : resolution.faults
}

function listenersOf(value: string | readonly string[]): ReturnType<typeof kafkaListenersOf> {
  const resolution = resolveSettings({ flags: { '--bind-kafka': value }, unknownFlags: [], env: {}, file: null })
  assert.ok(resolution.ok, resolution.ok ? '' : resolution.faults.join('\n'))
  return kafkaListenersOf(resolution.settings.bindKafka)
}

test('listeners are one or several addresses, each with another that clients are told, or off', () => {
  assert.deepEqual(listenersOf('off'), [])
  assert.deepEqual(listenersOf('127.0.0.1:9092'), [{ address: '127.0.0.1:9092', advertised: null }])
  assert.deepEqual(listenersOf(['127.0.0.1:9092', '[::1]:9093=[::1]:1']), [
    { address: '127.0.0.1:9092', advertised: null },
    { address: '[::1]:9093', advertised: { host: '::1', port: 1 } }
  ])
})

test('what is no address, what no client can reach, and an address that is taken twice are refused', () => {
  for (const [value, fragment] of [
    ['nonsense', 'host:port'],
    ['127.0.0.1:9092=0.0.0.0:9092', 'no client can reach'],
    ['127.0.0.1:9092=a:1=b:2', 'more than one ='],
    [['127.0.0.1:9092', '127.0.0.1:9092'], 'twice'],
    ['127.0.0.1:9000', 'bind and bind_kafka are both'],
    ['0.0.0.0:9092', 'while auth is disabled'],
    [['127.0.0.1:9092', 'off'], 'host:port']
  ] as const) {
    const faults = faultsOf({ '--bind-kafka': value })
    assert.ok(faults.length === 1 && (faults[0] ?? '').includes(fragment), `${String(value)}: ${faults.join(' | ')}`)
  }
})
