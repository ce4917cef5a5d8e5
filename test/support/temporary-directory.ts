/** A folder that is gone after the test, whatever happened in it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { atEnd } from './clean-up.ts'

/** Absolute path; removed when the test ends. */
export function temporaryDirectory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  atEnd(t, () => rmSync(path, { recursive: true, force: true }))
  return path
}
