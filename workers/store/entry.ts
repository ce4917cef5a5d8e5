/**
 * Entry of the store thread: opens the data directory, then answers commits until it is told to close.
 * It blocks in SQLite by design; what arrives meanwhile becomes the next group. The only code that writes store.db.
 *
 * Never: reads a log file, decides what a topic may be, sends an Error across.
 */
import { randomBytes } from 'node:crypto'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import { assert } from '../../src/base/assert.ts'
import { errorTable } from '../../src/model/errors.ts'
import { StoreOpenError } from '../../src/store/store-open-error.ts'
import type {
  CommitRequest,
  CommitResult,
  StoreReply,
  StoreRequest,
  StoreThreadStart
} from '../../src/store/protocol.ts'
import type { CommitOutcome } from './database.ts'
import { openDirectory } from './open.ts'
import type { OpenedDirectory } from './open.ts'

/** Commits of one transaction. Bounds how long the first of them waits for the last. */
const GROUP_COMMITS_MAX = 1024

assert(parentPort !== null, 'the store runs in a thread of its own')
const main: MessagePort = parentPort
// Structured clone keeps the shape that store-client.ts sent.
start(workerData as StoreThreadStart)

function start({ dataDir }: StoreThreadStart): void {
  try {
    serve(openDirectory(dataDir))
  } catch (error) {
    if (!(error instanceof StoreOpenError)) throw error
    const { code, message, cause } = error
    if (cause !== undefined) reply({ kind: 'log', level: 'debug', fields: { cause: describe(cause) }, message })
    reply({ kind: 'refused', code, message })
  }
}

function serve(directory: OpenedDirectory): void {
  reply({ kind: 'opened', image: directory.image })
  main.on('message', (first: StoreRequest) => {
    const requests = [first, ...takeWaiting()]
    const commits = requests.filter(request => request.kind === 'commit')
    if (commits.length > 0) commitAll(directory, commits)
    if (requests.length > commits.length) close(directory)
  })
}

/** What else has arrived by now: it shares the sync with the message at hand. */
function takeWaiting(): StoreRequest[] {
  const waiting: StoreRequest[] = []
  while (waiting.length < GROUP_COMMITS_MAX - 1) {
    const received = receiveMessageOnPort(main) as { message: StoreRequest } | undefined
    if (received === undefined) break
    waiting.push(received.message)
  }
  return waiting
}

function commitAll({ database }: OpenedDirectory, commits: readonly CommitRequest[]): void {
  const outcomes = database.commitGroup(commits.map(commit => commit.changes))
  const results = commits.map((commit, i) => {
    const outcome = outcomes[i]
    assert(outcome !== undefined, 'every commit must have an outcome')
    return resultOf(commit.id, outcome)
  })
  reply({ kind: 'committed', results })
}

/** The cause goes to the log under an id; the caller gets the number and that id. */
function resultOf(id: number, outcome: CommitOutcome): CommitResult {
  if (outcome.kind === 'committed') return { id, isCommitted: true }
  const cause = describe(outcome.cause)
  if (outcome.kind === 'full') {
    reply({ kind: 'log', level: 'warn', fields: { cause }, message: 'the store has no room on its disk' })
    return { id, isCommitted: false, wire: errorTable.DISK_FULL.wire, details: {}, written: 'no' }
  }
  const errorId = randomBytes(4).toString('hex')
  const message = outcome.kind === 'failed' ? 'the store failed; it refuses changes until a restart' : 'a commit failed'
  reply({ kind: 'log', level: 'error', fields: { id: errorId, cause }, message })
  const written = outcome.kind === 'failed' && outcome.isUnknown ? 'unknown' : 'no'
  return { id, isCommitted: false, wire: errorTable.INTERNAL.wire, details: { id: errorId }, written }
}

function close({ database, lock }: OpenedDirectory): void {
  try {
    database.close()
  } catch (error) {
    // Commits are safe in the write-ahead log; only moving them into the database failed. The next open does it.
    const fields = { cause: describe(error) }
    reply({ kind: 'log', level: 'warn', fields, message: 'the store could not be checkpointed at close' })
  }
  lock.release()
  reply({ kind: 'closed' })
  main.close()
}

function describe(cause: unknown): string {
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
}

function reply(message: StoreReply): void {
  main.postMessage(message)
}
