/** A gateway on a fake broker and a client that sees raw answers. Everything is closed when the test ends. */
import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import type { Agent, IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { ByteBudget } from '../../../../src/base/byte-budget.ts'
import type { Clock } from '../../../../src/base/clock.ts'
import type { Certificates } from '../../../../src/gateway/shared/certificates.ts'
import type { HttpSettings, Offload } from '../../../../src/gateway/http/exchange.ts'
import { createHttpGateway } from '../../../../src/gateway/http/gateway.ts'
import type { HttpGateway } from '../../../../src/gateway/http/gateway.ts'
import type { ConnectionTimeouts } from '../../../../src/gateway/http/engines/engine.ts'
import type { BodyTimeouts } from '../../../../src/gateway/http/body-watch.ts'
import type { ReaderTimeouts } from '../../../../src/gateway/http/engines/answer-pace.ts'
import type { MetricsPage } from '../../../../src/model/metrics.ts'
import type { StreamTimes } from '../../../../src/gateway/http/streams/stream-hub.ts'
import { FakeBroker } from './fake-broker.ts'

export type EngineName = 'uws' | 'node'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Throws if the body is not JSON. */
  json(): unknown
}

export interface LogLine {
  readonly level: string
  readonly fields: object
  readonly message: string
}

export interface Fixture {
  readonly broker: FakeBroker
  readonly gateway: HttpGateway
  readonly port: number
  readonly log: LogLine[]
  readonly requestBudget: ByteBudget
  readonly replyBudget: ByteBudget
  send(method: string, path: string, body?: string | Buffer, headers?: Record<string, string>): Promise<Answer>
}

export interface FixtureOptions {
  readonly settings?: Partial<HttpSettings>
  readonly requestBudgetBytes?: number
  readonly replyBudgetBytes?: number
  /** Left out: every body is scanned on the main thread. */
  readonly offload?: Offload
  readonly timeouts?: Partial<ReaderTimeouts & BodyTimeouts & ConnectionTimeouts & StreamTimes>
  readonly clock?: Clock
  readonly connectionsMax?: number
  readonly certificates?: Certificates
  readonly metrics?: MetricsPage
}

export const settings: HttpSettings = {
  bind: '127.0.0.1:0',
  auth: 'disabled',
  allowedHost: [],
  corsOrigin: [],
  maxRequestBodyBytes: 10 * 1024 * 1024,
  maxFetchBytes: 8 * 1024 * 1024,
  maxFetchRecords: 10_000
}

/** Waits until the condition holds; fails loudly after ten seconds. */
export async function waitFor(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited ten seconds for: ${what}`)
    await new Promise(resolve => setImmediate(resolve))
  }
}

export interface Sending {
  readonly port: number
  readonly method: string
  readonly path: string
  readonly body?: string | Buffer | undefined
  readonly headers?: Record<string, string> | undefined
  readonly agent?: Agent
}

export function sendHttp({ port, method, path, body, headers, agent }: Sending): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const request = httpRequest(
      { host: '127.0.0.1', port, method, path, headers: { ...type, ...length, ...headers }, agent: agent ?? false },
      response => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          const { statusCode: status = 0, headers: received } = response
          resolve({ status, headers: received, text, json: () => JSON.parse(text) as unknown })
        })
      }
    )
    request.on('error', reject)
    request.end(body)
  })
}

/** A page that says who asked. */
export const metrics: MetricsPage = {
  contentType: 'text/plain; version=0.0.4',
  scrape: who => Promise.resolve([Buffer.from('# for '), Buffer.from(`${who.keyId}\n`)])
}

export async function startGateway(t: TestContext, engine: EngineName, options: FixtureOptions = {}): Promise<Fixture> {
  const { settings: changed, requestBudgetBytes, replyBudgetBytes, ...rest } = options
  const broker = new FakeBroker()
  const log: LogLine[] = []
  const keep = (level: string) => (fields: object, message: string) => void log.push({ level, fields, message })
  const logger = { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') }
  const requestBudget = new ByteBudget(requestBudgetBytes ?? 64 * 1024 * 1024)
  const replyBudget = new ByteBudget(replyBudgetBytes ?? 64 * 1024 * 1024)
  const merged = { ...settings, ...changed }
  const parts = { broker, metrics, settings: merged, logger, requestBudget, replyBudget, engine, ...rest }
  const gateway = await createHttpGateway(parts)
  const { port } = await gateway.listen()
  t.after(() => gateway.stop(0))
  const send: Fixture['send'] = (method, path, body, headers) => sendHttp({ port, method, path, body, headers })
  return { broker, gateway, port, log, requestBudget, replyBudget, send }
}

/** A raw connection: what was received so far, and whether the other side closed it. */
export class RawConnection {
  received = ''
  isClosed = false
  readonly socket: Socket

  constructor(t: TestContext, port: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.setEncoding('latin1')
    this.socket.on('data', (text: string) => (this.received += text))
    this.socket.on('close', () => (this.isClosed = true))
    // A reset is one of the ways in which the other side closes; the close event follows.
    this.socket.on('error', () => {})
    t.after(() => this.socket.destroy())
  }
}

/** The smallest produce. */
export const one = '{"records":[{"value":"v"}]}'

/** Status, code and text of an error answer, whose shape is checked on the way. */
export function errorOf(answer: Answer): { status: number; code: unknown; error: string } {
  const body = answer.json()
  assert(typeof body === 'object' && body !== null && 'error' in body && 'code' in body, answer.text)
  assert(typeof body.error === 'string' && 'retry' in body && 'written' in body, answer.text)
  assert.match('request_id' in body ? String(body.request_id) : '', /^[0-9a-f]{8}$/, answer.text)
  assert.equal(answer.headers['content-type'], 'application/json')
  return { status: answer.status, code: body.code, error: body.error }
}

/** Checks status, code and words of an error answer. */
export function assertError(answer: Answer, status: number, code: string, words: RegExp): void {
  const found = errorOf(answer)
  assert.deepEqual({ status: found.status, code: found.code }, { status, code }, answer.text)
  assert.match(found.error, words)
}
