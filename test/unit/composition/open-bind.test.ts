/** Host names in --bind while authentication is off: judged by every address they have, and replaced by one of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeBinds } from '../../../src/composition/open-bind.ts'
import { resolveSettings, type ConfigInput } from '../../../src/config/resolve.ts'
import type { Settings } from '../../../src/config/settings.ts'

const settingsOf = (flags: ConfigInput['flags']): Settings => {
  const resolution = resolveSettings({ flags, unknownFlags: [], env: {}, file: null })
  assert.ok(resolution.ok)
  return resolution.settings
}

const names: Readonly<Record<string, readonly string[]>> = {
  'here.example': ['::1', '127.0.1.1'],
  '127.evil.example': ['203.0.113.9'],
  'both.example': ['127.0.0.1', '192.168.7.7']
}
const asked: string[] = []
const lookUp = async (name: string): Promise<{ address: string }[]> => {
  asked.push(name)
  const addresses = names[name]
  if (addresses === undefined) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
  return addresses.map(address => ({ address }))
}

test('a name with loopback addresses alone is listened on by address, and stays allowed as a host', async () => {
  const settings = settingsOf({
    '--bind': 'here.example:9000',
    '--bind-binary': 'here.example:9001',
    '--allowed-host': 'a'
  })
  const { bind, bindBinary, allowedHost } = await judgeBinds(settings, lookUp)
  assert.deepEqual(
    { bind, bindBinary, allowedHost },
    { bind: '[::1]:9000', bindBinary: '[::1]:9001', allowedHost: ['a', 'here.example'] }
  )
})

test('a name with any address that other machines reach is refused, with the address and the three ways out', async () => {
  const cases = [
    ['--bind', '127.evil.example', '203.0.113.9'],
    ['--bind-binary', 'both.example', '192.168.7.7']
  ] as const
  for (const [flag, name, address] of cases) {
    await assert.rejects(judgeBinds(settingsOf({ [flag]: `${name}:9005` }), lookUp), (error: unknown) => {
      assert.ok(error instanceof Error)
      const words = [`${flag} ${name}:9005 is ${address}`, '127.0.0.1', '--auth required', '--allow-remote-unauthent']
      for (const word of words) assert.ok(error.message.includes(word), error.message)
      assert.ok(!error.message.includes('\n'))
      return true
    })
  }
})

test('a name that is not known is refused by name', async () => {
  const settings = settingsOf({ '--bind': 'nowhere.example:9000' })
  await assert.rejects(judgeBinds(settings, lookUp), /nowhere\.example:9000 \(--bind\): the host name .*ENOTFOUND/)
})

test('addresses, and names where the risk was accepted, are taken as they are without a look-up', async () => {
  asked.length = 0
  for (const settings of [
    settingsOf({ '--bind': '[::1]:9000', '--bind-binary': '127.9.9.9:1' }),
    settingsOf({ '--bind': 'both.example:9000', '--allow-remote-unauthenticated': true })
  ]) {
    assert.deepEqual(await judgeBinds(settings, lookUp), { ...settings })
  }
  assert.deepEqual(asked, [])
})
