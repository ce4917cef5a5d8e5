import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseFaultPlan } from '../../../src/disk/fault-plan.ts'

describe('a fault plan', () => {
  test('strikes the calls it names and no others', () => {
    const plan = parseFaultPlan('group.sync:3=EIO, slot.rename:1=kill,group.write:2-3=ENOSPC,slot.fill:2+=short-EIO')
    const strikes = (point: 'group.sync' | 'slot.rename' | 'group.write' | 'slot.fill') =>
      [1, 2, 3, 4].map(() => plan.strike(point))
    assert.deepEqual(strikes('group.sync'), [null, null, { kind: 'error', code: 'EIO' }, null])
    assert.deepEqual(strikes('slot.rename'), [{ kind: 'kill' }, null, null, null])
    const full = { kind: 'error', code: 'ENOSPC' }
    assert.deepEqual(strikes('group.write'), [null, full, full, null])
    const short = { kind: 'short', code: 'EIO' }
    assert.deepEqual(strikes('slot.fill'), [null, short, short, short])
  })

  test('counts the calls of a point also where nothing is armed, and on after a disarm', () => {
    const plan = parseFaultPlan('group.sync:1+=EIO')
    plan.strike('slot.open')
    plan.strike('group.sync')
    plan.disarm()
    assert.equal(plan.strike('group.sync'), null)
    assert.deepEqual(
      [plan.callCount('slot.open'), plan.callCount('group.sync'), plan.callCount('slot.read')],
      [1, 2, 0]
    )
  })

  test('an empty text arms nothing', () => {
    assert.equal(parseFaultPlan('').strike('group.sync'), null)
  })

  const wrong = ['group.sync=EIO', 'group.sink:1=EIO', 'group.sync:0=EIO', 'group.sync:3-2=EIO', 'group.sync:1=EBOGUS']
  for (const text of wrong) {
    test(`'${text}' is refused by name`, () => {
      assert.throws(() => parseFaultPlan(text), new RegExp(`'${text.replace('.', '\\.')}'`))
    })
  }
})
