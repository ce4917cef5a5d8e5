/**
 * kcat, KafkaJS and @platformatic/kafka against the Kafka listener: each check of test/clients by its name. kcat is skipped
 * where it is missing; what npm cannot install is a failure.
 */
import assert from 'node:assert/strict'
import { exec } from 'node:child_process'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { kafkaJsClient } from '../clients/kafkajs.ts'
import { kcatClient } from '../clients/kcat.ts'
import { platformaticClient } from '../clients/platformatic.ts'
import { checkNames, type ClientStage, type KafkaClientUnderTest } from '../clients/client.ts'
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
  await api.post('/groups/analytics/commit', { topic: 'orders', partition: 0, offset: 1 })
  const commands = readText('README.md').match(/^.*kcat -b .*$/gm) ?? []
  assert.equal(commands.length, 4)
  const printed: string[] = []
  for (const command of commands) printed.push(await execute(command.replaceAll('127.0.0.1:9092', broker.kafka)))
  const [, read = '', listed = '', grouped = ''] = printed
  assert.deepEqual(read.trim().split('\n').sort(), ['user-1 checkout', 'user-3 return'])
  assert.match(listed, /topic "orders" with 2 partitions/)
  assert.equal(grouped, 'user-3 return\n')
  assert.equal(await execute(commands[3]?.replaceAll('127.0.0.1:9092', broker.kafka) ?? ''), '', 'it has committed')
})

test('clients of others do what they are made for against this broker', { concurrency: true }, async t => {
  const open = await startBroker(t)
  const guarded = await startBroker(t, { flags: { '--auth': 'required' } })
  const { id: keyId, secret } = await firstKey(guarded)
  const stage = { open, guarded, keyId, secret }
  const clients = [kcatClient, kafkaJsClient, platformaticClient()]
  await Promise.all(clients.map(client => t.test(client.name, t => carryOut(t, client, stage))))
})

async function carryOut(t: TestContext, client: KafkaClientUnderTest, stage: ClientStage): Promise<void> {
  const version = await client.prepare(temporaryDirectory(t))
  if (version === null) return t.skip(`${client.name} is not on this machine`)
  for (const name of checkNames) {
    const check = client.checks[name]
    if (check !== undefined) await t.test(name, () => check(stage))
    else assert.ok(client.lacks?.[name] !== undefined, `${client.name} says why it has no '${name}'`)
  }
}
