/** What a broker says that it holds: of its memory budgets, and reads that wait. */
import assert from 'node:assert/strict'
import { waitFor } from './broker.ts'
import type { HttpApi } from './http-api.ts'

/** Bytes of the budgets in use. The question itself takes none. */
export async function heldBytes(api: HttpApi): Promise<{ readonly requests: number; readonly replies: number }> {
  const page = (await api.get('/metrics')).text
  const held = (budget: string): number => {
    const found = new RegExp(`^millrace_memory_budget_used_bytes\\{budget="${budget}"\\} (\\d+)$`, 'm').exec(page)
    assert.ok(found !== null, `${budget} are told`)
    return Number(found[1])
  }
  return { requests: held('requests'), replies: held('replies') }
}

/** Resolves when that many reads wait for records. */
export async function untilWatching({ api }: { readonly api: HttpApi }, count: number): Promise<void> {
  const page = async (): Promise<boolean> => (await api.get('/metrics')).text.includes(`\nmillrace_watches ${count}\n`)
  await waitFor(`${count} watches`, page)
}
