/**
 * HTTP clients that ask for the most and take nothing, beside one that reads, on a real broker: the reader is answered
 * while the others hold their answers still, also where all of them come from one address.
 */
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { firstKey, makeTestKey } from '../support/access.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { HttpApi, parse, type ReadAnswer } from '../support/http-api.ts'
import { parsePage, valueOf } from '../support/prometheus.ts'

const MIB = 1024 * 1024
const STUCK_COUNT = 60
/** Of --reply-memory-bytes, which is 128 MiB. */
const SHARE_BYTES = 32 * MIB
/** Who takes nothing is cut off two seconds after its answer began. */
const BEFORE_CUTS_MS = 1_500

interface Reading {
  readonly answer: ReadAnswer
  readonly heldBytes: number
  readonly cutCount: number
}

/** Asks for all that a read may have, and takes nothing of it. */
function openStuck(t: TestContext, { url }: TestBroker, maxBytes: number, secret: string | null): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  atEnd(t, () => socket.destroy())
  socket.on('error', () => socket.destroy())
  socket.pause()
  const key = secret === null ? '' : `X-Es-Key: ${secret}\r\n`
  const path = `/topics/t/consume?partition=0&offset=0&max_records=10000&max_bytes=${maxBytes}`
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${key}\r\n`)
  return socket
}

async function counters(api: HttpApi): Promise<Omit<Reading, 'answer'>> {
  const page = parsePage((await api.get('/metrics')).text)
  const read = (name: string, labels: Record<string, string>): number => {
    const value = valueOf(page, name, labels)
    assert.ok(value !== undefined, name)
    return value
  }
  const cut = (reason: string): number => read('millrace_http_cut_readers_total', { reason })
  return {
    heldBytes: read('millrace_memory_budget_used_bytes', { budget: 'replies' }),
    cutCount: cut('stalled') + cut('slow')
  }
}

interface Crowd {
  readonly admin: HttpApi
  /** Who reads. */
  readonly reader: HttpApi
  readonly stuckSecret: string | null
  readonly maxBytes: number
}

/**
 * What the reader gets beside the crowd, and what that holds right after. Begun again if the machine was so slow that
 * those who take nothing may have been cut off before.
 */
async function readBeside(t: TestContext, broker: TestBroker, crowd: Crowd): Promise<Reading> {
  const { admin, reader, stuckSecret, maxBytes } = crowd
  for (let tries = 0; tries < 20; tries++) {
    const before = await counters(admin)
    const startMs = performance.now()
    const stuck = Array.from({ length: STUCK_COUNT }, () => openStuck(t, broker, maxBytes, stuckSecret))
    await waitFor('an answer that nobody takes', async () => (await counters(admin)).heldBytes > MIB)
    const answer = parse<ReadAnswer>(await reader.get('/topics/t/consume?partition=0&offset=0'))
    const after = await counters(admin)
    const tookMs = performance.now() - startMs
    for (const socket of stuck) socket.destroy()
    await waitFor('the memory to be given back', async () => (await counters(admin)).heldBytes < MIB)
    if (tookMs < BEFORE_CUTS_MS) {
      return { answer, ...after, cutCount: after.cutCount - before.cutCount }
    }
  }
  throw new Error('this machine never answered a read within the time before clients are cut off')
}

/** More than the system buffers for clients that do not read. */
async function fill(api: HttpApi, mebibytes: number): Promise<void> {
  await api.createTopic('t', 1)
  for (let i = 0; i < mebibytes; i++) {
    await api.produce(
      't',
      Array.from({ length: 16 }, () => ({ value: 'v'.repeat(MIB / 16), partition: 0 }))
    )
  }
}

for (const engine of ['uws', 'node'] as const) {
  const variant = { engine, shards: 1 } as const

  test(`a read is answered while 60 clients of its address hold what they do not take, on ${engine}`, async t => {
    const maxBytes = 24 * MIB
    const flags = { '--max-fetch-bytes': '24MiB' }
    const broker = await startBroker(t, { variant, flags })
    const api = new HttpApi(broker.url)
    await fill(api, 25)
    const seen = await readBeside(t, broker, { admin: api, reader: api, stuckSecret: null, maxBytes })
    assert.ok(seen.answer.records.length > 0)
    assert.equal(seen.cutCount, 0, 'nobody was cut off for it')
    assert.ok(seen.heldBytes > MIB && seen.heldBytes <= SHARE_BYTES, `they hold ${seen.heldBytes} of their quarter`)
  })

  test(`a read of one key is answered in full while clients of another hold their share, on ${engine}`, async t => {
    const maxBytes = 24 * MIB
    const flags = { '--auth': 'required', '--max-fetch-bytes': '24MiB' }
    const broker = await startBroker(t, { variant, flags })
    const { api: admin } = await firstKey(broker)
    await fill(admin, 25)
    const [stuck, reader] = [await makeTestKey(admin, 'read:t'), await makeTestKey(admin, 'read:t')]
    const crowd = { admin, reader: reader.api, stuckSecret: stuck.secret, maxBytes }
    const seen = await readBeside(t, broker, crowd)
    assert.equal(seen.answer.records.length, 15, 'all that fits a read of 1 MiB')
    assert.equal(seen.cutCount, 0, 'nobody was cut off for it')
    // And what the reader has just been given, which may be on its way still.
    assert.ok(seen.heldBytes > MIB && seen.heldBytes <= SHARE_BYTES + 2 * MIB, `${seen.heldBytes}`)
  })
}
