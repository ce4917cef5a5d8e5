/**
 * A peer that answers produces like a broker with one topic, and keeps what it was sent. A test says what becomes of single
 * requests: refused, never answered, written and not answered.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { opcodes, type Frame } from '../../../../src/wire/es01/frame.ts'
import type { Partitioner } from '../../../../src/model/topic.ts'
import { ProduceDecoder } from '../../../../src/wire/es01/produce-request.ts'
import type { Es01Address } from '../../../support/broker.ts'
import { producedPayload, startPeer, type PeerConnection } from '../../../support/es01-peer.ts'

/** One produce as it came. */
export interface Produced {
  readonly producerId: string | null
  /** Of its first record; −1: left to the broker. */
  readonly partition: number
  /** Of its first record; −1: none. */
  readonly first: number
  readonly count: number
  readonly requestId: number
  readonly connection: PeerConnection
}

/** What becomes of a produce. drop: nothing is written, the connection is lost; lose: it is written, then lost. */
export type Fate = 'write' | 'drop' | 'lose' | 'silence' | { readonly refuse: string }

export class FakeBroker {
  address: Es01Address = { host: '', port: 0 }
  /** A test may change it: the topic is another one of its name. */
  partitionCount: number
  /** Of keys; a test may change it. */
  partitioner: Partitioner = 'fnv1a'
  /** Produces in the order in which they came; questions for the number of partitions left out. */
  readonly produced: Produced[] = []
  /** How often the number of partitions was asked for. */
  questions = 0
  fateOf: (produced: Produced) => Fate = () => 'write'
  readonly #decoder = new ProduceDecoder()
  /** By producer and partition: the sequence that is expected. */
  readonly #expected = new Map<string, number>()
  readonly #ends = new Map<number, number>()

  constructor(partitionCount: number) {
    this.partitionCount = partitionCount
  }

  take(frame: Frame, connection: PeerConnection): void {
    const { requestId } = frame
    if (frame.opcode === opcodes.ping) return connection.answer(requestId, opcodes.pong, Buffer.alloc(0))
    assert.equal(frame.opcode, opcodes.produce)
    const decoder = this.#decoder
    const framed = Buffer.concat([Buffer.alloc(9), frame.payload])
    assert.ok(decoder.decode(framed, 9, framed.length), decoder.problem)
    const partition = decoder.partitionOf(0)
    if (partition >= this.partitionCount) {
      this.questions++
      const text = `bad request: partition ${partition} is out of range: topic 't' has ${this.partitionCount} partition(s)`
      return connection.refuse(requestId, `${text}, numbered from 0, with keys by ${this.partitioner}`)
    }
    const { producerId, count } = decoder
    const first = producerId === null ? -1 : decoder.sequenceLowOf(0)
    const produced = { producerId, partition, first, count, requestId, connection }
    this.produced.push(produced)
    this.settle(produced, this.fateOf(produced))
  }

  settle(produced: Produced, fate: Fate): void {
    const { connection, requestId } = produced
    if (typeof fate !== 'string') return connection.refuse(requestId, fate.refuse)
    if (fate === 'drop') return connection.drop()
    if (fate === 'silence') return
    const payload = this.#write(produced)
    if (fate === 'lose') return connection.drop()
    if (typeof payload === 'string') connection.refuse(requestId, payload)
    else connection.answer(requestId, opcodes.produced, payload)
  }

  #write({ producerId, partition, first, count }: Produced): Buffer | string {
    const place = `${producerId}/${partition}`
    const expected = this.#expected.get(place) ?? first
    const end = this.#ends.get(partition) ?? 0
    const fault = `of producer id '${producerId}' in partition ${partition}: expected ${expected}, got ${first}`
    if (producerId !== null && first > expected) return `bad request: sequence gap ${fault}`
    if (producerId !== null && first < expected - 128) return `bad request: sequence too low ${fault}`
    const isDuplicate = producerId !== null && first < expected
    const offset = isDuplicate ? end - (expected - first) : end
    if (!isDuplicate) this.#ends.set(partition, end + count)
    if (!isDuplicate && producerId !== null) this.#expected.set(place, first + count)
    const results = Array.from({ length: count }, (_, i) => {
      return { partition: Math.max(0, partition), offset: offset + i, duplicate: isDuplicate }
    })
    return producedPayload(results)
  }
}

/** @param accepts feature bits; the peer inflates and deflates where gzip is agreed. */
export async function startFakeBroker(t: TestContext, partitionCount = 3, accepts = 0): Promise<FakeBroker> {
  const broker = new FakeBroker(partitionCount)
  const onFrame = (frame: Frame, connection: PeerConnection): void => {
    if ((accepts & connection.asked) === 0) return broker.take(frame, connection)
    const answer: PeerConnection['answer'] = (id, opcode, payload) => connection.answer(id, opcode, gzipSync(payload))
    const refuse: PeerConnection['refuse'] = (id, message) => answer(id, opcodes.error, Buffer.from(message))
    broker.take({ ...frame, payload: gunzipSync(frame.payload) }, { ...connection, answer, refuse })
  }
  broker.address = await startPeer(t, { accepts, onFrame })
  return broker
}
