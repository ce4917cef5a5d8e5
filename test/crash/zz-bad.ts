import { spawnBroker, waitFor } from '/work/main/test/support/broker.ts'
import { CrashLoad, createTopics } from '/work/main/test/support/crash-load.ts'
import { openStuckReader } from '/work/main/test/support/stuck-client.ts'
import { connectEs01 } from '/work/main/src/client/es01/client.ts'
import { it } from 'node:test'
it('x', async t => {
  const n = Number(process.env.N ?? 4)
  const broker = await spawnBroker(t, { variant: { engine: 'uws', shards: 1 } })
  await createTopics(broker, [{ name: 'alpha', partitions: 3 }, { name: 'bulk', partitions: 1 }])
  const client = await connectEs01(broker.es01)
  for (let i = 0; i < 8; i++) await client.produce('bulk', [{ value: Buffer.alloc(1 << 20, 'v'), partition: 0 }])
  const load = await CrashLoad.start(broker, { seed: 1, label: 'b', topics: [{ name: 'alpha', partitions: 3 }], es01Producers: 3, inFlight: 4, httpProducers: 2, hasReaders: true, scattered: 0.3 })
  for (let i = 0; i < n; i++) await openStuckReader(t, broker.es01, { topic: 'bulk', partition: 0, requests: 40 })
  const start = Date.now()
  let lastAcks = 0, lastRead = 0
  for (let i = 0; i < 45; i++) { await new Promise(r => setTimeout(r, 1000)); if (i % 3 === 0 || load.acks.length === lastAcks) console.log(i, 'acks', load.acks.length - lastAcks, 'read', load.read.length - lastRead, load.refusals.length); lastAcks = load.acks.length; lastRead = load.read.length }
  console.log(broker.logs.slice(-5))
  await broker.kill('SIGKILL'); await load.stop().catch(e => console.log(String(e)))
})
