/** Bodies and answers of the schema routes: where large ones are parsed, and what of the budgets they hold until when. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { BackgroundJobs } from '../../../../../src/background/jobs.ts'
import type { ReadFieldsResult, ReadFieldsValue } from '../../../../../src/background/read-fields.ts'
import type { Offload } from '../../../../../src/gateway/http/exchange.ts'
import { BrokerError } from '../../../../../src/model/errors.ts'
import { limits } from '../../../../../src/model/limits.ts'
import type { RegisterRequest, SchemaUseCases, SchemaVersion } from '../../../../../src/model/schemas.ts'
import { noSchemas } from '../../../../support/no-schemas.ts'
import { readFields } from '../../../../../workers/background/read-fields.ts'
import { assertError, RawConnection, startGateway, waitFor, type EngineName } from '../http-harness.ts'

/** A pool of one thread that the test plays. */
class PlayedPool implements Pick<Offload['pool'], 'run'> {
  readonly jobs: { value: ReadFieldsValue; bodyBytes: number; end: () => void; fail: (error: unknown) => void }[] = []

  run<Name extends keyof BackgroundJobs & string>(
    job: Name,
    value: BackgroundJobs[Name]['value'],
    { signal }: { signal?: AbortSignal } = {}
  ): Promise<BackgroundJobs[Name]['result']> {
    assert.ok(job === 'readFields' && 'names' in value)
    return new Promise<ReadFieldsResult>((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(new Error('taken back')))
      const end = (): void => resolve(readFields(value))
      this.jobs.push({ value, bodyBytes: value.body.byteLength, end, fail: reject })
    })
  }

  get offload(): Offload {
    return { pool: this, bodyBytesMin: limits.offloadedBodyBytesMin }
  }
}

function versionOf(id: number, schema: string): SchemaVersion {
  return { id, subject: 's', version: id, type: 'json_schema', schema, createdAtMs: 1 }
}

/** Takes every schema; `versions` are all there are. */
function registryOf(
  versions: readonly SchemaVersion[] = []
): SchemaUseCases & { readonly requests: RegisterRequest[] } {
  const requests: RegisterRequest[] = []
  return {
    ...noSchemas,
    requests,
    register(_who, request) {
      requests.push(request)
      return Promise.resolve(versionOf(requests.length, request.schema))
    },
    list: () => versions
  }
}

const bodyOf = (schema: string, rest: object = {}): string => JSON.stringify({ subject: 's', schema, ...rest })

for (const engine of ['uws', 'node'] as const satisfies EngineName[]) {
  describe(`a request with a schema, on ${engine}`, () => {
    test('is parsed in another thread if it is large, and only then', async t => {
      const pool = new PlayedPool()
      const { broker, send, requestBudget } = await startGateway(t, engine, { offload: pool.offload })
      const registry = registryOf()
      broker.schemas = registry
      assert.equal((await send('POST', '/schemas', bodyOf('x'.repeat(1000)))).text, '{"id":1}')
      assert.equal(pool.jobs.length, 0)
      const schema = 'é\u0001'.repeat(50_000)
      const sending = send('POST', '/schemas', bodyOf(schema, { other: [1, { a: 2 }] }))
      await waitFor(() => pool.jobs.length === 1, 'the job')
      assert.ok(requestBudget.usedBytes >= (pool.jobs[0]?.bodyBytes ?? Infinity), 'it is charged while it is there')
      pool.jobs[0]?.end()
      assert.equal((await sending).text, '{"id":2}')
      assert.deepEqual(registry.requests[1], { subject: 's', type: 'json_schema', schema })
      assert.equal(requestBudget.usedBytes, 0)
    })

    test('lists the versions that there were, while more are registered', async t => {
      const { broker, send } = await startGateway(t, engine)
      const versions = Array.from({ length: 60_000 }, (_, index) => versionOf(index + 1, '{}'))
      const count = versions.length
      const grow = (): void => {
        versions.push(versionOf(versions.length + 1, '{}'))
        if (versions.length < count + 100) setImmediate(grow)
      }
      broker.schemas = {
        ...registryOf(),
        versionsOf: () => {
          setImmediate(grow)
          return versions
        }
      }
      const listed = JSON.parse((await send('GET', '/confluent/subjects/s/versions')).text) as number[]
      assert.deepEqual([listed.length, listed.at(-1)], [count, count])
    })

    test('whose parsing fails is answered so, and gives its memory back', async t => {
      const pool = new PlayedPool()
      const { send, requestBudget } = await startGateway(t, engine, { offload: pool.offload })
      const sending = send('POST', '/schemas', bodyOf('x'.repeat(100_000)))
      await waitFor(() => pool.jobs.length === 1, 'the job')
      pool.jobs[0]?.fail(new BrokerError('OVERLOADED', { what: 'the queue of background jobs', limit: 1 }))
      assertError(await sending, 503, 'OVERLOADED', /queue of background jobs/)
      assert.equal(requestBudget.usedBytes, 0)
    })

    test('is refused if there is no memory for it', async t => {
      const pool = new PlayedPool()
      const { send, requestBudget } = await startGateway(t, engine, {
        offload: pool.offload,
        requestBudgetBytes: 50_000
      })
      assert.ok(requestBudget.tryReserve(10_000))
      assertError(await send('POST', '/schemas', bodyOf('x'.repeat(100_000))), 503, 'OVERLOADED', /memory for requests/)
      assert.equal(requestBudget.usedBytes, 10_000)
    })

    test('whose client is gone is taken back, and nothing is registered', async t => {
      const pool = new PlayedPool()
      const { broker, port, requestBudget } = await startGateway(t, engine, { offload: pool.offload })
      const registry = registryOf()
      broker.schemas = registry
      const body = bodyOf('x'.repeat(100_000))
      const connection = new RawConnection(t, port)
      connection.socket.write(
        `POST /schemas HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      )
      await waitFor(() => pool.jobs.length === 1, 'the job')
      connection.socket.destroy()
      await waitFor(() => requestBudget.usedBytes === 0, 'the memory to come back')
      pool.jobs[0]?.end()
      assert.deepEqual(registry.requests, [])
    })
  })

  describe(`a list of schemas, on ${engine}`, () => {
    const large = Array.from({ length: 40 }, (_, i) => versionOf(i + 1, `${i}`.repeat(50_000)))

    test('is charged as a whole while it is on its way, and no longer', async t => {
      const { broker, port, replyBudget, send } = await startGateway(t, engine)
      // More than the sockets of both ends hold.
      broker.schemas = registryOf(Array.from({ length: 60 }, (_, i) => versionOf(i, 'x'.repeat(400_000))))
      const connection = new RawConnection(t, port)
      connection.socket.pause()
      connection.socket.write('GET /schemas HTTP/1.1\r\nHost: localhost\r\n\r\n')
      await waitFor(() => replyBudget.usedBytes > 24_000_000, 'the answer')
      const bytes = Buffer.byteLength((await send('GET', '/schemas')).text)
      assert.equal(replyBudget.usedBytes, bytes, 'that of the client that reads nothing')
      connection.socket.destroy()
      await waitFor(() => replyBudget.usedBytes === 0, 'the memory to come back')
    })

    test('is refused if there is no memory for it', async t => {
      const { broker, replyBudget, send } = await startGateway(t, engine, { replyBudgetBytes: 1_000_000 })
      broker.schemas = registryOf(large)
      assert.ok(replyBudget.tryReserve(1))
      assertError(await send('GET', '/schemas'), 503, 'OVERLOADED', /memory for answers/)
      assert.equal(replyBudget.usedBytes, 1)
    })

    test('has the same text in one piece and in many', async t => {
      const { broker, send } = await startGateway(t, engine)
      for (const count of [0, 1, 2, 40]) {
        broker.schemas = registryOf(large.slice(0, count))
        const answer = await send('GET', '/schemas')
        assert.equal(Number(answer.headers['content-length']), answer.text.length)
        assert.deepEqual(
          (answer.json() as { id: number }[]).map(({ id }) => id),
          Array.from({ length: count }, (_, i) => i + 1)
        )
      }
      const head = await send('HEAD', '/schemas')
      assert.deepEqual([head.status, head.text], [200, ''])
    })
  })
}
