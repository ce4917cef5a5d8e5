/** The gate of a topic: it closes when nothing is on its way, and a produce that left twice would be a bug. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { ProduceGate, ProduceGates } from '../../../src/broker/produce-gate.ts'
import { toTopicId } from '../../../src/model/ids.ts'

describe('the gate of produces', () => {
  it('closes only while none is in hand, and takes none until it is opened', () => {
    const gate = new ProduceGate()
    gate.enter()
    gate.enter()
    gate.leave()
    assert.deepEqual([gate.tryClose(), gate.isClosed, gate.openCount], [false, false, 1])
    gate.leave()
    assert.deepEqual([gate.tryClose(), gate.isClosed, gate.openCount], [true, true, 0])
    assert.throws(() => gate.enter(), BugError)
    gate.open()
    gate.enter()
    assert.equal(gate.openCount, 1)
  })

  it('knows a produce that leaves twice, and two that close or open it at once, for bugs', () => {
    const gate = new ProduceGate()
    assert.throws(() => gate.leave(), BugError)
    assert.throws(() => gate.open(), BugError)
    assert.ok(gate.tryClose())
    assert.throws(() => gate.tryClose(), BugError)
  })

  it('is another one for a topic that was deleted', () => {
    const gates = new ProduceGates()
    const gate = gates.of(toTopicId(1))
    gate.enter()
    assert.equal(gates.of(toTopicId(1)), gate)
    gates.forget(toTopicId(1))
    assert.equal(gates.of(toTopicId(1)).openCount, 0)
    gate.leave()
  })
})
