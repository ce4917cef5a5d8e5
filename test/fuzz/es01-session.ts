/** Plays sessions against connections of the gateway, several at once and in pieces, and says what did not come as it is due. */
import { Es01Connection } from '../../src/gateway/es01/connection.ts'
import type { Dice } from '../support/log-random.ts'
import { gunzipSync } from 'node:zlib'
import { Oracle, type Expectation, type Outcome } from './es01-oracle.ts'
import { asSocket, FakeSocket, type FuzzHost } from './es01-receiver.ts'

const kinds: Readonly<Record<number, Outcome['kind']>> = {
  0x81: 'produced',
  0x82: 'consumed',
  0x83: 'pong',
  0xff: 'error'
}
/** Long enough for the prefix of any error text. */
const PREFIX = 16

/** One client: what it sends, and how it does that. */
export class FuzzSession {
  readonly socket = new FakeSocket()
  readonly connection: Es01Connection
  /** What is due for what it sends. */
  readonly expected: Expectation
  readonly #host: FuzzHost
  readonly #dice: Dice
  readonly #bytes: Buffer
  readonly #endsAfter: boolean
  /** Reads straight into the memory of the connection, as a socket of the kernel does. */
  readonly #isDirect: boolean
  readonly #chunkBytes: number
  #sent = 0
  #hasEnded = false
  #tail: Uint8Array

  constructor(host: FuzzHost, dice: Dice, bytes: Buffer) {
    this.#host = host
    this.expected = new Oracle(host.world).judge(bytes)
    this.#dice = dice
    this.#bytes = bytes
    this.#endsAfter = dice.chance(0.3)
    this.#isDirect = dice.chance(0.7)
    // Byte by byte only what is short: of a long one most reads would be alike.
    this.#chunkBytes = dice.pick(bytes.length > 4_000 ? [700, 9_000, 70_000, 70_000] : [1, 7, 60, 4_000])
    this.connection = new Es01Connection(host, asSocket(this.socket), '127.0.0.1', host.memory)
    this.#tail = this.connection.nextTail()
  }

  get sentBytes(): number {
    return this.#sent
  }

  get writtenBytes(): number {
    return this.socket.written.reduce((sum, { length }) => sum + length, 0)
  }

  /** Speaks gzip, and lacks answers or an end that are due to it. */
  get mayWaitForPool(): boolean {
    const { expected, socket } = this
    if (expected.features === 0) return false
    if (expected.end === 'closed' || this.#hasEnded) return !socket.isGone
    return countFrames(Buffer.concat(socket.written)) < expected.outcomes.length
  }

  /** Does one thing that a client, or its system, may do now. @returns false if there is none. */
  step(): boolean {
    const { socket } = this
    if (socket.isGone) return false
    const isCut = socket.isDestroyed || (socket.hasEnded && !socket.hasUnfinished)
    if (isCut) {
      if (!socket.isDestroyed && !this.#hasEnded) socket.emit('end')
      socket.leave()
      return true
    }
    if (socket.hasUnfinished && this.#dice.chance(0.4)) {
      socket.finishWrite()
      this.#host.flush()
      return true
    }
    if (!socket.isPaused && this.#sent < this.#bytes.length) return this.#send()
    if (!socket.isPaused && this.#endsAfter && !this.#hasEnded) {
      this.#hasEnded = true
      socket.emit('end')
      return true
    }
    if (!socket.hasUnfinished) return false
    socket.finishWrite()
    this.#host.flush()
    return true
  }

  /** The client goes without a word. */
  vanish(): void {
    this.socket.destroy()
    this.socket.leave()
  }

  #send(): true {
    const wanted = 1 + this.#dice.below(this.#chunkBytes)
    const room = this.#isDirect ? this.#tail.length : 65_536
    const chunk = this.#bytes.subarray(this.#sent, this.#sent + Math.min(wanted, room))
    this.#sent += chunk.length
    if (this.#isDirect) {
      this.#tail.set(chunk)
      this.connection.landed(chunk.length)
      if (!this.socket.isDestroyed) this.#tail = this.connection.nextTail()
    } else {
      // Lent until return, as those of a stream are: what is kept of it must have been copied.
      const lent = Buffer.from(chunk)
      this.socket.emit('data', lent)
      lent.fill(0xee)
    }
    return true
  }

  /** What is wrong with what came back, or null. */
  complaint(): string | null {
    const { expected } = this
    const found = this.#read(Buffer.concat(this.socket.written))
    if (typeof found === 'string') return found
    const isClosed = this.socket.isGone || this.socket.hasEnded
    const isEndDue = expected.end === 'closed' || this.#hasEnded
    if (isClosed !== isEndDue) return isClosed ? 'it was closed' : 'it was left open'
    const [gotHello, dueHello] = [found, expected].map(({ helloStatus, features }) => `${helloStatus}, ${features}`)
    if (gotHello !== dueHello) return `the hello got status and features ${gotHello}, due are ${dueHello}`
    const got = found.outcomes.map(lineOf).sort()
    const due = expected.outcomes.map(outcome => dueLineOf(outcome, got)).sort()
    const at = due.findIndex((line, i) => line !== got[i])
    if (at >= 0) return `answered '${got[at]}' where '${due[at]}' is due: ${got.length} of ${due.length} answers`
    if (got.length > due.length) return `answered '${got[due.length]}', of nothing that was asked`
    const crc = this.#host.broker.crcOf(this.connection.who)
    return crc === expected.recordsCrc ? null : 'the records are other ones, or in another order'
  }

  #read(bytes: Buffer): Pick<Expectation, 'helloStatus' | 'features' | 'outcomes'> | string {
    if (bytes.length === 0) return { helloStatus: null, features: 0, outcomes: [] }
    if (bytes.length < 13 || bytes.toString('latin1', 0, 4) !== 'ES01') return 'the reply to the hello is none'
    const features = bytes.readUInt32BE(5)
    const outcomes: Outcome[] = []
    for (let at = 13 + bytes.readUInt32BE(9); at < bytes.length;) {
      if (bytes.length - at < 9) return 'an answer ends in its head'
      const length = bytes.readUInt32BE(at)
      if (length < 5 || at + 4 + length > bytes.length) return `an answer says it has ${length} bytes`
      const opcode = bytes[at + 8] as number
      const kind = kinds[opcode]
      if (kind === undefined) return `an answer has opcode ${opcode}`
      const sent = bytes.subarray(at + 9, at + 4 + length)
      outcomes.push({ id: bytes.readUInt32BE(at + 4), ...said(kind, features === 0 ? sent : gunzipSync(sent)) })
      at += 4 + length
    }
    return { helloStatus: bytes[4] as number, features, outcomes }
  }
}

/** Whole frames behind the reply to a hello. */
function countFrames(bytes: Buffer): number {
  let count = 0
  if (bytes.length < 13) return count
  for (let at = 13 + bytes.readUInt32BE(9); at + 9 <= bytes.length; at += 4 + bytes.readUInt32BE(at)) count++
  return count
}

/** A payload that came back, as the oracle words it. */
function said(kind: Outcome['kind'], payload: Buffer): Omit<Outcome, 'id'> {
  if (kind === 'error') {
    const text = payload.toString('utf8', 0, PREFIX)
    return { kind, text: text.slice(0, text.indexOf(': ') + 2), payload: '' }
  }
  if (kind === 'consumed') return { kind, text: '', payload: payload.toString('hex', 0, 16) }
  if (kind === 'pong') return { kind, text: '', payload: payload.toString('hex') }
  const count = payload.readUInt32BE(0)
  return { kind, text: '', payload: payload.length === 4 + 13 * count ? String(count) : 'torn' }
}

/** What is due, in the one of its two ways that came. */
function dueLineOf(outcome: Outcome, got: readonly string[]): string {
  const { otherText } = outcome
  const other = otherText === undefined ? null : lineOf({ ...outcome, text: otherText })
  return other !== null && got.includes(other) ? other : lineOf(outcome)
}

function lineOf({ id, kind, text, payload }: Outcome): string {
  return `${id} ${kind} ${text}${payload}`
}

/** Plays them until nobody has anything to do, nor the thread pool for them. */
export async function play(host: FuzzHost, dice: Dice, sessions: readonly FuzzSession[]): Promise<void> {
  playAtOnce(host, dice, sessions)
  const endMs = performance.now() + host.poolMs
  while (sessions.some(session => session.mayWaitForPool) && performance.now() < endMs) {
    await new Promise(resolve => setImmediate(resolve))
    host.flush()
    playAtOnce(host, dice, sessions)
  }
}

/** One step of a client or of the broker after the other, as the dice fall. */
function playAtOnce(host: FuzzHost, dice: Dice, sessions: readonly FuzzSession[]): void {
  const parties = sessions.length + 1
  for (let idle = 0, at = 0; idle < parties;) {
    at = idle === 0 ? dice.below(parties) : (at + 1) % parties
    const session = sessions[at]
    idle = (session === undefined ? stepBroker(host) : session.step()) ? 0 : idle + 1
  }
}

/** @returns false if the broker has nothing to do. */
function stepBroker(host: FuzzHost): boolean {
  const { broker } = host
  if (broker.dueCount > 0) {
    broker.deliverOne()
    host.flush()
  } else if (host.hasWoken) host.resumeWoken()
  else if (broker.isWaitedFor) broker.makeRoom()
  else return false
  return true
}
