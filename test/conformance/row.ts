/**
 * A row of the conformance tables: one thing that a client may do, and what the specification gives it for that.
 * Each table has rows for every line of its section; specification.test.ts holds them against the page itself.
 */
import type { TestContext } from 'node:test'

export interface Row<Stage> {
  /** The first cell of the line of the specification, or words of a sentence under its table. */
  readonly line: string
  /** Words of that line that this row is about. */
  readonly fact: string
  /** What the client sends or does. */
  readonly sent: string
  readonly expected: string
  readonly check: (stage: Stage, t: TestContext) => Promise<void>
}

/** Runs the rows one after the other, as tests within the one that is running. */
export async function runRows<Stage>(t: TestContext, rows: readonly Row<Stage>[], stage: Stage): Promise<void> {
  for (const { line, sent, expected, check } of rows) {
    await t.test(`${line} | ${sent} | ${expected}`, t => check(stage, t))
  }
}
