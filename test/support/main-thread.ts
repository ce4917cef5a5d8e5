/**
 * How long the main thread is held by what a test asks of a broker in this process. The processor time of one turn of the
 * event loop counts, not the time on the clock: other processes may take the machine, and are not the broker's fault.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { TestContext } from 'node:test'
import { atEnd } from './clean-up.ts'

/** The client, on a thread of its own: what it does with the answers is not measured. */
const client = `
const { parentPort, workerData } = require('node:worker_threads')
async function run() {
  const texts = []
  for (let i = 0; i < workerData.count; i++) {
    texts.push(await (await fetch(workerData.url)).text())
    await new Promise(resolve => setTimeout(resolve, workerData.pauseMs))
  }
  parentPort.postMessage(texts)
}
run()`

/** Longer than numbers of a page serve again. */
const PAUSE_MS = 1100

function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Gets a page several times. @returns the longest turn meanwhile, and the answers. */
export async function longestTurnMs(
  t: TestContext,
  url: string,
  count: number
): Promise<{ turnMs: number; texts: string[] }> {
  const worker = new Worker(client, { eval: true, workerData: { url, count, pauseMs: PAUSE_MS } })
  atEnd(t, () => worker.terminate())
  let turnMs = 0
  let isOver = false
  let before = threadMs()
  const look = (): void => {
    const now = threadMs()
    turnMs = Math.max(turnMs, now - before)
    before = now
    if (!isOver) setImmediate(look)
  }
  look()
  const [texts] = (await once(worker, 'message')) as [string[]]
  isOver = true
  return { turnMs, texts }
}
