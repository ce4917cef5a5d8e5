/** A folder that is gone after the test, whatever happened in it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** Absolute path; removed when the test ends. */
export function temporaryDirectory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}
