/**
 * One partition as a broker keeps it, with everything that can happen to it while a client retries: it is the truth that
 * the client's conclusions are judged by. Pure. Sequences are judged by the broker's own function.
 */
import { judgeSequence, sequenceVerdicts } from '../../../../src/log/producer-sequences.ts'
import type { ProduceResult } from '../../../../src/wire/es01/produce-frame.ts'

/** One request: the records of a producer from a sequence on. */
export interface Copy {
  readonly producerId: string
  readonly first: number
  readonly records: readonly number[]
}

interface Known {
  readonly origin: number
  /** Of each accepted sequence, from the origin on. */
  readonly offsets: number[]
}

/** A record of somebody else. */
const OTHER = -1

export class ModelBroker {
  /** Records of the topic there is now, by offset. */
  log: number[] = []
  /** How often each record was written: in the topic of now, and in all there were. */
  readonly writes = new Map<number, number>()
  readonly everWritten = new Set<number>()
  /** Producers were forgotten, and a record of theirs was in the log or on its way: that may be written twice. */
  hasForgotten = false
  hasLostPower = false
  wasMadeAnew = false
  /** Requests of lost connections that are not read yet. */
  readonly #onTheirWay: Copy[] = []
  #known = new Map<string, Known>()
  /** Where requests begin: after a loss of power the log ends at one of them. */
  #ends: number[] = [0]

  /** @returns the answer, or the text of the refusal. */
  execute({ producerId, first, records }: Copy): ProduceResult[] | string {
    const known = this.#known.get(producerId) ?? { origin: first, offsets: [] }
    let next = known.offsets.length
    let hasNew = false
    const results: ProduceResult[] = []
    for (let i = 0; i < records.length; i++) {
      const relative = first + i - known.origin
      const verdict = judgeSequence(relative, next, hasNew)
      if (verdict === sequenceVerdicts.gap || verdict === sequenceVerdicts.tooLow) {
        const kind = verdict === sequenceVerdicts.gap ? 'gap' : 'too low'
        const numbers = `expected ${known.origin + next}, got ${first + i}`
        return `bad request: sequence ${kind} of producer id '${producerId}' in partition 0: ${numbers}; nothing was written`
      }
      const duplicate = verdict === sequenceVerdicts.duplicate
      const offset = duplicate ? (known.offsets[relative] as number) : this.log.length + next - known.offsets.length
      if (!duplicate) {
        next++
        hasNew = true
      }
      results.push({ partition: 0, offset, duplicate })
    }
    for (const [i, { duplicate }] of results.entries())
      if (!duplicate) this.#append(records[i] as number, known.offsets)
    this.#known.set(producerId, known)
    this.#ends.push(this.log.length)
    return results
  }

  /** A request is on its way, and its connection lost. */
  delay(copy: Copy): void {
    this.#onTheirWay.push(copy)
  }

  /** One of those is read. @param pick a whole number below its argument */
  arrive(pick: (end: number) => number): void {
    if (this.#onTheirWay.length === 0) return
    const [copy] = this.#onTheirWay.splice(pick(this.#onTheirWay.length), 1)
    if (copy !== undefined) this.execute(copy)
  }

  arriveAll(): void {
    while (this.#onTheirWay.length > 0) this.arrive(() => 0)
  }

  writeOthers(count: number): void {
    for (let i = 0; i < count; i++) this.log.push(OTHER)
    this.#ends.push(this.log.length)
  }

  /** Somebody deletes the producer ids. */
  forget(): void {
    if (this.#known.size > 0 || this.#onTheirWay.length > 0) this.hasForgotten = true
    this.#known.clear()
  }

  /** The topic is deleted and made again. */
  makeAnew(): void {
    this.wasMadeAnew = true
    if (this.#onTheirWay.length > 0) this.hasForgotten = true
    this.log = []
    this.#ends = [0]
    this.writes.clear()
    this.#known.clear()
  }

  /** The last requests are not in the log any more, and the connections of all are gone. */
  losePower(pick: (end: number) => number): void {
    this.hasLostPower = true
    this.#onTheirWay.length = 0
    this.#ends.length = 1 + pick(this.#ends.length)
    const end = this.#ends.at(-1) as number
    for (const record of this.log.splice(end)) this.writes.set(record, (this.writes.get(record) ?? 0) - 1)
    for (const [producerId, { offsets }] of this.#known) {
      while (offsets.length > 0 && (offsets.at(-1) as number) >= end) offsets.pop()
      if (offsets.length === 0) this.#known.delete(producerId)
    }
  }

  #append(record: number, offsets: number[]): void {
    offsets.push(this.log.length)
    this.log.push(record)
    this.writes.set(record, (this.writes.get(record) ?? 0) + 1)
    this.everWritten.add(record)
  }
}
