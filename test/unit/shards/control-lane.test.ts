/** Control messages to a shard: in order, also where the ring is full, and none that holds up the others for ever. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRing, RingConsumer } from '../../../src/ring/spsc-ring.ts'
import { ControlLane } from '../../../src/shards/control-lane.ts'

const RING_BYTES = 1024

function takeAll(ring: RingConsumer): string[] {
  const taken: string[] = []
  for (let at = ring.next(); at >= 0; at = ring.next())
    taken.push(ring.buffer.toString('latin1', at, at + 1) + ring.length)
  ring.release()
  return taken
}

test('a message that can never fit is refused when it is sent, and those behind it go', () => {
  const memory = createRing(RING_BYTES)
  const lane = new ControlLane(memory)
  lane.add(Buffer.alloc(RING_BYTES / 4, 'a'))
  assert.throws(() => lane.add(Buffer.alloc(RING_BYTES / 4 + 1, 'b')), { name: 'BugError' })
  lane.add(Buffer.from('c'))
  assert.equal(lane.move(), true)
  assert.deepEqual(takeAll(new RingConsumer(memory)), ['a256', 'c1'])
})

test('messages that find no room go in order when there is some', () => {
  const memory = createRing(RING_BYTES)
  const lane = new ControlLane(memory)
  const ring = new RingConsumer(memory)
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  for (const name of names) lane.add(Buffer.alloc(250, name))
  assert.equal(lane.move(), false)
  const first = takeAll(ring)
  assert.ok(first.length > 0 && first.length < names.length)
  assert.equal(lane.move(), true)
  assert.deepEqual(
    [...first, ...takeAll(ring)],
    names.map(name => `${name}250`)
  )
})
