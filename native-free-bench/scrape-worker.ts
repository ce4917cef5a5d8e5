/**
 * Asks for a page again and again, on a thread of its own: taking megabytes must not hold up the main thread of the
 * generator, which times what else the broker answers meanwhile. It looks into nothing.
 */
import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import type { Address } from './drivers/driver.ts'

/** What the worker is asked for. */
export interface ScrapeTask {
  readonly address: Address
  readonly path: string
  readonly count: number
  /** Between an answer and the next request. */
  readonly pauseMs: number
}

/** What it answers, at its end. */
export interface ScrapeTimes {
  readonly milliseconds: readonly number[]
  /** Of the last page. */
  readonly bytes: number
}

/** @returns bytes of the answer. @throws Error unless it is 200. */
function fetchOnce({ host, port }: Address, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = get({ host, port, path }, response => {
      let bytes = 0
      response.on('data', (chunk: Buffer) => (bytes += chunk.length))
      response.once('error', reject)
      response.once('end', () => {
        if (response.statusCode === 200) resolve(bytes)
        else reject(new Error(`${path} was answered ${response.statusCode}`))
      })
    })
    request.once('error', reject)
  })
}

if (parentPort !== null) {
  const task: ScrapeTask = workerData
  const milliseconds: number[] = []
  let bytes = 0
  for (let i = 0; i < task.count; i++) {
    if (i > 0) await sleep(task.pauseMs)
    const startedMs = performance.now()
    bytes = await fetchOnce(task.address, task.path)
    milliseconds.push(performance.now() - startedMs)
  }
  parentPort.postMessage({ milliseconds, bytes } satisfies ScrapeTimes)
}
