/** Stand-ins for a terminal and for a broker that answers what a test tells it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EventEmitter } from 'node:events'
import { Readable, Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { runCli } from '../../../src/cli/run.ts'

export interface Capture extends Writable {
  isTTY?: boolean
  readonly text: string
}

/** A stream that remembers what was written to it. */
export function capture(isTTY = false): Capture {
  const chunks: string[] = []
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _, done) {
      chunks.push(String(chunk))
      done()
    }
  })
  return Object.defineProperty(Object.assign(stream, { isTTY, text: '' }), 'text', { get: () => chunks.join('') })
}

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly env?: Record<string, string>
  readonly stdin?: string
  readonly isTerminal?: boolean
}

/** A command that runs. */
export interface Running {
  readonly stdout: Capture
  readonly stderr: Capture
  /** Delivers a signal, as the terminal does. */
  signal(name: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): void
  /** How many listen to it. */
  listeners(name: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): number
  readonly outcome: Promise<Outcome>
}

/** Starts a command in this process. */
export function start(words: readonly string[], options: RunOptions = {}): Running {
  const stdout = capture(options.isTerminal)
  const stderr = capture(options.isTerminal)
  const stdin = Readable.from(options.stdin === undefined ? [] : [Buffer.from(options.stdin)])
  const signals = new EventEmitter()
  const outcome = runCli(words, { stdin, stdout, stderr, env: options.env ?? {}, signals }).then(code => ({
    code,
    stdout: stdout.text,
    stderr: stderr.text
  }))
  return {
    stdout,
    stderr,
    signal: name => void signals.emit(name),
    listeners: name => signals.listenerCount(name),
    outcome
  }
}

/** Runs one command in this process to its end. */
export function run(words: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  return start(words, options).outcome
}

export interface Asked {
  readonly method: string
  readonly url: string
  readonly contentType: string | undefined
  readonly body: string
}

export interface Told {
  readonly status: number
  readonly body: string
}

export interface FakeBroker {
  readonly url: string
  readonly asked: readonly Asked[]
  /** The header of each of them. */
  readonly authorizations: readonly (string | undefined)[]
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString()
}

/** An HTTP server on a free port that answers by `answer`; null closes the connection without one. */
export async function startFakeBroker(t: TestContext, answer: (asked: Asked) => Told | null): Promise<FakeBroker> {
  const asked: Asked[] = []
  const authorizations: (string | undefined)[] = []
  const server = createServer((request, response) => {
    void bodyOf(request).then(body => {
      const { method = '', url = '', headers } = request
      const question = { method, url, contentType: headers['content-type'], body }
      authorizations.push(headers.authorization)
      asked.push(question)
      const told = answer(question)
      if (told === null) return request.socket.destroy()
      response.writeHead(told.status, { 'content-type': 'application/json', connection: 'close' })
      return response.end(told.body)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => new Promise(resolve => server.close(resolve)))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { url: `http://127.0.0.1:${address.port}`, asked, authorizations }
}

/** A port of this machine on which nobody listens. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** A file with this content, there until the test ends. */
export function inputFile(t: TestContext, content: string | Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-cli-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'input.txt')
  writeFileSync(path, content)
  return path
}
