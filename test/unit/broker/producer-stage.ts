/** Producer ids on a stage where a test plays store, engine and clock. */
import assert from 'node:assert/strict'
import { ByteBudget } from '../../../src/base/byte-budget.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import type { AppendCaller, Engine, EngineAppend, EnginePosition } from '../../../src/broker/engine.ts'
import { IdempotentProduce } from '../../../src/broker/idempotent-produce.ts'
import { ProducerCommands } from '../../../src/broker/producer-commands.ts'
import { Catalog } from '../../../src/control/catalog.ts'
import { ProducerTable } from '../../../src/control/producer-table.ts'
import type { StoreChange } from '../../../src/control/store-image.ts'
import type { BrokerError } from '../../../src/model/errors.ts'
import { anonymous, type Principal } from '../../../src/model/principal.ts'
import type { Producer } from '../../../src/model/producer.ts'
import { submitOutcomes, type SubmitOutcome } from '../../../src/model/requests.ts'
import { encodeProduceFrame } from '../../../src/wire/es01/produce-frame.ts'
import { ProduceDecoder } from '../../../src/wire/es01/produce-request.ts'
import { ManualClock } from '../../support/log-harness.ts'
import { emptyImage, topicOf } from '../control/topics.ts'
import { idleEngine } from './idle-engine.ts'

const topic = topicOf({ id: 1, name: 't', firstHandle: 1, partitionCount: 3 })

/** What the engine was given and has not answered. */
export interface Dispatched {
  readonly append: EngineAppend
  readonly isChecked: boolean
  readonly caller: AppendCaller
  /** Of a checked one: asked before its records are written. */
  readonly lateRefusal: () => BrokerError | null
}

export class Stage {
  readonly clock = new ManualClock()
  readonly table: ProducerTable
  readonly commits: { changes: readonly StoreChange[]; settle: (error?: BrokerError) => void }[] = []
  readonly dispatched: Dispatched[] = []
  readonly forgotten: number[] = []
  readonly answers: string[] = []
  readonly held = new ByteBudget(10_000)
  readonly idempotent: IdempotentProduce
  readonly commands: ProducerCommands
  positions: EnginePosition[] = []
  isWhole = true
  isFull = false
  roomWaiters: (() => void)[] = []

  constructor(producers: readonly Producer[] = []) {
    const image = { ...emptyImage, producers, nextProducerNumber: producers.length + 1 }
    this.table = new ProducerTable(image)
    const store = {
      image,
      commit: (changes: readonly StoreChange[]) =>
        new Promise<void>((resolve, reject) => {
          const settle = (error?: BrokerError): void => (error === undefined ? resolve() : reject(error))
          this.commits.push({ changes, settle })
        }),
      close: () => Promise.resolve()
    }
    const engine = this.#engine()
    const parts = { table: this.table, store, engine, clock: this.clock, logger: silentLogger }
    this.idempotent = new IdempotentProduce({ ...parts, held: this.held })
    this.commands = new ProducerCommands({ ...parts, catalog: new Catalog(emptyImage), idempotent: this.idempotent })
  }

  readonly #principals = new Map<string, { isRevoked: boolean } & Principal>()

  /** The principal of a key id, the same each time. */
  whoIs(keyId: string): { isRevoked: boolean } & Principal {
    const known = this.#principals.get(keyId) ?? { ...anonymous, keyId, isRevoked: false }
    this.#principals.set(keyId, known)
    return known
  }

  /** One request to those partitions. Its outcome is noted under its name. */
  submit(name: string, id: string, partitions: readonly number[], owner = 'anonymous'): SubmitOutcome {
    const decoder = new ProduceDecoder()
    const frame = encodeProduceFrame(
      1,
      't',
      partitions.map(partition => ({ value: 'v', partition, sequence: 0n })),
      id
    )
    assert.ok(decoder.decode(frame, 9, frame.length))
    const append = { topic, records: decoder, partitions: Uint32Array.from(partitions), producer: 0 }
    const outcome = this.idempotent.submit(append, id, this.whoIs(owner), {
      onProduced: () => void this.answers.push(`${name} produced`),
      onProduceFailed: error => void this.answers.push(`${name} ${error.code} ${error.written}`),
      onDispatched: () => void this.answers.push(`${name} dispatched`)
    })
    // Lent for the call only.
    decoder.release()
    frame.fill(0)
    return outcome
  }

  async settleCommit(error?: BrokerError): Promise<readonly StoreChange[]> {
    const commit = this.commits.shift()
    assert.ok(commit !== undefined, 'something waits for the store')
    commit.settle(error)
    await turn()
    return commit.changes
  }

  async answer(error?: BrokerError): Promise<Dispatched> {
    const next = this.dispatched.shift()
    assert.ok(next !== undefined, 'something was dispatched')
    if (next.isChecked) next.caller.onDispatched?.()
    if (error === undefined) next.caller.onProduced(Buffer.alloc(0), 0, 0, 0, 0)
    else next.caller.onProduceFailed(error)
    await turn()
    return next
  }

  #engine(): Engine {
    const dispatch = (
      append: EngineAppend,
      caller: AppendCaller,
      isChecked: boolean,
      lateRefusal: Dispatched['lateRefusal'] = () => null
    ): void => {
      const { records } = append
      assert.equal(records.sequenceLowOf(0), 0)
      this.dispatched.push({ append, caller, isChecked, lateRefusal })
    }
    return {
      hasOneOwner: append => append.partitions.length === 1,
      append: (append, caller) => {
        if (this.isFull) return submitOutcomes.full
        dispatch(append, caller, false)
        return submitOutcomes.taken
      },
      appendChecked: (append, caller, lateRefusal) => dispatch(append, caller, true, lateRefusal),
      listProducers: () => Promise.resolve({ positions: this.positions, isWhole: this.isWhole }),
      forgetProducers: numbers => {
        this.forgotten.push(...numbers)
        return Promise.resolve()
      },
      whenRoom: callback => void this.roomWaiters.push(callback),
      publishSoon: () => undefined,
      turn: () => undefined,
      onDelivered: () => undefined,
      ...idleEngine,
      read: () => submitOutcomes.taken
    }
  }
}

/** One turn of the event loop. */
export const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** A producer under which records were written. */
export function claimed(number: number, id: string, owner = 'anonymous', lastUsedMs = 0): Producer {
  return { number, id, owner, isClaimed: true, lastUsedMs }
}
