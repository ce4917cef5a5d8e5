/** kcat, where it is installed, and KafkaJS against the Kafka listener: each check of test/clients by its name. */
import assert from 'node:assert/strict'
import { exec } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { kafkaJsClient } from '../clients/kafkajs.ts'
import { kcatClient } from '../clients/kcat.ts'
import { checkNames } from '../clients/client.ts'
import { firstKey } from '../support/access.ts'
import { startBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { readText } from '../support/repository.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const run = promisify(exec)

/** A line of a shell, to success. @returns what it printed. */
async function execute(line: string): Promise<string> {
  return (await run(line)).stdout
}

test('the commands for kcat in the README work as printed', async t => {
  if ((await kcatClient.prepare(temporaryDirectory(t))) === null) return t.skip('kcat is not on this machine')
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('orders', 2)
  await api.produce('orders', [{ key: 'user-1', value: 'checkout' }])
  const commands = readText('README.md').match(/^.*kcat -b .*$/gm) ?? []
  assert.equal(commands.length, 3)
  const printed: string[] = []
  for (const command of commands) printed.push(await execute(command.replaceAll('127.0.0.1:9092', broker.kafka)))
  const [, read = '', listed = ''] = printed
  assert.deepEqual(read.trim().split('\n').sort(), ['user-1 checkout', 'user-3 return'])
  assert.match(listed, /topic "orders" with 2 partitions/)
})

for (const client of [kcatClient, kafkaJsClient]) {
  test(`${client.name} does what it is made for against this broker`, async t => {
    const version = await client.prepare(temporaryDirectory(t))
    if (version === null) return t.skip(`${client.name} is not on this machine`)
    const open = await startBroker(t)
    const guarded = await startBroker(t, { flags: { '--auth': 'required' } })
    const { id: keyId, secret } = await firstKey(guarded)
    for (const name of checkNames) {
      const check = client.checks[name]
      if (check !== undefined) await t.test(name, () => check({ open, guarded, keyId, secret }))
    }
  })
}
