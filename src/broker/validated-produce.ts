/**
 * Produces to topics with `validate_schema`: copied, matched with the latest schema in another thread, then dispatched like
 * any other. Main thread.
 *
 *   submit ─▶ held ─▶ its turn in the line ─▶ validateRecords, in another thread ─▶ the engine, or its producer's lane
 *                                                └─ no match, or over its time: refused
 *
 * Invariants: the requests of one key to one topic leave in the order in which they came, so those of a producer and of a
 * connection do; one of them is validated at a time, and together they hold a part of the memory only. Schemas whose
 * patterns never end (slow-schemas.ts) have one thread together, and what waits for them is little, else refused: they cost
 * whoever uses them, but neither other topics nor the broker. The schema is the latest one at the time of the request. It
 * must never run a pattern on this thread.
 */
import type { ByteBudget } from '../base/byte-budget.ts'
import type { ValidationJobs } from '../background/jobs.ts'
import type { BackgroundPool, JobBound } from '../background/pool.ts'
import { unreachable } from '../base/assert.ts'
import { BrokerError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import type { Principal } from '../model/principal.ts'
import { submitOutcomes, type SubmitOutcome } from '../model/requests.ts'
import type { SchemaText, SchemaVersion } from '../model/schemas.ts'
import { valueSubjectOf, type Topic } from '../model/topic.ts'
import type { AppendCaller, Engine, EngineAppend } from './engine.ts'
import { heldBytes, HeldProduce } from './held-produce.ts'
import type { IdempotentProduce } from './idempotent-produce.ts'
import { lateRefusalOf } from './late-refusal.ts'
import { SlowSchemas } from './slow-schemas.ts'

export interface ValidationParts {
  readonly schemas: { versionsOf(subject: string): readonly SchemaVersion[] }
  readonly catalog: { topicNamed(name: string): Topic | undefined }
  readonly pool: Pick<BackgroundPool<ValidationJobs>, 'run'>
  readonly engine: Pick<Engine, 'append' | 'whenRoom' | 'turn'>
  readonly idempotent: Pick<IdempotentProduce, 'submitHeld'>
  /** Bytes of requests that are validated or wait for it. */
  readonly held: ByteBudget
  /** For the records of one request, ms, and for each MiB of them. */
  readonly validationMs: number
  readonly validationMsPerMib: number
}

interface Validation {
  readonly request: HeldProduce
  /** null: it only keeps its place behind others, which are validated. */
  readonly schema: SchemaVersion | null
}

/** Requests of one key to one topic, in the order of arrival. The first is at work. */
interface Line {
  readonly waiting: Validation[]
  /** Of all of them. */
  bytes: number
}

const MIB = 1024 * 1024

export class ValidatedProduce {
  readonly #parts: ValidationParts
  readonly #lines = new Map<string, Line>()
  /** Those whose first request has a slow schema. */
  readonly #slowLines = new Set<Line>()
  readonly #slow = new SlowSchemas()

  constructor(parts: ValidationParts) {
    this.#parts = parts
  }

  /** True for a request that must come here: of a topic that is validated, or was when a request came that is still here. */
  concerns(topic: Topic, who: Principal): boolean {
    return topic.config.validate_schema || (this.#lines.size > 0 && this.#lines.has(lineKeyOf(topic, who)))
  }

  /**
   * Submits a request whose sequences, if it has a producer, have their form.
   * @throws BrokerError SCHEMA_MISSING; OVERLOADED where too much waits for slow schemas: it would wait for minutes, with
   * memory that others need.
   */
  submit(append: EngineAppend, who: Principal, caller: AppendCaller): SubmitOutcome {
    const { topic } = append
    const schema = topic.config.validate_schema ? this.#latestSchemaOf(topic) : null
    const key = lineKeyOf(topic, who)
    const line = this.#lines.get(key) ?? { waiting: [], bytes: 0 }
    if (schema !== null && this.#slow.has(schema.id)) {
      const refusal = this.#slowRefusal(1, heldBytes(append))
      if (refusal !== null) throw refusal
    }
    if (!this.#hasRoom(line, heldBytes(append))) return submitOutcomes.full
    const request = HeldProduce.tryHold(append, who, caller, this.#parts.held)
    if (request === null) return submitOutcomes.full
    line.waiting.push({ request, schema })
    line.bytes += request.bytes
    if (line.waiting.length === 1) {
      this.#lines.set(key, line)
      void this.#work(key, line)
    }
    return submitOutcomes.held
  }

  /** @throws BrokerError SCHEMA_MISSING */
  #latestSchemaOf({ name: topic }: Topic): SchemaVersion {
    const subject = valueSubjectOf(topic)
    const latest = this.#parts.schemas.versionsOf(subject).at(-1)
    if (latest === undefined) throw new BrokerError('SCHEMA_MISSING', { topic, subject })
    return latest
  }

  /** As a budget has it: what is alone may be of any size. */
  #hasRoom({ waiting, bytes }: Line, moreBytes: number): boolean {
    if (waiting.length === 0) return true
    const bytesMax = this.#parts.held.limitBytes / limits.validationLineShare
    return waiting.length < limits.validationLineMax && bytes + moreBytes <= bytesMax
  }

  async #work(key: string, line: Line): Promise<void> {
    for (let first = line.waiting[0]; first !== undefined; first = line.waiting[0]) {
      const { request } = first
      const refusal = this.#lateRefusal(request) ?? this.#refusalInLine(line, first) ?? (await this.#mismatchOf(first))
      if (refusal !== null) request.onProduceFailed(refusal)
      else if (request.hasProducer) this.#handOn(request)
      else await this.#dispatch(request)
      line.waiting.shift()
      line.bytes -= request.bytes
      this.#slowLines.delete(line)
      if (line.waiting.length === 0) this.#lines.delete(key)
      // Delivers what was refused, and lets those try again that found no room.
      this.#parts.engine.turn()
    }
  }

  /** Of the first of a line: that its schema was found slow while it waited, and too much waits for such. */
  #refusalInLine(line: Line, { schema }: Validation): BrokerError | null {
    if (schema === null || !this.#slow.has(schema.id)) return null
    this.#slowLines.add(line)
    return this.#slowRefusal(0, 0)
  }

  /** Why no more can wait for slow schemas; null: so many may, or it would be alone. */
  #slowRefusal(moreCount: number, moreBytes: number): BrokerError | null {
    const { slowValidationsMax: limit, validationLineShare } = limits
    let [count, bytes] = [moreCount, moreBytes]
    for (const line of this.#slowLines) {
      count += line.waiting.length
      bytes += line.bytes
    }
    if (count <= 1) return null
    const bytesMax = this.#parts.held.limitBytes / validationLineShare
    if (count <= limit && bytes <= bytesMax) return null
    return new BrokerError('OVERLOADED', {
      what: 'the line of records whose schemas take too long',
      limit: count > limit ? limit : `${bytesMax} bytes`
    })
  }

  #lateRefusal({ who, topic }: HeldProduce): BrokerError | null {
    return lateRefusalOf(this.#parts.catalog, who, topic)
  }

  /** @returns why it is refused; null: all of its records match. */
  async #mismatchOf({ request, schema }: Validation): Promise<BrokerError | null> {
    if (schema === null) return null
    try {
      const mismatch = await this.#slow.run(schema.id, () => this.#matched(request, schema, null))
      this.#slow.noteWithin(schema.id)
      return mismatch ?? this.#lateRefusal(request)
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      if (error.code === 'VALIDATION_LIMIT') this.#slow.noteOver(schema.id)
      return error
    }
  }

  /** @throws BrokerError VALIDATION_LIMIT, OVERLOADED, STOPPING, INTERNAL */
  async #matched(request: HeldProduce, schema: SchemaVersion, text: SchemaText | null): Promise<BrokerError | null> {
    const records = request.lend()
    const value = { records, schemaId: schema.id, text }
    const options = { moves: [records.memory], bound: this.#boundOf(request, schema) }
    const result = await this.#parts.pool.run('validateRecords', value, options)
    switch (result.kind) {
      case 'valid':
        request.takeBack(result.memory)
        return null
      case 'textless':
        request.takeBack(result.memory)
        return this.#matched(request, schema, { type: schema.type, schema: schema.schema })
      case 'mismatch':
        return new BrokerError('SCHEMA_MISMATCH', { index: result.index, ...namesOf(schema), problem: result.problem })
      default:
        return unreachable(result)
    }
  }

  #boundOf({ bytes }: HeldProduce, schema: SchemaVersion): JobBound {
    const { validationMs, validationMsPerMib } = this.#parts
    const timeMs = validationMs + Math.ceil((validationMsPerMib * bytes) / MIB)
    const time = { limit: timeMs, unit: 'ms' }
    const memory = { limit: limits.validationHeapMb, unit: 'MiB of memory' }
    return {
      timeMs,
      failure: over => new BrokerError('VALIDATION_LIMIT', { ...namesOf(schema), ...(over === 'time' ? time : memory) })
    }
  }

  /** From here on its producer's lane keeps its order. */
  #handOn(request: HeldProduce): void {
    this.#parts.idempotent.submitHeld(request)
  }

  /** Resolves when it is on its rings, or refused. */
  #dispatch(request: HeldProduce): Promise<void> {
    const { engine } = this.#parts
    return new Promise(resolve => {
      const attempt = (): void => {
        const refusal = this.#lateRefusal(request)
        if (refusal !== null) request.onProduceFailed(refusal)
        else if (engine.append(request.as(0), request) === submitOutcomes.full) return engine.whenRoom(attempt)
        else request.onDispatched()
        resolve()
      }
      attempt()
    })
  }
}

function lineKeyOf({ id }: Topic, { keyId }: Principal): string {
  return `${id} ${keyId}`
}

function namesOf({ id, version, subject }: SchemaVersion): { id: number; version: number; subject: string } {
  return { id, version, subject }
}
