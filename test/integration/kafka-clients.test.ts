/** kcat, where it is installed, and KafkaJS against the Kafka listener: each check of test/clients by its name. */
import { test } from 'node:test'
import { kafkaJsClient } from '../clients/kafkajs.ts'
import { kcatClient } from '../clients/kcat.ts'
import { checkNames } from '../clients/client.ts'
import { firstKey } from '../support/access.ts'
import { startBroker } from '../support/broker.ts'

for (const client of [kcatClient, kafkaJsClient]) {
  test(`${client.name} does what it is made for against this broker`, async t => {
    const version = await client.version()
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
