/** The background pool: order, bounds, what becomes of jobs when their thread dies or the pool closes. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BrokerError } from '../../../src/model/errors.ts'
import { waitFor } from '../gateway/http/http-harness.ts'
import { Gate, openPool, openTestPool } from './pool-tools.ts'

/** Matches a BrokerError with that code, of which nothing was written. */
function refusal(code: string): (error: unknown) => boolean {
  return error => error instanceof BrokerError && error.code === code && error.written === 'no'
}

describe('the background pool', () => {
  test('starts no thread before its first job, and ends them when there are no more', async t => {
    const { pool } = openTestPool(t, { idleMs: 20 })
    assert.equal(pool.threadCount, 0)
    assert.equal(await pool.run('echo', 'a'), 'a')
    assert.equal(pool.threadCount, 1)
    await waitFor(() => pool.threadCount === 0, 'the idle thread to end')
    assert.equal(await pool.run('echo', 'b'), 'b', 'and starts again')
  })

  test('runs as many jobs at once as it has threads', async t => {
    const { pool } = openTestPool(t)
    const gate = new Gate()
    const jobs = [1, 2, 3].map(() => pool.run('hold', gate.cells))
    await waitFor(() => gate.startedCount === 2, 'two jobs to run')
    assert.deepEqual([pool.threadCount, pool.jobCount], [2, 3])
    gate.release()
    const [first, second] = await Promise.all(jobs)
    assert.notEqual(first, second)
  })

  test('starts jobs in the order in which they were given', async t => {
    const { pool } = openTestPool(t, { threadsMax: 1 })
    const gate = new Gate()
    const held = pool.run('hold', gate.cells)
    const ended: number[] = []
    const jobs = Array.from({ length: 10 }, (_, i) => pool.run('echo', i).then(() => ended.push(i)))
    gate.release()
    await Promise.all([held, ...jobs])
    assert.deepEqual(
      ended,
      Array.from({ length: 10 }, (_, i) => i)
    )
  })

  test('moves memory to a job when it starts, and not before', async t => {
    const { pool } = openTestPool(t, { threadsMax: 1 })
    const gate = new Gate()
    const held = pool.run('hold', gate.cells)
    await waitFor(() => gate.startedCount === 1, 'the thread to be busy')
    const sent = Uint8Array.of(1, 2, 3)
    const abort = new AbortController()
    const { signal } = abort
    const taken = pool.run('echo', sent, { signal, moves: [sent.buffer] })
    abort.abort()
    await assert.rejects(taken)
    assert.deepEqual([...sent], [1, 2, 3], 'a job that never started left it here')
    const echoed = pool.run('echo', sent, { moves: [sent.buffer] })
    gate.release()
    await held
    assert.deepEqual(await echoed, Uint8Array.of(1, 2, 3))
    assert.equal(sent.length, 0)
  })

  test('refuses a job over its limit, with the limit, and takes jobs again when one has ended', async t => {
    const { pool } = openTestPool(t, { threadsMax: 1, jobsMax: 3 })
    const gate = new Gate()
    const jobs = [1, 2, 3].map(() => pool.run('hold', gate.cells))
    await assert.rejects(pool.run('echo', 1), { code: 'OVERLOADED', message: /queue of background jobs.* limit of 3/ })
    gate.release()
    await Promise.all(jobs)
    assert.equal(await pool.run('echo', 1), 1)
  })

  test('takes back a job that has not started, and leaves one that runs alone', async t => {
    const { pool } = openTestPool(t, { threadsMax: 1 })
    const gate = new Gate()
    const abort = new AbortController()
    const running = pool.run('hold', gate.cells, { signal: abort.signal })
    const waiting = pool.run('hold', gate.cells, { signal: abort.signal })
    const next = pool.run('echo', 'next')
    await waitFor(() => gate.startedCount === 1, 'the first job to run')
    abort.abort()
    await assert.rejects(waiting, { name: 'AbortError' })
    await assert.rejects(pool.run('echo', 1, { signal: abort.signal }), { name: 'AbortError' })
    assert.equal(pool.jobCount, 2)
    gate.release()
    assert.equal(typeof (await running), 'number')
    assert.equal(await next, 'next')
    assert.equal(gate.startedCount, 1, 'the job that was taken back never ran')
  })

  for (const way of ['exit', 'crash'] as const) {
    test(`fails the job of a thread that dies (${way}), and no other job`, async t => {
      const { pool, errors } = openTestPool(t)
      const gate = new Gate()
      const held = pool.run('hold', gate.cells)
      await waitFor(() => gate.startedCount === 1, 'a job on another thread')
      const dying = pool.run(way, null)
      const behind = [1, 2, 3].map(i => pool.run('echo', i))
      const error = await dying.then(assert.fail, (failure: unknown) => failure)
      assert(error instanceof BrokerError)
      assert.deepEqual([error.code, error.written], ['INTERNAL', 'no'])
      assert.deepEqual(await Promise.all(behind), [1, 2, 3])
      gate.release()
      assert.equal(typeof (await held), 'number')
      const id = String(error.details['id'])
      assert.match(id, /^[0-9a-f]{8}$/)
      assert.ok(
        errors.some(line => line.includes(id) && line.includes(way === 'exit' ? 'code: 7' : 'nobody catches this')),
        errors.join('\n')
      )
    })
  }

  test('ends a job that is over its time with its thread, leaves other jobs alone, and goes on', async t => {
    const { pool, errors } = openTestPool(t)
    const [gate, spinning] = [new Gate(), new Gate()]
    const held = pool.run('hold', gate.cells)
    await waitFor(() => gate.startedCount === 1, 'a job on another thread')
    const overs: string[] = []
    const failure = (over: string): BrokerError => {
      overs.push(over)
      return new BrokerError('SCHEMA_TIMEOUT', { milliseconds: 250, step: 'spin' })
    }
    const bound = { timeMs: 250, failure }
    // The thread is there: its time is not spent on its start.
    await pool.run('echo', 0)
    const jobs = [1, 2].map(() => pool.run('spin', spinning.cells, { bound }))
    const behind = [1, 2, 3].map(i => pool.run('echo', i))
    for (const job of jobs) await assert.rejects(job, refusal('SCHEMA_TIMEOUT'))
    assert.ok(spinning.startedCount > 0)
    assert.deepEqual(
      [await Promise.all(behind), overs],
      [
        [1, 2, 3],
        ['time', 'time']
      ]
    )
    assert.equal(pool.threadCount, 2)
    gate.release()
    assert.equal(typeof (await held), 'number')
    assert.equal(await pool.run('echo', 'in time', { bound: { ...bound, timeMs: 60_000 } }), 'in time')
    assert.deepEqual(errors, [])
  })

  test('ends a job whose thread is over its memory, with what its bound says, and goes on', async t => {
    const { pool, errors } = openTestPool(t, { threadsMax: 1, heapMb: 16 })
    const failure = (over: string): BrokerError => new BrokerError('SCHEMA_INVALID', { problem: over })
    const bound = { timeMs: 60_000, failure }
    await assert.rejects(pool.run('swell', null, { bound }), { code: 'SCHEMA_INVALID', message: /memory/ })
    assert.equal(await pool.run('echo', 1, { bound }), 1)
    assert.deepEqual(errors, [])
  })

  test('fails a job that throws within its bound as any other', async t => {
    const { pool, errors } = openTestPool(t, { threadsMax: 1 })
    const bound = { timeMs: 60_000, failure: () => new BrokerError('SCHEMA_TIMEOUT') }
    await assert.rejects(pool.run('throw', 'secret', { bound }), refusal('INTERNAL'))
    assert.match(errors.join(), /a background job failed.*secret/)
  })

  test('fails a job that throws, keeps its thread, and tells the cause to the log only', async t => {
    const { pool, errors } = openTestPool(t, { threadsMax: 1 })
    await assert.rejects(
      pool.run('throw', 'secret'),
      (error: unknown) => refusal('INTERNAL')(error) && !String(error).includes('secret')
    )
    assert.match(errors.join(), /a background job failed.*secret/)
    assert.equal(await pool.run('echo', 1), 1)
  })

  for (const entry of ['./broken-entry.ts', './leaving-entry.ts', './missing-entry.ts']) {
    test(`fails its jobs instead of keeping them when threads cannot start (${entry})`, async t => {
      const { pool, errors } = openTestPool(t, {}, entry)
      const jobs = [1, 2, 3].map(i => pool.run('echo', i))
      for (const outcome of await Promise.allSettled(jobs)) {
        assert(outcome.status === 'rejected' && refusal('INTERNAL')(outcome.reason), String(outcome.status))
      }
      await assert.rejects(pool.run('echo', 4), refusal('INTERNAL'))
      assert.match(errors.join(), /a background thread failed/)
    })
  }

  test('at its close fails what runs and what waits, takes nothing more, and leaves no thread', async t => {
    const { pool } = openTestPool(t, { threadsMax: 1 })
    const gate = new Gate()
    const jobs = [1, 2].map(() => pool.run('hold', gate.cells))
    const outcomes = Promise.allSettled(jobs)
    await waitFor(() => gate.startedCount === 1, 'a job to run')
    await pool.close()
    for (const outcome of await outcomes) {
      assert(outcome.status === 'rejected' && refusal('STOPPING')(outcome.reason))
    }
    await assert.rejects(pool.run('echo', 1), refusal('STOPPING'))
    assert.equal(pool.threadCount, 0)
    await pool.close()
  })

  test('closed while its first job loads it, fails that job and starts nothing', async t => {
    const { pool } = openTestPool(t)
    const job = assert.rejects(pool.run('echo', 1), refusal('STOPPING'))
    await pool.close()
    await job
    assert.equal(pool.threadCount, 0)
  })

  test('fails a job of a name that its entry does not know', async t => {
    const { pool } = openPool(t)
    const value = { form: 'json', body: new ArrayBuffer(1), length: 1 } as const
    await assert.rejects(pool.run('toString' as 'scanProduce', value), refusal('INTERNAL'))
    assert.equal((await pool.run('scanProduce', value)).kind, 'refused')
  })
})
