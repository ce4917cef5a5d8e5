/**
 * The product's own receiving of ES01, without sockets and without time: connections of the gateway over sockets that a
 * test plays, a broker that answers when the dice say so, and pools that are counted. Everything happens within a call.
 */
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { crc32 } from 'node:zlib'
import { ByteBudget } from '../../src/base/byte-budget.ts'
import type { Clock } from '../../src/base/clock.ts'
import { latencyHistogram, LatencyMeter } from '../../src/gateway/shared/latency-meter.ts'
import { silentLogger, type Logger } from '../../src/base/logger.ts'
import { BufferPool } from '../../src/gateway/shared/buffer-pool.ts'
import type { ConnectionHost, HostedConnection } from '../../src/gateway/es01/connection-host.ts'
import { Doorkeeper, type Admission } from '../../src/gateway/es01/doorkeeper.ts'
import type { InflaterHost } from '../../src/gateway/es01/inflater.ts'
import { createProbe } from '../../src/gateway/es01/probe.ts'
import { FrameMemory } from '../../src/gateway/shared/frame-memory.ts'
import { createReceiveShared } from '../../src/gateway/shared/receive-buffer.ts'
import { TurnRoom } from '../../src/gateway/shared/turn-room.ts'
import { RequestReader } from '../../src/gateway/es01/requests.ts'
import { timeoutsOf } from '../../src/gateway/es01/settings.ts'
import { BrokerError } from '../../src/model/errors.ts'
import type { Principal } from '../../src/model/principal.ts'
import type { ProduceCaller, ReadCaller, ReadRequest, RecordSource, SubmitOutcome } from '../../src/model/requests.ts'
import { RESULT_BYTES, submitOutcomes } from '../../src/model/requests.ts'
import { NameReader } from '../../src/wire/es01/names.ts'
import { FakeBroker } from '../unit/gateway/es01/fake-broker.ts'
import { defaultSettings } from '../unit/gateway/es01/fixture.ts'
import type { Dice } from '../support/log-random.ts'
import { OPEN_PARTITION, type OracleWorld } from './es01-oracle.ts'

const MIB = 1024 * 1024
/** No time passes: what a deadline does is the matter of other tests. */
const stillClock: Clock = { nowMs: () => 0, monotonicMs: () => 0 }

/** What a buffer is filled with when it comes back, so that who reads it afterwards is found out. */
const GIVEN_BACK = 0xdd
const FILLED_BYTES = 8 * 1024

/** A pool that knows what is out, and what it made. */
export class CountingPool extends BufferPool {
  outstandingBytes = 0
  /** Bytes of buffers that did not come from the idle ones. */
  madeBytes = 0
  #peakBytes = 0

  /** The most that was out at once since this was asked last. */
  takePeak(): number {
    const peak = this.#peakBytes
    this.#peakBytes = this.outstandingBytes
    return peak
  }

  override take(bytes: number): Buffer {
    const idle = this.idleBytes
    const buffer = super.take(bytes)
    this.outstandingBytes += buffer.length
    this.#peakBytes = Math.max(this.#peakBytes, this.outstandingBytes)
    if (this.idleBytes === idle) this.madeBytes += buffer.length
    return buffer
  }

  override give(buffer: Buffer): void {
    this.outstandingBytes -= buffer.length
    buffer.fill(GIVEN_BACK, 0, FILLED_BYTES)
    super.give(buffer)
  }
}

/** Answers when `deliver` is called, in any order; sees records as a shard would. */
export class FuzzBroker extends FakeBroker {
  readonly #dice: Dice
  readonly #topics: Readonly<Record<string, number>>
  readonly #due: (() => void)[] = []
  readonly #crcs = new Map<Principal, number>()
  readonly #partitions = new Uint32Array(1024)
  #ring = Buffer.alloc(MIB)
  #isFull = false
  #roomWanted: (() => void)[] = []

  constructor(dice: Dice, topics: Readonly<Record<string, number>>) {
    super()
    this.#dice = dice
    this.#topics = topics
  }

  get dueCount(): number {
    return this.#due.length
  }

  get isWaitedFor(): boolean {
    return this.#roomWanted.length > 0
  }

  /** Over the records of that caller so far. */
  crcOf(who: Principal): number {
    return this.#crcs.get(who) ?? 0
  }

  override whenRoom(callback: () => void): void {
    this.#roomWanted.push(callback)
  }

  override makeRoom(): void {
    this.#isFull = false
    for (const callback of this.#roomWanted.splice(0)) callback()
  }

  /** Delivers one of the answers that are due. */
  deliverOne(): void {
    const [deliver] = this.#due.splice(this.#dice.below(this.#due.length), 1)
    deliver?.()
  }

  override submitProduce(who: Principal, topic: string, records: RecordSource, caller: ProduceCaller): SubmitOutcome {
    if (this.#isFullNow()) return submitOutcomes.full
    const refusal = this.#refusalOf(
      topic,
      Array.from({ length: records.count }, (_, i) => records.partitionOf(i))
    )
    if (refusal !== null) return this.#answer(() => caller.onProduceFailed(refusal))
    const { count, ringBytes } = records
    for (let i = 0; i < count; i++) {
      const named = records.partitionOf(i)
      this.#partitions[i] = named < 0 ? OPEN_PARTITION : named
    }
    if (this.#ring.length < ringBytes + 8) this.#ring = Buffer.alloc(2 * ringBytes)
    assert.equal(records.writeAll(this.#partitions.subarray(0, count), this.#ring, 8), 8 + ringBytes)
    this.#crcs.set(who, crc32(this.#ring.subarray(8, 8 + ringBytes), this.#crcs.get(who) ?? 0))
    const results = Buffer.alloc(RESULT_BYTES * count)
    if (!this.#dice.chance(0.05)) return this.#answer(() => caller.onProduced(results, 0, count))
    this.#due.push(() => {
      caller.onDispatched?.()
      this.#due.push(() => caller.onProduced(results, 0, count))
    })
    return submitOutcomes.held
  }

  /** Echoes what was asked: offset, max_records, max_bytes; sometimes more behind it, in pieces. */
  override submitRead(_who: Principal, read: ReadRequest, caller: ReadCaller): SubmitOutcome {
    if (this.#isFullNow()) return submitOutcomes.full
    const refusal = this.#refusalOf(read.topic, [read.partition])
    if (refusal !== null) return this.#answer(() => caller.onReadFailed(refusal))
    const extra = this.#dice.chance(0.02) ? this.#dice.below(200_000) : this.#dice.below(50)
    const payload = Buffer.alloc(17 + extra)
    payload.writeUInt32BE(read.offsetHigh, 1)
    payload.writeUInt32BE(read.offsetLow, 5)
    payload.writeUInt32BE(read.maxRecords, 9)
    payload.writeUInt32BE(read.maxBytes, 13)
    const total = payload.length - 1
    const half = 1 + this.#dice.below(total)
    if (half >= total || this.#dice.chance(0.5)) {
      return this.#answer(() => caller.onReadChunk(payload, 1, payload.length, total, true))
    }
    this.#due.push(() => {
      caller.onReadChunk(payload, 1, 1 + half, total, false)
      this.#due.push(() => caller.onReadChunk(payload, 1 + half, payload.length, total, true))
    })
    return submitOutcomes.taken
  }

  #isFullNow(): boolean {
    if (this.#dice.chance(0.01)) this.#isFull = true
    return this.#isFull
  }

  #refusalOf(topic: string, partitions: readonly number[]): BrokerError | null {
    const count = Object.hasOwn(this.#topics, topic) ? this.#topics[topic] : undefined
    if (count === undefined) return new BrokerError('TOPIC_NOT_FOUND', { topic })
    const partition = Math.max(-1, ...partitions)
    return partition < count ? null : new BrokerError('PARTITION_RANGE', { partition, topic, count })
  }

  #answer(deliver: () => void): SubmitOutcome {
    this.#due.push(deliver)
    return submitOutcomes.taken
  }
}

/** The part of a socket that a connection uses. What it writes is kept; when a write is done, the test says. */
export class FakeSocket extends EventEmitter {
  readonly written: Buffer[] = []
  isPaused = false
  hasEnded = false
  isDestroyed = false
  isGone = false
  readonly #unfinished: (() => void)[] = []

  setNoDelay(): void {}
  setKeepAlive(): void {}
  cork(): void {}
  uncork(): void {}

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  write(bytes: Buffer, done?: () => void): boolean {
    // The memory is the socket's until the call back: it is copied here and must not change before.
    this.written.push(Buffer.from(bytes))
    if (done !== undefined) this.#unfinished.push(done)
    return true
  }

  end(): void {
    this.hasEnded = true
  }

  destroy(): void {
    this.isDestroyed = true
  }

  get hasUnfinished(): boolean {
    return this.#unfinished.length > 0
  }

  finishWrite(): void {
    this.#unfinished.shift()?.()
  }

  /** Both ends are closed, or it was destroyed. */
  leave(): void {
    if (this.isGone) return
    this.isGone = true
    while (this.hasUnfinished) this.finishWrite()
    this.emit('close')
  }
}

/** Lets in as the product does, each connection as somebody of its own: so it is known whose records came. */
class TellingDoorkeeper extends Doorkeeper {
  override admit(token: Buffer): Admission {
    const admission = super.admit(token)
    return admission.who === null ? admission : { who: { ...admission.who } }
  }
}

/** What a test may put in the place of the product's own, to see that it is noticed. */
export interface Plant {
  readonly pool?: () => CountingPool
  readonly requests?: (real: RequestReader) => RequestReader
}

/** The product as it is. */
export const noPlant: Plant = {}

/** The longest that is waited for the thread pool, in ms; where something is planted, what is missing will not come. */
const POOL_MS = { product: 20_000, planted: 1_000 }

/** One host for all connections of a run, as the gateway is. */
export class FuzzHost implements ConnectionHost {
  readonly clock = stillClock
  readonly logger: Logger = silentLogger
  readonly timeouts = timeoutsOf(defaultSettings, {})
  readonly frameLengthMax: number
  readonly replyBudget = new ByteBudget(32 * MIB)
  readonly replyShareBytes = 8 * MIB
  /** Enough for all frames at once: no time passes here, so nobody who leaves a frame half sent would make room for others. */
  readonly requestBudget = new ByteBudget(64 * MIB)
  readonly memory = new FrameMemory(this.requestBudget).memoryOf('127.0.0.1', 0)
  readonly pool: CountingPool
  readonly receive
  readonly requests: RequestReader
  readonly doorkeeper: Doorkeeper
  readonly probe = createProbe()
  readonly inflating: InflaterHost
  readonly room = new TurnRoom(MIB, MIB / 2)
  readonly world: OracleWorld
  readonly poolMs: number
  readonly broker: FuzzBroker
  readonly #woken = new Set<HostedConnection>()
  readonly #dirty = new Set<HostedConnection>()

  constructor(dice: Dice, world: OracleWorld, plant: Plant = noPlant) {
    this.world = world
    this.poolMs = plant === noPlant ? POOL_MS.product : POOL_MS.planted
    this.frameLengthMax = world.frameLengthMax
    const { frameLengthMax } = world
    this.inflating = { frameLengthMax, counts: this.probe.gzip, names: new NameReader(), room: this.room }
    this.pool = plant.pool?.() ?? new CountingPool(16 * MIB)
    this.receive = createReceiveShared(this.pool)
    this.broker = new FuzzBroker(dice, world.topics)
    this.broker.keys.add('good', 't')
    this.broker.keys.add('gone', 't').isRevoked = true
    const auth = world.isGuarded ? 'required' : 'disabled'
    this.doorkeeper = new TellingDoorkeeper(auth, this.broker.keys)
    const meter = new LatencyMeter(stillClock, latencyHistogram())
    const { fetchRecordsMax: maxFetchRecords, fetchBytesMax: maxFetchBytes } = world
    const settings = { ...defaultSettings, auth, maxFetchRecords, maxFetchBytes } as const
    const requests = new RequestReader(this.broker, settings, { produce: meter, consume: meter })
    this.requests = plant.requests?.(requests) ?? requests
  }

  get hasWoken(): boolean {
    return this.#woken.size > 0
  }

  whenRoom(callback: () => void): void {
    this.broker.whenRoom(callback)
  }

  wake(connection: HostedConnection): void {
    this.#woken.add(connection)
  }

  markDirty(connection: HostedConnection): void {
    this.#dirty.add(connection)
  }

  afterInput(connection: HostedConnection): void {
    this.markDirty(connection)
    this.flush()
  }

  closed(connection: HostedConnection): void {
    this.#woken.delete(connection)
  }

  /** After each delivery. Marks that are made meanwhile belong to it. */
  flush(): void {
    for (const connection of this.#dirty) {
      this.#dirty.delete(connection)
      connection.afterDelivery()
    }
  }

  resumeWoken(): void {
    const woken = [...this.#woken]
    this.#woken.clear()
    for (const connection of woken) connection.resume()
  }
}

/** A socket for the constructor of a connection. */
export function asSocket(socket: FakeSocket): Socket {
  return socket as unknown as Socket
}
