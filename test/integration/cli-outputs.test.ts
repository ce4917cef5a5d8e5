/** The outputs of the process itself fail: what its exit code and the other output say then. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
/** Refuses every byte as a disk without room does. */
const FULL = '/dev/full'

/** Runs it with that output on a full disk. @returns its exit code, and what came out of the other. */
function runOnFullDisk(output: 'stdout' | 'stderr', words: readonly string[]): readonly [number | null, string] {
  const full = openSync(FULL, 'w')
  try {
    const stdio = output === 'stdout' ? (['ignore', full, 'pipe'] as const) : (['ignore', 'pipe', full] as const)
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...words], {
      stdio: [...stdio],
      encoding: 'utf8'
    })
    return [status, output === 'stdout' ? stderr : stdout]
  } finally {
    closeSync(full)
  }
}

describe('an output that cannot be written', { skip: !existsSync(FULL) && `no ${FULL} here` }, () => {
  test('is one line and exit code 1, however short the output is', () => {
    for (const words of [['--version'], ['completions', 'bash']]) {
      const line = 'millrace: the output cannot be written: ENOSPC: no space left on device, write\n'
      assert.deepEqual(runOnFullDisk('stdout', words), [1, line])
    }
  })

  test('leaves the exit code as it is where it is stderr', () => {
    for (const [words, code] of [
      [['topic', 'list', '--broker', 'http://127.0.0.1:1'], 3],
      [['topic', 'lost'], 2],
      [['serve', '--shards', '0'], 2]
    ] as const) {
      assert.deepEqual(runOnFullDisk('stderr', words), [code, ''])
    }
  })
})
