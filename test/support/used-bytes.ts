/** What a test process has in use: for tests that ask whether something stays held. */
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes of heap and buffers, once what is garbage is gone. The memory of buffers is freed beside the collection that finds them: the next one waits for it. */
export async function usedBytes(): Promise<number> {
  collect()
  await setImmediate()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
