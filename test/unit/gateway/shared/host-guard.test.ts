/** Which hosts are served without authentication. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { splitAddress } from '../../../../src/gateway/shared/address.ts'
import { HostGuard } from '../../../../src/gateway/shared/host-guard.ts'

function served(guard: HostGuard, hosts: readonly string[]): string[] {
  return hosts.filter(host => guard.allows(host))
}

describe('without authentication', () => {
  test('loopback names and addresses are served, whatever their port and case', () => {
    const hosts = [
      'localhost',
      'LocalHost:9000',
      '127.0.0.1',
      '127.1.2.3:80',
      '[::1]',
      '[::1]:9000',
      '[0:0:0:0:0:0:0:1]',
      ''
    ]
    assert.deepEqual(served(new HostGuard('127.0.0.1:9000', []), hosts), hosts)
  })

  test('names that only look like loopback are refused', () => {
    const hosts = [
      '127.evil.example',
      '127.0.0.1.evil.example',
      '127.0.0.1evil.example',
      '127.1',
      '0127.0.0.1',
      '127.0.0.256',
      'localhost.evil.example',
      'evil.example',
      '[::2]',
      '[::1',
      '[::1]evil.example',
      '10.0.0.1',
      '0.0.0.0',
      'null'
    ]
    assert.deepEqual(served(new HostGuard('0.0.0.0:9000', []), hosts), [])
  })

  test('the address that is bound is served, a wildcard names none', () => {
    assert.ok(new HostGuard('10.1.2.3:9000', []).allows('10.1.2.3:9000'))
    assert.ok(new HostGuard('[fd00::1]:9000', []).allows('[FD00:0:0::1]:9000'))
    assert.ok(!new HostGuard('[::]:9000', []).allows('[::]:9000'))
    assert.ok(!new HostGuard('0.0.0.0:9000', []).allows('10.1.2.3'))
  })

  test('allowed hosts are served by name or address, ports ignored', () => {
    const guard = new HostGuard('0.0.0.0:9000', ['Broker.Example:443', '192.168.0.7', '[fd00::2]'])
    const hosts = ['broker.example', 'BROKER.example:9000', '192.168.0.7:1', '[fd00::2]:9000']
    assert.deepEqual(served(guard, [...hosts, 'sub.broker.example', '192.168.0.8']), hosts)
  })
})

describe('a listening address', () => {
  test('comes apart into host and port', () => {
    assert.deepEqual(splitAddress('127.0.0.1:9000'), { host: '127.0.0.1', port: 9000 })
    assert.deepEqual(splitAddress('[::1]:0'), { host: '::1', port: 0 })
  })
})
