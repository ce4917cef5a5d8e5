/** The real broker over an engine and a clock that the test plays: what it dispatches, and what callers are told. */
import assert from 'node:assert/strict'
import { ByteBudget } from '../../../src/base/byte-budget.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import type { CheckRecordKeysResult } from '../../../src/background/record-key-check.ts'
import type { JobBound } from '../../../src/background/pool.ts'
import type { ValidateRecordsResult, ValidateRecordsValue } from '../../../src/background/record-validation.ts'
import { ScannedRecords } from '../../../src/background/scanned-records.ts'
import { LocalBroker } from '../../../src/broker/broker.ts'
import type {
  AppendCaller,
  Engine,
  EngineAppend,
  EngineBatch,
  EngineRead,
  EngineReadCaller
} from '../../../src/broker/engine.ts'
import { IdempotentProduce } from '../../../src/broker/idempotent-produce.ts'
import { KeyedBatches, type KeyedBatchParts } from '../../../src/broker/keyed-batches.ts'
import { ProducerCommands } from '../../../src/broker/producer-commands.ts'
import { ProduceGates } from '../../../src/broker/produce-gate.ts'
import { Traffic } from '../../../src/broker/traffic.ts'
import { ValidatedProduce, type ValidationParts } from '../../../src/broker/validated-produce.ts'
import { WatchHub } from '../../../src/broker/watches.ts'
import { Catalog } from '../../../src/control/catalog.ts'
import { ChangeTurns } from '../../../src/control/change-turns.ts'
import { ProducerTable } from '../../../src/control/producer-table.ts'
import { Quotas } from '../../../src/control/quotas.ts'
import type { BatchCaller } from '../../../src/model/batches.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import type { KeyUseCases } from '../../../src/model/keys.ts'
import { anonymous, type Principal } from '../../../src/model/principal.ts'
import {
  readFormats,
  submitOutcomes,
  type ReadCaller,
  type ReadRequest,
  type SubmitOutcome
} from '../../../src/model/requests.ts'
import type { SchemaVersion } from '../../../src/model/schemas.ts'
import type { PartitionDescription, Topic, TopicConfigPatch } from '../../../src/model/topic.ts'
import { encodeProduceFrame, type ProduceRecord } from '../../../src/wire/es01/produce-frame.ts'
import { ProduceDecoder } from '../../../src/wire/es01/produce-request.ts'
import { ManualClock } from '../../support/log-harness.ts'
import { noClassicGroups, noGroups } from '../../support/no-groups.ts'
import { noSchemas } from '../../support/no-schemas.ts'
import { create, defaults, emptyImage } from '../control/topics.ts'
import { idleEngine } from './idle-engine.ts'

/** The tests of this folder say themselves who asks. */
const noKeys: KeyUseCases = {
  principalOf: () => null,
  scramKeyOf: () => null,
  create: () => Promise.reject(new BrokerError('FORBIDDEN')),
  list: () => [],
  revoke: () => Promise.reject(new BrokerError('FORBIDDEN'))
}

/** A key that may do everything with topics, and has these quotas. */
export function keyWith(
  quotas: Pick<Principal, 'produceBytesPerSec' | 'consumeBytesPerSec'>,
  keyId = 'key_1'
): Principal {
  return { ...anonymous, keyId, ...quotas }
}

/** A record whose key and value have so many bytes together. */
export function recordOf(bytes: number, rest: Partial<ProduceRecord> = {}): ProduceRecord {
  const key = bytes > 1 ? 'k' : null
  return { key, value: 'v'.repeat(bytes - (key?.length ?? 0)), ...rest }
}

export const maxRecordBytes = 10_000

export interface Validation {
  readonly value: ValidateRecordsValue
  readonly bound: JobBound | undefined
  readonly resolve: (result: ValidateRecordsResult) => void
  readonly reject: (error: BrokerError) => void
}

/** A batch that another thread has. */
export interface KeyCheck {
  readonly batch: ArrayBuffer
  readonly resolve: (result: CheckRecordKeysResult) => void
  readonly reject: (error: BrokerError) => void
}

export class BrokerStage {
  readonly clock = new ManualClock()
  readonly catalog = new Catalog(emptyImage)
  readonly traffic = new Traffic()
  readonly gates = new ProduceGates()
  readonly producers = new ProducerTable(emptyImage)
  readonly quotas = new Quotas(this.clock)
  /** What the engine was given and has not answered. */
  readonly appends: { append: EngineAppend; caller: AppendCaller }[] = []
  readonly reads: { read: EngineRead; caller: EngineReadCaller }[] = []
  readonly batches: { batch: EngineBatch; caller: BatchCaller }[] = []
  /** Records that another thread has, to be matched with a schema. */
  readonly validations: Validation[] = []
  /** What the registry has. */
  readonly schemaVersions: SchemaVersion[] = []
  readonly validated = new ByteBudget(1_000_000)
  /** Batches that another thread has, to look for their keys. */
  readonly keyChecks: KeyCheck[] = []
  readonly keyed = new ByteBudget(1_000_000)
  /** Who waits for room in the rings. */
  roomWaiters: (() => void)[] = []
  /** Produces that were held and are dispatched, in order. */
  readonly dispatched: string[] = []
  /** What callers were told, in order. */
  readonly answers: string[] = []
  /** Of produces, in order. */
  readonly failures: BrokerError[] = []
  readonly broker: LocalBroker
  /** The rings are full. */
  isFull = false
  /** The disk is nearly full. */
  isLow = false
  /** What the shards say of the partitions of any topic. */
  descriptions: Promise<PartitionDescription[]> = Promise.resolve([])
  /** When the shards have been told of a topic that changed. */
  configuring: Promise<void> = Promise.resolve()
  /** The store refuses. */
  storeFailure: Error | null = null
  readonly #deliveryHooks: (() => void)[] = []
  /** Answers each append and read by itself, soon. */
  answerAtOnce: ((given: { append?: AppendCaller; read?: EngineReadCaller }) => void) | null = null

  constructor() {
    const commit = (): Promise<void> =>
      this.storeFailure === null ? Promise.resolve() : Promise.reject(this.storeFailure)
    const store = { image: emptyImage, commit, close: () => Promise.resolve() }
    const engine = this.#engine()
    const table = this.producers
    const producerParts = { table, store, engine, clock: this.clock, logger: silentLogger, catalog: this.catalog }
    const idempotent = new IdempotentProduce({ ...producerParts, held: new ByteBudget(1_000_000) })
    const validation = new ValidatedProduce({
      ...{ engine, idempotent, catalog: this.catalog, held: this.validated, pool: this.#validationPool() },
      ...{ validationMs: 1000, validationMsPerMib: 1000 },
      schemas: { versionsOf: wanted => this.schemaVersions.filter(({ subject }) => subject === wanted) }
    })
    const isLow = (): boolean => this.isLow
    this.broker = new LocalBroker({
      engine,
      idempotent,
      validation,
      keyedBatches: new KeyedBatches({ engine, catalog: this.catalog, held: this.keyed, pool: this.#recordKeyPool() }),
      producers: new ProducerCommands({ ...producerParts, idempotent }),
      tombstones: { begin: () => () => undefined },
      certificates: null,
      compaction: { problem: null, runAll: () => Promise.resolve() },
      tiering: { problem: null, runAll: () => Promise.resolve(), coldSegments: () => Promise.resolve([]) },
      space: {
        get isLow() {
          return isLow()
        }
      },
      preparation: { isChange: false, report: () => null },
      maxRecordBytes,
      flushEveryRecords: 1,
      catalog: this.catalog,
      turns: new ChangeTurns(),
      store,
      defaults,
      keys: noKeys,
      groups: { ...noGroups, forgetTopic: () => undefined, partitionsAdded: () => Promise.resolve() },
      classicGroups: noClassicGroups,
      schemas: noSchemas,
      groupFlush: { problem: null },
      quotas: this.quotas,
      watches: new WatchHub(engine),
      traffic: this.traffic,
      gates: this.gates
    })
  }

  create(name: string, partitions = 1, config: TopicConfigPatch = {}): Topic {
    return create(this.catalog, name, partitions, config)
  }

  /** One produce; what becomes of it is noted under its name. */
  async produce(
    name: string,
    who: Principal,
    records: readonly ProduceRecord[],
    to: { topic?: string; producerId?: string | null } = {}
  ): Promise<SubmitOutcome> {
    const outcome = this.submit(name, who, records, to)
    await turn()
    return outcome
  }

  /** The same within this turn. */
  submit(
    name: string,
    who: Principal,
    records: readonly ProduceRecord[],
    { topic = 't', producerId = null }: { topic?: string; producerId?: string | null } = {}
  ): SubmitOutcome {
    const decoder = new ProduceDecoder()
    const frame = encodeProduceFrame(1, topic, records, producerId)
    assert.ok(decoder.decode(frame, 9, frame.length))
    const outcome = this.broker.submitProduce(who, topic, decoder, {
      onProduced: (_bytes, _start, count) => void this.answers.push(`${name} produced ${count}`),
      onProduceFailed: error => {
        this.failures.push(error)
        this.answers.push(`${name} ${error.code}`)
      },
      onDispatched: () => void this.dispatched.push(name)
    })
    decoder.release()
    frame.fill(0)
    return outcome
  }

  /** @param who several: they share it. */
  async read(
    name: string,
    who: Principal | readonly Principal[],
    read: Partial<ReadRequest> = {}
  ): Promise<SubmitOutcome> {
    const caller: ReadCaller = {
      onReadChunk: (_bytes, start, end, _total, isLast) =>
        void this.answers.push(`${name} ${end - start} bytes${isLast ? ', last' : ''}`),
      onReadFailed: error => void this.answers.push(`${name} ${error.code}`)
    }
    const outcome =
      'keyId' in who
        ? this.broker.submitRead(who, readOf(read), caller)
        : this.broker.submitSharedRead(who, readOf(read), caller)
    await turn()
    return outcome
  }

  /** Answers were given: gateways write what they gathered. */
  delivered(): void {
    for (const hook of this.#deliveryHooks) hook()
  }

  /** What callers were told since the last call. */
  told(): string[] {
    return this.answers.splice(0)
  }

  /** Answers the first who waits for its records to be matched. @returns the values that were to be. */
  async validate(answer: 'matches' | 'textless' | BrokerError | readonly [number, string]): Promise<string[]> {
    const next = this.validations.shift()
    assert.ok(next !== undefined, 'records wait to be matched')
    // As moving does it: whoever lent it has it no more.
    const memory = next.value.records.memory.transfer()
    const records = new ScannedRecords({ ...next.value.records, memory })
    const values = Array.from({ length: records.count }, (_, i) => Buffer.from(records.valueOf(i)).toString())
    if (answer === 'matches') next.resolve({ kind: 'valid', memory })
    else if (answer === 'textless') next.resolve({ kind: 'textless', memory })
    else if (answer instanceof BrokerError) next.reject(answer)
    else next.resolve({ kind: 'mismatch', index: answer[0], problem: answer[1] })
    await turn()
    return values
  }

  #recordKeyPool(): KeyedBatchParts['pool'] {
    return {
      // As moving does it: whoever lent it has it no more.
      run: (_, { batch }) =>
        new Promise((resolve, reject) => void this.keyChecks.push({ batch: batch.transfer(), resolve, reject }))
    }
  }

  #validationPool(): ValidationParts['pool'] {
    return {
      run: (_, value, options) =>
        new Promise((resolve, reject) => void this.validations.push({ value, bound: options?.bound, resolve, reject }))
    }
  }

  #engine(): Engine {
    const append = (given: EngineAppend, caller: AppendCaller): SubmitOutcome => {
      if (this.isFull) return submitOutcomes.full
      this.appends.push({ append: given, caller })
      this.answerAtOnce?.({ append: caller })
      return submitOutcomes.taken
    }
    return {
      ...idleEngine,
      hasOneOwner: () => true,
      describeTopic: () => this.descriptions,
      configureTopic: () => this.configuring,
      append,
      appendChecked: (given, caller) => void append(given, caller),
      appendBatch: (batch, caller) => {
        if (this.isFull) return submitOutcomes.full
        this.batches.push({ batch, caller })
        return submitOutcomes.taken
      },
      read: (read, caller) => {
        if (this.isFull) return submitOutcomes.full
        this.reads.push({ read, caller })
        this.answerAtOnce?.({ read: caller })
        return submitOutcomes.taken
      },
      listProducers: () => Promise.resolve({ positions: [], isWhole: true }),
      forgetProducers: () => Promise.resolve(),
      whenRoom: callback => void this.roomWaiters.push(callback),
      publishSoon: () => undefined,
      turn: () => {
        for (const waiter of this.roomWaiters.splice(0)) waiter()
      },
      onDelivered: hook => void this.#deliveryHooks.push(hook)
    }
  }
}

/** A later turn of the event loop. */
export const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

function readOf(read: Partial<ReadRequest>): ReadRequest {
  const from = { topic: 't', partition: 0, offsetHigh: 0, offsetLow: 0 }
  return { ...from, maxRecords: 100, maxBytes: 1000, format: readFormats.es01, ...read }
}
