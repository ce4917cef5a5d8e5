/** Helpers of the store tests: fresh directories, opened stores that close themselves, child processes. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { TestContext } from 'node:test'
import { silentLogger } from '../../../src/base/logger.ts'
import type { Logger } from '../../../src/base/logger.ts'
import { openStore } from '../../../src/store/store-client.ts'
import type { Store } from '../../../src/store/store.ts'

/** A path inside of a fresh temporary folder; the data directory itself is not made. */
export function freshDataDir(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-store-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'data')
}

/** Opens a store that is closed when the test ends, if it did not close it. */
export async function openForTest(t: TestContext, dataDir: string, logger: Logger = silentLogger): Promise<Store> {
  const store = await openStore({ dataDir, logger })
  t.after(() => store.close())
  return store
}

const childPath = fileURLToPath(new URL('store-child.ts', import.meta.url))

export class StoreChild {
  readonly process: ChildProcess
  readonly lines: string[] = []
  #hasEnded = false
  /** The process is gone and everything it said was read. */
  readonly #ended: Promise<unknown>
  readonly #waiting: (() => void)[] = []

  /** @param fileBlocksMax largest file the child may write, in blocks of 512 bytes (`ulimit -f` of sh). */
  constructor(t: TestContext, mode: string, dataDir: string, fileBlocksMax?: number) {
    const limit = fileBlocksMax === undefined ? '' : `ulimit -f ${fileBlocksMax}; `
    const script = `${limit}exec "$0" "$@"`
    this.process = spawn('/bin/sh', ['-c', script, process.execPath, childPath, mode, dataDir], {
      stdio: ['pipe', 'pipe', 'inherit']
    })
    this.#ended = once(this.process, 'close')
    if (this.process.stdout !== null) {
      createInterface({ input: this.process.stdout }).on('line', line => {
        this.lines.push(line)
        for (const wake of this.#waiting.splice(0)) wake()
      })
    }
    void this.#ended.then(() => {
      this.#hasEnded = true
      for (const wake of this.#waiting.splice(0)) wake()
    })
    t.after(() => this.kill())
  }

  /** Resolves once the lines said so far satisfy the condition. @throws if the child ends before they do. */
  async waitFor(isReached: (lines: readonly string[]) => boolean): Promise<void> {
    while (!isReached(this.lines)) {
      if (this.#hasEnded) {
        throw new Error(`the child ended too early; it said: ${this.lines.join(' | ')}`)
      }
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    }
  }

  /** kill −9, if it still runs. Resolves when it is gone and all that it said was read. */
  async kill(): Promise<void> {
    this.process.kill('SIGKILL')
    await this.#ended
  }

  /** Ends its standard input. Resolves when it is gone. */
  async finish(): Promise<void> {
    this.process.stdin?.end()
    await this.#ended
  }
}
