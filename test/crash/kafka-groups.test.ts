/** What a broker knows after kill −9 of offsets that Kafka’s clients committed: every one that was answered. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { spawnBroker, waitFor, type SpawnedBroker } from '../support/broker.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { connectKafka, decodeResponse, type KafkaClient } from '../support/kafka-client.ts'
import { diceOf, replayLine } from '../support/log-random.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const FILE = 'test/crash/kafka-groups.test.ts'
const ROUNDS = isLong ? 40 : 3
const COMMITTERS = 4
const VERSION = 7

/** Commits ever greater offsets, one after the other, until the broker is gone. */
class Committer {
  readonly group: string
  acked = 0
  sent = 0

  constructor(number: number) {
    this.group = `group-${number}`
  }

  async run(client: KafkaClient): Promise<void> {
    for (;;) {
      const committedOffset = ++this.sent
      const partitions = [{ partitionIndex: 0, committedOffset, committedMetadata: null }]
      client.send(apis.offsetCommit, VERSION, { groupId: this.group, topics: [{ name: 'orders', partitions }] })
      const response = await client.next()
      if (response === null) return
      const { topics } = decodeResponse(apis.offsetCommit, VERSION, response)
      assert.equal(topics[0]?.partitions[0]?.errorCode, 0)
      this.acked = committedOffset
    }
  }
}

function kafkaOf({ logs }: SpawnedBroker): string {
  const ready = logs.find(({ msg }) => msg === 'ready')
  const [address] = ready?.['kafkaAddresses'] as string[]
  assert.ok(address !== undefined)
  return address
}

test('a commit over the Kafka protocol that was answered survives kill −9', async t => {
  t.diagnostic(replayLine(seed, FILE))
  const dice = diceOf(seed)
  const dataDir = temporaryDirectory(t)
  const committers = Array.from({ length: COMMITTERS }, (_, i) => new Committer(i))
  for (let round = 0; round < ROUNDS; round++) {
    const broker = await spawnBroker(t, { dataDir })
    const api = new HttpApi(broker.url)
    if (round === 0) await api.createTopic('orders')
    await assertFound(api, committers)
    const clients = await Promise.all(committers.map(() => connectKafka(t, kafkaOf(broker))))
    const running = committers.map((committer, i) => committer.run(clients[i] as KafkaClient))
    const target = sumOf(committers) + 20 + dice.below(300)
    await waitFor('some commits', () => sumOf(committers) >= target)
    await broker.kill('SIGKILL')
    await Promise.all(running)
  }
  const broker = await spawnBroker(t, { dataDir })
  await assertFound(new HttpApi(broker.url), committers)
})

function sumOf(committers: readonly Committer[]): number {
  return committers.reduce((sum, { acked }) => sum + acked, 0)
}

async function assertFound(api: HttpApi, committers: readonly Committer[]): Promise<void> {
  for (const committer of committers) {
    const { offsets } = parse<{ offsets: { orders?: Record<string, number> } }>(
      await api.get(`/groups/${committer.group}/offsets`)
    )
    const found = offsets.orders?.['0'] ?? 0
    const { acked, sent } = committer
    assert.ok(found >= acked && found <= sent, `${found} of ${acked} answered and ${sent} sent`)
    committer.sent = found
    committer.acked = found
  }
}
