/**
 * What a test leaves is taken down in the reverse order of making: node:test runs its own hooks in the order in which
 * they were registered, which removes a directory while the broker in it still runs.
 */
import type { TestContext } from 'node:test'

const steps = new WeakMap<object, (() => unknown)[]>()

/** Runs `step` when the test is over, after all that were registered later. One that fails does not keep the others from running. */
export function atEnd(t: TestContext, step: () => unknown): void {
  const known = steps.get(t)
  if (known !== undefined) {
    known.push(step)
    return
  }
  const mine = [step]
  steps.set(t, mine)
  t.after(async () => {
    const failures: unknown[] = []
    for (let next = mine.pop(); next !== undefined; next = mine.pop()) {
      try {
        await next()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  })
}
