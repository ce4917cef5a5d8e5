/**
 * A small broker in the test's process, for the load generator's own tests: ES01 on node:net and the three HTTP routes
 * that a load uses, over logs in memory. It speaks the bytes of the specification and has knobs for bad behaviour.
 */
import { createServer as createHttpServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { fnv1a64Modulo } from '../../../src/base/hash.ts'
import type { Address } from '../../../native-free-bench/drivers/driver.ts'

export interface FakeRecord {
  readonly key: string | null
  readonly value: string
}

export interface FakeOptions {
  /** Answers of one read are sent last request first, in pieces of this many bytes; 0: in order, whole. */
  readonly reversedInPiecesOf?: number
  /** The connection is cut after so many requests. */
  readonly cutAfterRequests?: number
  /** Every request is refused with this message. */
  readonly refuseWith?: string
  /** Added to the request id of every answer. */
  readonly wrongIdBy?: number
  /** Status of the hello's answer. */
  readonly helloStatus?: number
  /** The most records that a consume gives. */
  readonly readRecordsMax?: number
  /** Logs that were there before. */
  readonly logs?: Map<string, FakeRecord[]>
  /** Partitions over which records with a key and no partition are spread; absent: all go to partition 0. */
  readonly partitions?: number
}

export interface FakeBroker {
  readonly es01: Address
  readonly http: Address
  /** Records by `topic/partition`. */
  readonly logs: Map<string, FakeRecord[]>
  /** Ids of the ES01 requests in order of arrival. */
  readonly requestIds: number[]
  readonly topics: string[]
  /** Cuts all connections and stops listening. */
  stop(): Promise<void>
}

/** Starts it on free ports of 127.0.0.1; it ends with the test. */
export async function startFakeBroker(t: TestContext, options: FakeOptions = {}): Promise<FakeBroker> {
  const logs = options.logs ?? new Map<string, FakeRecord[]>()
  const requestIds: number[] = []
  const topics: string[] = []
  const sockets = new Set<Socket>()
  const binary = createServer(socket => serveEs01(socket, { options, logs, requestIds }))
  const web = createHttpServer((request, response) => serveHttp(request, response, { logs, topics, options }))
  for (const server of [binary, web]) {
    server.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.on('error', () => sockets.delete(socket))
      socket.on('close', () => sockets.delete(socket))
    })
  }
  const [es01, http] = [await listen(binary), await listen(web)]
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    await Promise.all([binary, web].map(server => new Promise(resolve => server.close(resolve))))
  }
  t.after(stop)
  return { es01, http, logs, requestIds, topics, stop }
}

function listen(server: Server): Promise<Address> {
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      resolve({ host: '127.0.0.1', port })
    })
  })
}

interface Es01State {
  readonly options: FakeOptions
  readonly logs: Map<string, FakeRecord[]>
  readonly requestIds: number[]
}

function serveEs01(socket: Socket, state: Es01State): void {
  let bytes: Buffer = Buffer.alloc(0)
  let greeted = false
  let served = 0
  socket.setNoDelay(true)
  socket.on('data', chunk => {
    bytes = Buffer.concat([bytes, chunk])
    if (!greeted) {
      if (bytes.length < 12) return
      greeted = true
      bytes = bytes.subarray(12)
      const reply = Buffer.alloc(13)
      reply.write('ES01')
      reply[4] = state.options.helloStatus ?? 0
      socket.write(reply)
    }
    const answers: Buffer[] = []
    while (bytes.length >= 4 && bytes.length >= 4 + bytes.readUInt32BE(0)) {
      const frame = bytes.subarray(4, 4 + bytes.readUInt32BE(0))
      bytes = bytes.subarray(4 + frame.length)
      if (served++ === state.options.cutAfterRequests) {
        socket.destroy()
        return
      }
      answers.push(answerFrame(frame, state))
    }
    sendAnswers(socket, answers, state.options.reversedInPiecesOf ?? 0)
  })
}

function sendAnswers(socket: Socket, answers: Buffer[], pieceBytes: number): void {
  const all = Buffer.concat(pieceBytes > 0 ? answers.reverse() : answers)
  const step = pieceBytes > 0 ? pieceBytes : Math.max(1, all.length)
  const sendFrom = (at: number): void => {
    if (at >= all.length || socket.destroyed) return
    // The next piece waits for this one to be handed over, so that they arrive as separate reads.
    socket.write(all.subarray(at, at + step), () => setImmediate(sendFrom, at + step))
  }
  sendFrom(0)
}

function answerFrame(frame: Buffer, { options, logs, requestIds }: Es01State): Buffer {
  const id = frame.readUInt32BE(0)
  requestIds.push(id)
  const answerId = (id + (options.wrongIdBy ?? 0)) >>> 0
  if (options.refuseWith !== undefined) return toFrame(answerId, 0xff, Buffer.from(options.refuseWith))
  const topicEnd = 7 + frame.readUInt16BE(5)
  const topic = frame.toString('utf8', 7, topicEnd)
  return frame[4] === 0x01
    ? toFrame(answerId, 0x81, produce(frame, topicEnd, topic, { logs, options }))
    : toFrame(answerId, 0x82, consume(frame, topicEnd, topic, { logs, options }))
}

function toFrame(id: number, opcode: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUInt32BE(5 + payload.length, 0)
  head.writeUInt32BE(id, 4)
  head[8] = opcode
  return Buffer.concat([head, payload])
}

function produce(
  frame: Buffer,
  topicEnd: number,
  topic: string,
  { logs, options }: { logs: Map<string, FakeRecord[]>; options: FakeOptions }
): Buffer {
  const producerBytes = Math.max(0, frame.readInt32BE(topicEnd))
  let at = topicEnd + 4 + producerBytes
  const count = frame.readUInt32BE(at)
  at += 4
  const results = Buffer.alloc(4 + 13 * count)
  results.writeUInt32BE(count, 0)
  for (let i = 0; i < count; i++) {
    const keyBytes = frame.readInt32BE(at)
    const keyEnd = at + 4 + Math.max(0, keyBytes)
    const key = keyBytes < 0 ? null : frame.toString('utf8', at + 4, keyEnd)
    const valueEnd = keyEnd + 4 + frame.readUInt32BE(keyEnd)
    const value = frame.toString('utf8', keyEnd + 4, valueEnd)
    const named = frame.readInt32BE(valueEnd)
    const partition = named < 0 ? routeOf(key, options) : named
    at = valueEnd + 12
    const offset = append(logs, topic, partition, { key, value })
    results.writeUInt32BE(partition, 4 + 13 * i)
    results.writeUInt32BE(offset, 4 + 13 * i + 8)
  }
  return results
}

function routeOf(key: string | null, options: FakeOptions): number {
  const bytes = Buffer.from(key ?? '')
  return fnv1a64Modulo(bytes, 0, bytes.length, options.partitions ?? 1)
}

function append(logs: Map<string, FakeRecord[]>, topic: string, partition: number, record: FakeRecord): number {
  const log = logs.get(`${topic}/${partition}`) ?? []
  logs.set(`${topic}/${partition}`, log)
  return log.push(record) - 1
}

function consume(
  frame: Buffer,
  topicEnd: number,
  topic: string,
  { logs, options }: { logs: Map<string, FakeRecord[]>; options: FakeOptions }
): Buffer {
  const partition = frame.readUInt32BE(topicEnd)
  const offset = frame.readUInt32BE(topicEnd + 8)
  const log = logs.get(`${topic}/${partition}`) ?? []
  const count = Math.min(options.readRecordsMax ?? 10_000, frame.readUInt32BE(topicEnd + 12))
  const records = log.slice(offset, offset + count)
  const head = Buffer.alloc(20)
  head.writeUInt32BE(offset + records.length, 4)
  head.writeUInt32BE(log.length, 12)
  head.writeUInt32BE(records.length, 16)
  const bodies = records.map((record, i) => {
    const key = Buffer.from(record.key ?? '')
    const value = Buffer.from(record.value)
    const body = Buffer.alloc(28)
    body.writeUInt32BE(partition, 0)
    body.writeUInt32BE(offset + i, 8)
    body.writeInt32BE(record.key === null ? -1 : key.length, 20)
    body.writeUInt32BE(value.length, 24)
    return Buffer.concat([body.subarray(0, 24), key, body.subarray(24), value])
  })
  return Buffer.concat([head, ...bodies])
}

interface HttpState {
  readonly logs: Map<string, FakeRecord[]>
  readonly topics: string[]
  readonly options: FakeOptions
}

function serveHttp(request: IncomingMessage, response: ServerResponse, state: HttpState): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    if (state.options.refuseWith !== undefined) {
      response.statusCode = 400
      response.end(JSON.stringify({ error: state.options.refuseWith }))
      return
    }
    const url = new URL(request.url ?? '/', 'http://fake')
    response.end(JSON.stringify(answerHttp(url, Buffer.concat(chunks).toString(), state)))
  })
}

function answerHttp(url: URL, body: string, { logs, topics, options }: HttpState): object {
  const [, , topic = '', verb] = url.pathname.split('/')
  if (verb === undefined) {
    const { name } = JSON.parse(body) as { name: string }
    topics.push(name)
    return { name, partitions: 1 }
  }
  if (verb === 'produce') {
    const { records } = JSON.parse(body) as { records: { key?: string; value: string; partition?: number }[] }
    return {
      results: records.map(({ key = null, value, partition = routeOf(key, options) }) => ({
        partition,
        offset: append(logs, topic, partition, { key, value })
      }))
    }
  }
  const partition = Number(url.searchParams.get('partition'))
  const offset = Number(url.searchParams.get('offset'))
  const log = logs.get(`${topic}/${partition}`) ?? []
  const records = log.slice(offset, offset + (options.readRecordsMax ?? 10_000))
  return {
    records: records.map((record, i) => ({ partition, offset: offset + i, timestamp_ms: 0, ...record })),
    next_offset: offset + records.length,
    high_watermark: log.length
  }
}
