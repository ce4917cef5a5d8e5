/**
 * What the specification gives a client for the bytes that it sent, decoded in the plainest way and by no code of the
 * product: the reply to its hello, one outcome per frame, and how the connection ends.
 */
import { crc32, gunzipSync } from 'node:zlib'

/** closed: without a frame for what was wrong. waits: for more bytes, or for nothing. */
export type End = 'closed' | 'waits'

/**
 * How a frame is answered; `text` how an error frame begins, or another way in which it may; `payload` what the answer
 * says, where it can be known.
 */
export interface Outcome {
  readonly id: number
  readonly kind: 'produced' | 'consumed' | 'pong' | 'error'
  readonly text: string
  readonly otherText?: string
  readonly payload: string
}

export interface Expectation {
  /** Status of the reply; null: no reply is due yet. */
  readonly helloStatus: number | null
  /** Features of the reply. */
  readonly features: number
  readonly outcomes: readonly Outcome[]
  readonly end: End
  /** Over all records that are written, in their order. */
  readonly recordsCrc: number
}

export interface OracleWorld {
  readonly isGuarded: boolean
  /** Features that the listener has. */
  readonly features: number
  readonly frameLengthMax: number
  readonly fetchRecordsMax: number
  readonly fetchBytesMax: number
  /** Partitions by topic. */
  readonly topics: Readonly<Record<string, number>>
}

/** What stands for the partition of a record that names none. */
export const OPEN_PARTITION = 0xffff

const strictly = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** Text, or null if it is not UTF-8. */
function textOf(bytes: Buffer): string | null {
  try {
    return strictly.decode(bytes)
  } catch (error) {
    if (error instanceof TypeError) return null
    throw error
  }
}

/** Reads on and on; after its end it is `torn`, and answers zeros. */
class Reader {
  isTorn = false
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  take(count: number): Buffer {
    if (count > this.#bytes.length - this.#at) {
      this.isTorn = true
      return Buffer.alloc(8)
    }
    this.#at += count
    return this.#bytes.subarray(this.#at - count, this.#at)
  }

  u16 = (): number => this.take(2).readUInt16BE()
  u32 = (): number => this.take(4).readUInt32BE()
  i32 = (): number => this.take(4).readInt32BE()
}

const malformed = { kind: 'error', text: 'decode: ', payload: '' } as const
const answer = (kind: 'produced' | 'consumed' | 'pong', payload: string): Omit<Outcome, 'id'> => ({
  kind,
  text: '',
  payload
})
const refusal = (text: string): Omit<Outcome, 'id'> => ({ kind: 'error', text, payload: '' })

/** The bytes of one session, from its first to the last that was sent. */
export class Oracle {
  readonly #world: OracleWorld
  #recordsCrc = 0

  constructor(world: OracleWorld) {
    this.#world = world
  }

  judge(bytes: Buffer): Expectation {
    this.#recordsCrc = 0
    const status = this.#helloStatus(bytes)
    if (status !== 0)
      return {
        helloStatus: status,
        features: 0,
        outcomes: [],
        end: status === null ? 'waits' : 'closed',
        recordsCrc: 0
      }
    const features = (bytes.readUInt32BE(4) & this.#world.features) >>> 0
    const { outcomes, end } = this.#judgeFrames(bytes, features)
    return { helloStatus: 0, features, outcomes, end, recordsCrc: this.#recordsCrc }
  }

  #judgeFrames(bytes: Buffer, features: number): Pick<Expectation, 'outcomes' | 'end'> {
    const outcomes: Outcome[] = []
    let at = 12 + bytes.readUInt32BE(8)
    for (;;) {
      const left = bytes.length - at
      if (left < 4) return { outcomes, end: 'waits' }
      const length = bytes.readUInt32BE(at)
      if (length < 5 || length > this.#world.frameLengthMax) return { outcomes, end: 'closed' }
      if (left < 9) return { outcomes, end: 'waits' }
      const opcode = bytes[at + 8] as number
      if (![1, 2, 3, 0x81, 0x82, 0x83, 0xff].includes(opcode)) return { outcomes, end: 'closed' }
      if (left < 4 + length) return { outcomes, end: 'waits' }
      const payload = bytes.subarray(at + 9, at + 4 + length)
      outcomes.push({ id: bytes.readUInt32BE(at + 4), ...this.#outcomeOf(opcode, payload, features) })
      at += 4 + length
    }
  }

  #helloStatus(bytes: Buffer): number | null {
    if (bytes.length < 12) return null
    if (bytes.toString('latin1', 0, 4) !== 'ES01') return 1
    const tokenBytes = bytes.readUInt32BE(8)
    if (tokenBytes > 1024) return 2
    if (bytes.length < 12 + tokenBytes) return null
    if (!this.#world.isGuarded) return 0
    const token = textOf(bytes.subarray(12, 12 + tokenBytes))
    if (token === null || token === '') return 3
    return token === 'good' ? 0 : 2
  }

  #outcomeOf(opcode: number, sent: Buffer, features: number): Omit<Outcome, 'id'> {
    if (opcode === 3) return answer('pong', '')
    if (opcode > 3) return refusal('bad request: ')
    const payload = features === 0 ? sent : unpacked(sent, this.#world.frameLengthMax)
    if (payload === null) {
      // Of a stream that is wrong somewhere the topic may have come before that.
      return this.#world.isGuarded ? { ...malformed, otherText: 'forbidden: ' } : malformed
    }
    const reader = new Reader(payload)
    const topic = textOf(reader.take(reader.u16()))
    // A key is asked for before anything behind the topic is looked at.
    if (this.#world.isGuarded && !reader.isTorn && topic !== null && topic !== 't') return refusal('forbidden: ')
    const outcome = opcode === 1 ? this.#produce(reader, topic) : this.#consume(reader, topic)
    return reader.isTorn ? malformed : outcome
  }

  #consume(reader: Reader, topic: string | null): Omit<Outcome, 'id'> {
    const partition = reader.u32()
    const offset = reader.take(8)
    const [records, bytes] = [reader.u32(), reader.u32()]
    if (topic === null) return malformed
    const count = this.#world.topics[topic]
    if (count === undefined) return refusal('not found: ')
    if (partition >= count) return refusal('bad request: ')
    const clamped = Buffer.alloc(8)
    clamped.writeUInt32BE(Math.min(Math.max(1, records), this.#world.fetchRecordsMax), 0)
    clamped.writeUInt32BE(Math.min(Math.max(1, bytes), this.#world.fetchBytesMax), 4)
    return answer('consumed', offset.toString('hex') + clamped.toString('hex'))
  }

  #produce(reader: Reader, topic: string | null): Omit<Outcome, 'id'> {
    const producerBytes = reader.i32()
    const producerId = producerBytes < 0 ? '' : textOf(reader.take(producerBytes))
    const records: Buffer[] = []
    let largestPartition = -1
    for (let count = reader.u32(); count > 0 && !reader.isTorn; count--) {
      const keyBytes = reader.i32()
      const key = reader.take(Math.max(0, keyBytes))
      const valueBytes = reader.u32()
      const value = reader.take(valueBytes)
      const partition = reader.i32()
      largestPartition = Math.max(largestPartition, partition)
      records.push(ringBytesOf(keyBytes < 0 ? null : key, value, partition, reader.take(8)))
    }
    if (reader.isTorn || topic === null || producerId === null) return malformed
    const count = this.#world.topics[topic]
    if (count === undefined) return refusal('not found: ')
    if (largestPartition >= count) return refusal('bad request: ')
    for (const record of records) this.#recordsCrc = crc32(record, this.#recordsCrc)
    return answer('produced', String(records.length))
  }
}

/** What a gzip stream holds; null: it is none, or holds more than a frame may have. */
function unpacked(stream: Buffer, frameLengthMax: number): Buffer | null {
  try {
    return gunzipSync(stream, { maxOutputLength: frameLengthMax - 5 })
  } catch (error) {
    if (error instanceof Error && 'code' in error) return null
    throw error
  }
}

/** A record as the broker is to see it. */
function ringBytesOf(key: Buffer | null, value: Buffer, partition: number, sequence: Buffer): Buffer {
  const fixed = Buffer.alloc(12)
  fixed.writeInt32BE(key === null ? -1 : key.length, 0)
  fixed.writeUInt32BE(value.length, 4)
  fixed.writeUInt32BE(partition < 0 ? OPEN_PARTITION : partition, 8)
  return Buffer.concat([
    fixed.subarray(0, 4),
    key ?? Buffer.alloc(0),
    fixed.subarray(4, 8),
    value,
    fixed.subarray(8),
    sequence
  ])
}
