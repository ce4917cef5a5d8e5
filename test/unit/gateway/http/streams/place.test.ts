/** How a shared read reaches its followers. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { waitFor } from '../http-harness.ts'
import { StreamStage } from './stream-stage.ts'

it('streams whose sockets tell on the next turn that they took all are not cut, however much all texts are', async t => {
  const stage = new StreamStage(t, { budgetBytes: 32 * 1024 * 1024 })
  await stage.create()
  const opened = Array.from({ length: 200 }, () => stage.open())
  for (const { reply } of opened) {
    reply.onPushed = () => {
      reply.isFull = true
      setImmediate(() => reply.drain())
    }
  }
  stage.append(0, 'v'.repeat(200_000))
  await waitFor(() => opened.every(({ reply }) => reply.offsets.length === 1 || reply.isClosed), 'the record')
  assert.deepEqual([stage.probe.streamsCut, stage.probe.streams], [0, 200])
  await waitFor(() => stage.replyBudget.usedBytes === 0, 'the memory to be free')
})
