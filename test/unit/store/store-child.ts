/**
 * Child process of the store tests. Arguments: mode, data directory. One line per event on stdout.
 *   open    opens and stays until stdin ends: `opened` or `refused <code> <message>`
 *   nobody  the same, after giving up root's rights
 *   storm   commits pairs of topics for ever, eight at a time, one line `acked <i>` per durable pair
 *   limited the same one at a time until two commits failed: `failed <code> <written>` for each
 */
import { writeSync } from 'node:fs'
import { silentLogger } from '../../../src/base/logger.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { openStore } from '../../../src/store/store-client.ts'
import { StoreOpenError } from '../../../src/store/store-open-error.ts'
import type { Store } from '../../../src/store/store.ts'
import { topicOf } from '../control/topics.ts'

const [mode = '', dataDir = ''] = process.argv.slice(2)
/** Synchronous, so that what was said before a kill was said. */
const say = (line: string) => void writeSync(1, `${line}\n`)

if (mode === 'nobody' && process.getuid?.() === 0) process.setuid?.(65_534)
try {
  const store = await openStore({ dataDir, logger: silentLogger })
  say('opened')
  if (mode === 'storm') await storm(store)
  if (mode === 'limited') await commitUntilRefused(store)
  if (mode === 'open') for await (const _ of process.stdin);
  await store.close()
  say('closed')
} catch (error) {
  if (!(error instanceof StoreOpenError)) throw error
  say(`refused ${error.code} ${error.message}`)
}

async function commitPair(store: Store, i: number): Promise<void> {
  const first = topicOf({ id: 2 * i + 1, name: `left-${i}`, firstHandle: 2 * i + 1 })
  const second = topicOf({ id: 2 * i + 2, name: `right-${i}`, firstHandle: 2 * i + 2 })
  await store.commit([
    { kind: 'topic-created', topic: first },
    { kind: 'topic-created', topic: second }
  ])
  say(`acked ${i}`)
}

async function storm(store: Store): Promise<void> {
  let next = 0
  const one = async () => {
    for (;;) await commitPair(store, next++)
  }
  await Promise.all(Array.from({ length: 8 }, one))
}

async function commitUntilRefused(store: Store): Promise<void> {
  let failures = 0
  for (let i = 0; failures < 2; i++) {
    try {
      await commitPair(store, i)
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      say(`failed ${error.code} ${error.written}`)
      failures++
    }
  }
}
