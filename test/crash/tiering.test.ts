/** kill −9 at each step of moving segments to cold storage: nothing is lost, and the next run does it again. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { spawnBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** Calls are counted in the thread that makes them. Small segments lie in packs, those of large values in files of their own. */
const steps: readonly (readonly [name: string, faults: string, valueBytes?: number])[] = [
  ['while the copy of a packed segment is made', 'cold/segment.write:2=short-kill'],
  ['before the first object is written', 'cold/segment.create:5=kill'],
  ['in the middle of an object', 'cold/segment.write:6=short-kill'],
  ['before an object is synced', 'cold/segment.sync:6=kill'],
  ['before an object gets its name', 'cold/segment.rename:1=kill'],
  ['when an object has its name, which is not durable', 'cold/segment.rename:2=kill-after'],
  ['when three of the four objects of a segment are there', 'cold/segment.rename:4=kill'],
  ['when all objects are there, and the manifest does not know', 'cold/segment.remove:8=kill-after'],
  ['before the manifest names what is cold', 'settler/manifest.rename:2=kill'],
  [
    'when the manifest names what is cold, and the local files are still there',
    'settler/manifest.directory-sync:3=kill-after'
  ],
  ['while the local files go', 'settler/segment.remove:2=kill', 200_000]
]

describe('tiering that is killed', () => {
  for (const [name, faults, valueBytes = 30_000] of steps) {
    it(`${name} loses nothing, and is done again`, async t => {
      const cold = temporaryDirectory(t)
      const flags = { '--cold-storage-dir': cold, '--segment-delete-grace': '10ms', '--shards': '1' }
      const broker = await spawnBroker(t, { flags, env: { MILLRACE_FAULTS: faults } })
      const ended = once(broker.child, 'exit')
      const api = new HttpApi(broker.url)
      await api.createTopic('events', 1, { segment_bytes: valueBytes * 3.3, retention_bytes: 0 })
      for (let i = 0; i < 12; i++)
        await api.produce('events', [{ value: `${i}:`.padEnd(valueBytes + i, 'x'), partition: 0 }])
      const records = await api.consumeAll('events', 0)
      // Its answer does not come, or came before the end did.
      await api.post('/admin/run-retention', '').catch(() => undefined)
      await ended
      assert.equal(broker.child.signalCode, 'SIGKILL')

      const next = await spawnBroker(t, { dataDir: broker.dataDir, flags })
      const again = new HttpApi(next.url)
      assert.deepEqual(await again.consumeAll('events', 0), records)
      const answer = await again.post('/admin/run-retention', '')
      assert.equal(answer.status, 204, answer.text)
      const tiered = JSON.parse((await again.get('/admin/tiered/events/0')).text) as { segments: number[] }
      assert.deepEqual(tiered.segments, [0, 3, 6])
      assert.deepEqual(await again.consumeAll('events', 0), records)
      assert.deepEqual(readdirSync(join(cold, '+incoming')), [], 'nothing unfinished is left in the store')
    })
  }
})
