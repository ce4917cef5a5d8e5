/**
 * Servers that speak S3, on 127.0.0.1 at a free port: s3rver (npm) always, moto (Python) when asked for; and a proxy
 * in front of one, which fails as a test says. All end with the test.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { waitFor } from './broker.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { atEnd } from './clean-up.ts'

export interface S3Server {
  /** `http://127.0.0.1:port`. */
  readonly endpoint: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** The bucket that every server has. */
export const bucketName = 'cold'

/** What is used of s3rver, which has no types. */
interface S3rver {
  run(): Promise<{ port: number }>
  readonly httpServer: Server
  readonly store: {
    getResourcePath(bucket: string, key: string | undefined, resource: string): string
    putObject(object: { bucket: string; key: string }): Promise<{ size: number }>
    putPart(bucket: string, id: string, number: number, content: unknown): Promise<{ size: number }>
  }
}

export async function startS3rver(t: TestContext): Promise<S3Server> {
  const server = new (createRequire(import.meta.url)('s3rver') as new (options: object) => S3rver)({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    vhostBuckets: false,
    directory: temporaryDirectory(t),
    configureBuckets: [{ name: bucketName }]
  })
  answerWhenWritten(server.store)
  const { port } = await server.run()
  atEnd(t, () => closeServer(server.httpServer))
  return { endpoint: `http://127.0.0.1:${port}`, accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
}

/** s3rver answers while its last bytes are still on their way to the file; a real store does not. */
function answerWhenWritten(store: S3rver['store']): void {
  const putObject = store.putObject.bind(store)
  store.putObject = async object => {
    const answer = await putObject(object)
    await waitForSize(store.getResourcePath(object.bucket, object.key, 'object'), answer.size)
    return answer
  }
  const putPart = store.putPart.bind(store)
  store.putPart = async (bucket, id, number, content) => {
    const answer = await putPart(bucket, id, number, content)
    await waitForSize(join(store.getResourcePath(bucket, undefined, 'uploads'), id, String(number)), answer.size)
    return answer
  }
}

async function waitForSize(path: string, bytes: number): Promise<void> {
  await waitFor(`${bytes} bytes in ${path}`, () => statSync(path, { throwIfNoEntry: false })?.size === bytes)
}

/** Installed once for all runs of this version, below the system's temporary directory. */
const MOTO_VERSION = '5.2.5'
const motoFolder = join(tmpdir(), `millrace-moto-${MOTO_VERSION}`)

export const isMotoWanted = process.env['MILLRACE_MOTO'] === '1' || process.env['MILLRACE_LONG'] === '1'

export async function startMoto(t: TestContext): Promise<S3Server> {
  installMoto()
  const child = spawn(join(motoFolder, 'bin', 'moto_server'), ['-H', '127.0.0.1', '-p', '0'], {
    stdio: ['ignore', 'pipe', 'pipe']
  })
  atEnd(t, async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, 'close')
    child.kill()
    await closed
  })
  const endpoint = await new Promise<string>((resolve, reject) => {
    for (const input of [child.stdout, child.stderr]) {
      createInterface({ input }).on('line', line => {
        const match = /Running on (http:\/\/127\.0\.0\.1:\d+)/.exec(line)
        if (match?.[1] !== undefined) resolve(match[1])
      })
    }
    child.on('error', reject)
    child.on('close', code => reject(new Error(`moto_server ended with ${code}`)))
  })
  const made = await fetch(`${endpoint}/${bucketName}`, { method: 'PUT' })
  assert.equal(made.status, 200)
  return { endpoint, accessKeyId: 'key', secretAccessKey: 'secret' }
}

function installMoto(): void {
  const marker = join(motoFolder, 'installed')
  if (existsSync(marker)) return
  rmSync(motoFolder, { recursive: true, force: true })
  execFileSync('python3', ['-m', 'venv', motoFolder])
  execFileSync(join(motoFolder, 'bin', 'pip'), ['install', '--quiet', `moto[server]==${MOTO_VERSION}`])
  writeFileSync(marker, '')
}

/**
 * pass: to the server. A number: answered with that status, not passed. drop: the connection is cut, nothing passed.
 * stall: never answered. cut: the answer's body is cut after half. lose: done by the server, the answer is dropped.
 */
export type Fate = 'pass' | number | 'drop' | 'stall' | 'cut' | 'lose'

export interface Proxy {
  readonly endpoint: string
  /** `METHOD /path?query` of each request seen. */
  readonly requests: string[]
  /** Decides what becomes of a request; replace it at any time. */
  fate: (request: string) => Fate
}

/** A proxy in front of the server. The Host header stays the proxy's, so signatures stay right. */
export async function startProxy(t: TestContext, target: S3Server): Promise<Proxy> {
  const requests: string[] = []
  const server = createServer((incoming, outgoing) => {
    const line = `${incoming.method ?? ''} ${incoming.url ?? ''}`
    requests.push(line)
    pass(target.endpoint, incoming, outgoing, proxy.fate(line))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => closeServer(server))
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const proxy: Proxy = { endpoint: `http://127.0.0.1:${address.port}`, requests, fate: () => 'pass' }
  return proxy
}

function pass(endpoint: string, incoming: IncomingMessage, outgoing: ServerResponse, fate: Fate): void {
  if (fate === 'stall') return
  if (fate === 'drop') {
    incoming.destroy()
    return
  }
  if (typeof fate === 'number') {
    incoming.resume().on('end', () => outgoing.writeHead(fate).end())
    return
  }
  const url = new URL(incoming.url ?? '/', endpoint)
  const inner = request(url, { method: incoming.method, headers: incoming.headers, agent: false }, answer => {
    if (fate === 'lose') {
      answer.resume().on('end', () => outgoing.destroy())
      return
    }
    outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
    if (fate === 'cut')
      answer.once('data', (chunk: Buffer) =>
        outgoing.write(chunk.subarray(0, chunk.length >> 1), () => outgoing.destroy())
      )
    else answer.pipe(outgoing)
  })
  // Either side may go away in the middle: then the other one is let go too.
  inner.on('error', () => outgoing.destroy())
  outgoing.on('close', () => inner.destroy())
  incoming.pipe(inner)
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}
