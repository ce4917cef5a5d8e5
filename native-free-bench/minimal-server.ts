/**
 * What anybody would write in an afternoon, and what the scenario `json` holds the broker against: node:http, JSON.parse,
 * a file, and no answer before fdatasync. It takes the same requests and gives the same answers as the broker to
 * POST /topics and to POST /topics/:name/produce with a partition in every record. Main thread of a process of its own.
 *
 * Left out, in its favour: keys and routing by them, headers, encodings, sequences, access, quotas, metrics, readers,
 * and a topic list that survives a restart. Not left out: the checks without which an answer would be wrong (JSON,
 * topic, value, partition, size), offsets per partition, and limits on what a client can make it hold.
 * Must never: answer a produce with 200 before its records are on the disk.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AppendAnswer, MinimalLog, MinimalRecord } from './minimal-log.ts'

/** As the broker's default for a request. */
const BODY_BYTES_MAX = 10 * 1024 * 1024
/** As the broker's, so that one request of the load generator fits both. */
const PARTITIONS_MAX = 10_000
/** A run has one. */
const TOPICS_MAX = 100

/** Where each partition of a topic goes on. */
type Topics = Map<string, number[]>

/** A request that is refused: nothing of it was written. */
class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The server, not yet listening. The caller closes it and the log. */
export function createMinimalServer(log: MinimalLog): Server {
  const topics: Topics = new Map()
  return createServer((request, response) => {
    receiveBody(request, response, body => {
      try {
        route(request, { body, topics, log, response })
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        answer(response, error.status, { error: error.message })
      }
    })
  })
}

interface Work {
  readonly body: Buffer
  readonly topics: Topics
  readonly log: MinimalLog
  readonly response: ServerResponse
}

/** Calls back with the whole body, or answers 413 before it grows too large. A client that leaves is forgotten. */
function receiveBody(request: IncomingMessage, response: ServerResponse, whole: (body: Buffer) => void): void {
  const chunks: Buffer[] = []
  let length = 0
  request.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length <= BODY_BYTES_MAX) {
      chunks.push(chunk)
    } else if (!response.headersSent) {
      chunks.length = 0
      response.setHeader('connection', 'close')
      answer(response, 413, { error: `a body has ${BODY_BYTES_MAX} bytes at most` })
    }
  })
  request.once('end', () => {
    if (length <= BODY_BYTES_MAX) whole(Buffer.concat(chunks, length))
  })
}

const producePath = /^\/topics\/([\w.-]{1,200})\/produce$/

function route(request: IncomingMessage, work: Work): void {
  const { method, url = '' } = request
  const name = producePath.exec(url)?.[1]
  if (method === 'POST' && name !== undefined) produce(name, work)
  else if (method === 'POST' && url === '/topics') createTopic(work)
  else throw new Refusal(404, 'there are two routes: POST /topics and POST /topics/:name/produce')
}

function createTopic({ body, topics, response }: Work): void {
  const asked = parseJson(body)
  if (!isObject(asked) || !('name' in asked) || !('partitions' in asked))
    throw new Refusal(400, 'a topic has a name and partitions')
  const { name, partitions } = asked
  if (typeof name !== 'string' || !/^[\w.-]{1,200}$/.test(name)) throw new Refusal(400, 'name is no name of a topic')
  if (!isIndex(partitions, PARTITIONS_MAX + 1) || partitions === 0)
    throw new Refusal(400, `partitions is not a whole number from 1 to ${PARTITIONS_MAX}`)
  if (topics.has(name)) throw new Refusal(409, `there is a topic ${name}`)
  if (topics.size >= TOPICS_MAX) throw new Refusal(400, `there are ${TOPICS_MAX} topics at most`)
  topics.set(
    name,
    Array.from({ length: partitions }, () => 0)
  )
  answer(response, 201, { name, partitions })
}

const refusals: Readonly<Record<Exclude<AppendAnswer, 'taken'>, readonly [number, string]>> = {
  busy: [503, 'too much waits for the disk'],
  full: [507, 'the file is full'],
  broken: [500, 'a write or a sync failed before']
}

function produce(name: string, { body, topics, log, response }: Work): void {
  const nextOffsets = topics.get(name)
  if (nextOffsets === undefined) throw new Refusal(404, `there is no topic ${name}`)
  const records = recordsOf(parseJson(body), nextOffsets.length)
  const offsets: number[] = []
  for (const { partition } of records) {
    const offset = nextOffsets[partition] ?? 0
    offsets.push(offset)
    nextOffsets[partition] = offset + 1
  }
  const taken = log.append(records, offsets, error => {
    if (error !== null) {
      answer(response, 500, { error: 'the records may be on the disk or not' })
      return
    }
    answer(response, 200, { results: records.map(({ partition }, index) => ({ partition, offset: offsets[index] })) })
  })
  if (taken === 'taken') return
  for (const { partition } of records) nextOffsets[partition] = (nextOffsets[partition] ?? 0) - 1
  throw new Refusal(...refusals[taken])
}

function parseJson(body: Buffer): unknown {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return value
  } catch (error) {
    if (error instanceof SyntaxError) throw new Refusal(400, 'the body is not JSON')
    throw error
  }
}

/** The records of a body, all of them checked. */
function recordsOf(asked: unknown, partitions: number): readonly MinimalRecord[] {
  if (!isObject(asked) || !('records' in asked) || !Array.isArray(asked.records) || asked.records.length === 0)
    throw new Refusal(400, 'records is not a list with records')
  const records: readonly unknown[] = asked.records
  const isFit = (record: unknown): record is MinimalRecord => isRecord(record, partitions)
  if (records.every(isFit)) return records
  const index = records.findIndex(record => !isFit(record))
  throw new Refusal(400, `records[${index}] has no text as value, or no partition from 0 to ${partitions - 1}`)
}

function isRecord(value: unknown, partitions: number): value is MinimalRecord {
  if (!isObject(value) || !('value' in value) || !('partition' in value)) return false
  return typeof value.value === 'string' && isIndex(value.partition, partitions)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isIndex(value: unknown, count: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < count
}

function answer(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}
