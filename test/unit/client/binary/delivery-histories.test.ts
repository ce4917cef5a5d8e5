/**
 * What a lane concludes about its records, against a broker whose truth is known: answers are lost, several in a row;
 * copies come late; the broker forgets the producer, loses power, is given the topic anew; others write in between.
 * 5,000 histories in the normal run, 100,000 with MILLRACE_LONG=1; MILLRACE_SEED replays a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientError, ClientError } from '../../../../src/client/binary/client-error.ts'
import { BatchSize, type LaneParts } from '../../../../src/client/binary/lane-parts.ts'
import { batchingOf } from '../../../../src/client/binary/options.ts'
import { rejectAll, type Outgoing } from '../../../../src/client/binary/outgoing.ts'
import { PartitionLane } from '../../../../src/client/binary/partition-lane.ts'
import { Room } from '../../../../src/client/binary/room.ts'
import type { Es01Client, ProduceExtras } from '../../../../src/client/es01/client.ts'
import type { ProduceRecord, ProduceResult } from '../../../../src/wire/es01/produce-frame.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../../support/log-random.ts'
import { ModelBroker, type Copy } from './model-broker.ts'

const FILE = 'test/unit/client/binary/delivery-histories.test.ts'
const isLong = process.env['MILLRACE_LONG'] === '1'
const HISTORIES = isLong ? 100_000 : 5_000
/** Losses of a batch that leave nothing unknown: all of it, and tails of 1, 2, 4, …, 64 records. */
const LOSSES_MAX = 8

interface Settled {
  readonly outcome: ProduceResult | ClientError
  /** It was there, when that was said. */
  readonly isThere: boolean
}

/** One life of a lane. */
class History {
  readonly broker = new ModelBroker()
  readonly settled = new Map<number, Settled>()
  /** Times that something became of a record, beyond once. */
  settledAgain = 0
  /** Most losses of one batch. */
  lossesMax = 0
  readonly #dice: Dice
  /** How often things happen: some histories are calm, some are not. */
  readonly #lossChance: number
  readonly #eventChance: number
  readonly #lane: PartitionLane
  readonly #room = new Room(1)
  #losses = 0
  #sentCount = 0
  #onAllSettled = (): void => {}

  constructor(dice: Dice) {
    this.#dice = dice
    this.#lossChance = dice.pick([0.1, 0.4, 0.7])
    this.#eventChance = dice.pick([0, 0.05, 0.3])
    const connection = {
      produce: (_topic: string, records: readonly ProduceRecord[], producerId: string, { run }: ProduceExtras) => {
        const first = run?.firstSequence ?? -1
        return this.#attempt({ producerId, first, records: records.map(({ value }) => Number(value)) })
      }
    } as unknown as Es01Client
    const parts: LaneParts = {
      batching: batchingOf({ host: 'h', port: 1, batchRecords: dice.pick([3, 129, 160, 300, 400]) }),
      flight: { run: (_deadlineMs, send) => send(connection, 1), pause: () => Promise.resolve() },
      reconnect: { initialMs: 1, maxMs: 1 },
      requestTimeoutMs: 1,
      isHurried: () => true,
      batchSize: new BatchSize(1024 * 1024)
    }
    this.#lane = new PartitionLane('t', 0, 'first', parts, {
      onTaken: () => {},
      onOutOfRange: (_partition, _count, records, error) => rejectAll(records, error),
      onMadeAnew: () => this.#lane.forget(),
      onWritten: () => {},
      onRejected: () => {}
    })
  }

  async live(): Promise<void> {
    for (let group = this.#dice.below(4); group >= 0; group--) {
      const count = this.#dice.pick([1, 5, 128, 129, 140, 300])
      for (let i = 0; i < count; i++) this.#send(this.#sentCount++)
      if (group === 0 || this.#dice.chance(0.7)) await new Promise<void>(done => (this.#onAllSettled = done))
    }
    this.broker.arriveAll()
  }

  #send(record: number): void {
    const settle = (outcome: ProduceResult | ClientError): void => {
      const isThere = !(outcome instanceof ClientError) && this.broker.log[outcome.offset] === record
      if (this.settled.has(record)) this.settledAgain++
      this.settled.set(record, { outcome, isThere })
      if (this.settled.size === this.#sentCount) this.#onAllSettled()
    }
    const outgoing: Outgoing = {
      record: { value: String(record) },
      bytes: 1,
      sentMs: 0,
      deadlineMs: Infinity,
      generation: this.#room.enter(1),
      mayBeWritten: false,
      resolve: settle,
      reject: settle
    }
    this.#lane.add(outgoing)
  }

  #attempt(copy: Copy): Promise<ProduceResult[]> {
    while (this.#dice.chance(this.#eventChance)) this.#happen()
    if (this.#dice.chance(this.#lossChance)) {
      this.lossesMax = Math.max(this.lossesMax, ++this.#losses)
      this.#lose(copy)
      return Promise.reject(clientError('connection', 'unknown', 'the connection broke', { retryable: true }))
    }
    const refusal = this.#dice.chance(0.05) ? this.#refusal() : this.broker.execute(copy)
    if (refusal instanceof ClientError) return Promise.reject(refusal)
    if (typeof refusal === 'string') return Promise.reject(clientError('refused', 'no', refusal))
    this.#losses = 0
    return Promise.resolve(refusal)
  }

  /** The request did not come through, or will, or did. */
  #lose(copy: Copy): void {
    const fate = this.#dice.below(3)
    if (fate === 1) this.broker.delay(copy)
    if (fate === 2) this.broker.execute(copy)
  }

  /** Something that has nothing to do with sequences, and nothing is written. */
  #refusal(): ClientError {
    return this.#dice.pick([
      clientError('refused', 'no', 'forbidden: no grant'),
      clientError('closed', 'no', 'the client was closed'),
      clientError('connection', 'no', 'no connection', { retryable: true }),
      clientError('refused', 'no', 'rate limited: retry in 1.0s', { retryable: true, retryAfterMs: 1000 }),
      clientError('refused', 'no', "bad request: partition 0 is out of range: topic 't' has 0 partition(s), num")
    ])
  }

  #happen(): void {
    const { broker } = this
    const pick = (end: number): number => this.#dice.below(end)
    const event = pick(12)
    if (event < 5) broker.arrive(pick)
    else if (event < 9) broker.writeOthers(pick(300))
    else if (event === 9) broker.forget()
    else if (event === 10) broker.makeAnew()
    else broker.losePower(pick)
  }
}

/** @returns what is wrong with the conclusions of a history; null if nothing is. */
function faultOf(history: History): string | null {
  const { broker, settled } = history
  if (history.settledAgain > 0) return 'a record settled twice'
  const isCalm = !broker.hasForgotten && !broker.hasLostPower && !broker.wasMadeAnew
  for (const [record, { outcome, isThere }] of settled) {
    if (!(outcome instanceof ClientError)) {
      if (!isThere) return `record ${record} is said to be at ${outcome.offset}, and is not`
    } else if (outcome.written === 'no') {
      if (broker.everWritten.has(record)) return `record ${record} is said not to be written, and is`
    } else if (isCalm && outcome.kind === 'refused' && !/forbidden|range/.test(outcome.message)) {
      if (history.lossesMax <= LOSSES_MAX) return `record ${record} is unknown to a broker that forgot nothing`
    }
    if (!broker.hasForgotten && (broker.writes.get(record) ?? 0) > 1) return `record ${record} was written twice`
  }
  return null
}

test(`in ${HISTORIES} histories nothing is said to be where it is not, or not to be where it is, or is written twice`, async t => {
  const seed = chosenSeed()
  const dice = diceOf(seed)
  t.diagnostic(replayLine(seed, FILE))
  for (let i = 0; i < HISTORIES; i++) {
    const history = new History(dice)
    await history.live()
    assert.equal(faultOf(history), null, `history ${i}; ${replayLine(seed, FILE)}`)
  }
})
