/** What a broker knows after kill −9 of offsets that Kafka’s clients committed: every one that was answered, and what was noted beside it. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
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
      const [committedLeaderEpoch, committedMetadata] = noteOf(committedOffset)
      const partitions = [{ partitionIndex: 0, committedOffset, committedLeaderEpoch, committedMetadata }]
      client.send(apis.offsetCommit, VERSION, { groupId: this.group, topics: [{ name: 'orders', partitions }] })
      const response = await client.next()
      if (response === null) return
      const { topics } = decodeResponse(apis.offsetCommit, VERSION, response)
      assert.equal(topics[0]?.partitions[0]?.errorCode, 0)
      this.acked = committedOffset
    }
  }
}

/** Each offset has its own, so that none can stand beside another; every third has nothing. */
function noteOf(offset: number): [leaderEpoch: number, metadata: string | null] {
  return offset % 3 === 0 ? [-1, null] : [offset % 5, `noted at ${offset}`]
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
    if (round === 0) await new HttpApi(broker.url).createTopic('orders')
    await assertFound(t, broker, committers)
    const clients = await Promise.all(committers.map(() => connectKafka(t, kafkaOf(broker))))
    const running = committers.map((committer, i) => committer.run(clients[i] as KafkaClient))
    const target = sumOf(committers) + 20 + dice.below(300)
    await waitFor('some commits', () => sumOf(committers) >= target)
    await broker.kill('SIGKILL')
    await Promise.all(running)
  }
  const broker = await spawnBroker(t, { dataDir })
  await assertFound(t, broker, committers)
})

function sumOf(committers: readonly Committer[]): number {
  return committers.reduce((sum, { acked }) => sum + acked, 0)
}

async function assertFound(t: TestContext, broker: SpawnedBroker, committers: readonly Committer[]): Promise<void> {
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, kafkaOf(broker))
  for (const committer of committers) {
    const { offsets } = parse<{ offsets: { orders?: Record<string, number> } }>(
      await api.get(`/groups/${committer.group}/offsets`)
    )
    const found = offsets.orders?.['0'] ?? 0
    const topics = [{ name: 'orders', partitionIndexes: [0] }]
    const answer = await client.call(apis.offsetFetch, VERSION, { groupId: committer.group, topics, groups: [] })
    const [told] = answer.topics.flatMap(({ partitions }) => partitions)
    const [leaderEpoch, metadata] = found === 0 ? [-1, null] : noteOf(found)
    assert.deepEqual([told?.committedLeaderEpoch, told?.metadata], [leaderEpoch, metadata ?? ''])
    const { acked, sent } = committer
    assert.ok(found >= acked && found <= sent, `${found} of ${acked} answered and ${sent} sent`)
    committer.sent = found
    committer.acked = found
  }
}
