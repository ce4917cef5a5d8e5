/** The page of metrics as a gateway serves it, and what the gateway counts of itself. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '../../../../src/base/clock.ts'
import type { MetricsPage } from '../../../../src/model/metrics.ts'
import { assertError, metrics, one, RawConnection, startGateway, waitFor, type EngineName } from './http-harness.ts'

function pageOf(scrape: MetricsPage['scrape']): MetricsPage {
  return { contentType: metrics.contentType, scrape }
}

export function metricsCases(engine: EngineName): void {
  test('a page in pieces arrives whole, however large, and its memory is given back', async t => {
    const pieces = Array.from({ length: 64 }, (_, i) => Buffer.alloc(64 * 1024, 97 + (i % 26)))
    const page = pageOf(() => Promise.resolve(pieces))
    const { send, replyBudget } = await startGateway(t, engine, { metrics: page })
    const { status, headers, text } = await send('GET', '/metrics')
    assert.equal(status, 200)
    assert.equal(headers['content-type'], 'text/plain; version=0.0.4')
    assert.equal(text, Buffer.concat(pieces).toString())
    await waitFor(() => replyBudget.usedBytes === 0, 'the memory of the page to be given back')
  })

  test('a page for which there is no memory is refused, and holds none', async t => {
    const page = pageOf(() => Promise.resolve([Buffer.alloc(1000)]))
    const { send, replyBudget } = await startGateway(t, engine, { metrics: page, replyBudgetBytes: 1500 })
    assert.ok(replyBudget.tryReserve(1000))
    assertError(await send('GET', '/metrics'), 503, 'OVERLOADED', /memory for answers/)
    assert.equal(replyBudget.usedBytes, 1000)
    replyBudget.release(1000)
    assert.equal((await send('GET', '/metrics')).status, 200)
  })

  test('a page that cannot be made is an internal error, whose detail stands in the log alone', async t => {
    const { send, log } = await startGateway(t, engine, {
      metrics: pageOf(() => Promise.reject(new Error('a secret')))
    })
    const answer = await send('GET', '/metrics')
    assertError(answer, 500, 'INTERNAL', /^internal error \(id [0-9a-f]{8}\)$/)
    assert.ok(log.some(({ fields }) => JSON.stringify(fields).includes('a secret')))
  })

  test('a client that leaves before its page is made gets nothing, and holds nothing', async t => {
    const { promise, resolve } = Promise.withResolvers<readonly Buffer[]>()
    let isAsked = false
    const page = pageOf(() => {
      isAsked = true
      return promise
    })
    const { port, gateway, replyBudget } = await startGateway(t, engine, { metrics: page })
    const client = new RawConnection(t, port)
    client.socket.write('GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
    await waitFor(() => isAsked, 'the request')
    client.socket.destroy()
    await waitFor(() => gateway.probe.statuses.get(0) === 1, 'the request to end without a status')
    resolve([Buffer.alloc(1000)])
    await promise
    assert.equal(replyBudget.usedBytes, 0)
  })

  test('connections are counted when they open and when they close', async t => {
    const { port, gateway } = await startGateway(t, engine)
    const clients = [0, 1, 2].map(() => new RawConnection(t, port))
    await waitFor(() => gateway.probe.connections === 3, 'three connections')
    clients[0]?.socket.destroy()
    await waitFor(() => gateway.probe.connections === 2, 'two connections')
    assert.equal(gateway.probe.connectionsAccepted, 3)
  })

  test('a request counts by its route, with its status, its time and the code of its refusal', async t => {
    let nowMs = 0
    const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
    const { send, broker, gateway } = await startGateway(t, engine, { clock })
    await send('POST', '/topics', '{"name":"t"}')
    broker.holdsAnswers = true
    const produced = send('POST', '/topics/t/produce', one)
    await waitFor(() => broker.heldAnswerCount === 1, 'the produce to be submitted')
    nowMs = 30
    broker.holdsAnswers = false
    broker.flush()
    assert.equal((await produced).status, 200)
    assert.equal((await send('GET', '/topics/missing')).status, 404)
    const { latencies, statuses, refusals } = gateway.probe
    await waitFor(() => (statuses.get(404) ?? 0) === 1, 'the last answer to be counted')
    const told = [...latencies].map(([route, latency]) => [route?.pattern, latency.read().sum])
    assert.deepEqual(told, [
      ['/topics', 0],
      ['/topics/:name/produce', 0.03],
      ['/topics/:name', 0]
    ])
    assert.deepEqual([...statuses].sort(), [
      [200, 1],
      [201, 1],
      [404, 1]
    ])
    assert.deepEqual([...refusals], [['TOPIC_NOT_FOUND', 1]])
  })
}
