/** A connection of a load to a broker, by either protocol, through the client libraries. One event loop. */
import { BinaryClient, type ClientOptions } from '../binary/index.ts'
import { connectEs01 } from '../es01/client.ts'
import type { HttpClient } from '../http/http-client.ts'

/** A record of a load. Without a key it names its partition. */
export interface LoadRecord {
  readonly key?: string
  readonly value: string
  readonly partition?: number
}

export interface ReadRequest {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly maxRecords: number
}

export interface ReadResult {
  readonly records: number
  /** Keys and values. */
  readonly bytes: number
  readonly nextOffset: number
}

/** Several requests may be under way at once. Every promise rejects with an Error whose message is for people. */
export interface LoadPeer {
  produce(topic: string, records: readonly LoadRecord[]): Promise<void>
  read(request: ReadRequest): Promise<ReadResult>
  close(): void
}

/** Most bytes of one answer over ES01. */
const READ_BYTES_MAX = 1024 * 1024

/** Looks whether a broker takes connections there. Rejects with Es01Error, at once: the client would try for a while. */
export async function checkEs01(options: ClientOptions): Promise<void> {
  const connection = await connectEs01(options)
  await connection.close()
}

/** A connection over ES01 of its own, made when it is first used, and made again when it is lost. */
export function es01Peer(options: ClientOptions): LoadPeer {
  const client = new BinaryClient(options)
  return {
    async produce(topic, records) {
      await client.produce(topic, records)
    },
    async read(request) {
      const { records, nextOffset } = await client.consume({ ...request, maxBytes: READ_BYTES_MAX })
      const bytes = records.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + value.length, 0)
      return { records: records.length, bytes, nextOffset }
    },
    close: () => client.destroy()
  }
}

/** Over HTTP the client opens as many connections as it has requests under way. */
export function httpPeer(client: HttpClient): LoadPeer {
  return {
    async produce(topic, records) {
      await client.produce(topic, records)
    },
    async read({ topic, ...query }) {
      const { body } = await client.consume(topic, query)
      const bytes = body.records.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + value.length, 0)
      return { records: body.records.length, bytes, nextOffset: Number(body.next_offset) }
    },
    close: () => undefined
  }
}
