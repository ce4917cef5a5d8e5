/**
 * What a load sees of a protocol: a connection with request slots. One request per slot at a time; the bytes of a
 * request are prepared once per slot and sent again with only the changing fields written anew.
 * Everything runs on the generator's main thread; a driver makes no promise, closure or object per request.
 */

/** Host and port of a listener. */
export interface Address {
  readonly host: string
  readonly port: number
}

/** Splits `127.0.0.1:9001` or `[::1]:9001`. @throws Error naming the text. */
export function parseAddress(text: string): Address {
  const match = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(text.replace(/^https?:\/\//, '').replace(/\/$/, ''))
  const port = Number(match?.[2])
  if (match === null || port < 1 || port > 65_535) throw new Error(`'${text}' is not an address: write host:port`)
  return { host: match[1] ?? '', port }
}

/** What the last answer said. Owned by the connection and written over by the next answer. */
export interface Answer {
  /** Records written or read. */
  records: number
  /** Of a consume: where to read next, and the end of what is readable. */
  nextOffset: number
  highWatermark: number
}

/** Hears what became of requests. Borrowed objects only; called from inside a socket read. */
export interface DriverListener {
  /** The request of `slot` was done; `connection.answer` says what came. The slot is free. */
  onAnswer(connection: DriverConnection, slot: number): void
  /** The broker refused the request of `slot`, with its message. The slot is free. */
  onRefused(connection: DriverConnection, slot: number, message: string): void
  /** The connection ended though nobody closed it, or spoke nonsense. Its requests get no answer. */
  onLost(connection: DriverConnection, error: Error): void
}

/** A produce request as bytes, and where in it a partition may be patched. */
export interface ProduceTemplate {
  /** Owned by the slot it is given to. */
  readonly bytes: Buffer
  /** Positions of the partition fields; empty when the records are routed by key. */
  readonly partitionPositions: Uint32Array
  readonly records: number
  /** Key and value bytes of all records. */
  readonly payloadBytes: number
}

/** How a consume asks. */
export interface ConsumeTemplate {
  readonly topic: string
  readonly maxRecords: number
  readonly maxBytes: number
}

export interface DriverConnection {
  /** Index that the load gave it. */
  readonly index: number
  /** Requests it may have in flight. */
  readonly slotCount: number
  readonly answer: Answer
  /** Gives a slot its produce request. */
  prepareProduce(slot: number, template: ProduceTemplate): void
  /** Gives a slot its consume request. */
  prepareConsume(slot: number, template: ConsumeTemplate): void
  /** Sends the slot's produce, every record to `partition` where the template has places for it. */
  produce(slot: number, partition: number): void
  /** Sends the slot's consume. */
  consume(slot: number, partition: number, offset: number): void
  /** Ends the connection; nothing is heard from it afterwards. */
  close(): void
}

/** How connections of one protocol are made. */
export interface ConnectOptions {
  readonly address: Address
  readonly index: number
  readonly slotCount: number
  readonly listener: DriverListener
}

/** Hears once whether a connection came up. */
export type Opened = (error: Error | null) => void

/** @param make starts a connection that calls back once. @returns it when it is up. Rejects with what it was told. */
export function whenOpen(make: (opened: Opened) => DriverConnection): Promise<DriverConnection> {
  return new Promise((resolve, reject) => {
    const connection = make(error => {
      if (error === null) resolve(connection)
      else reject(error)
    })
  })
}

/** Bytes of the static buffer that a connection reads into: one large read instead of many events. */
export const READ_BUFFER_BYTES = 256 * 1024

/** A connection that is not up by then will not come. */
export const CONNECT_TIMEOUT_MS = 10_000
