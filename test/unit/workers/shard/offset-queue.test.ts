/** Questions for offsets in a shard: they give way, and one that fails leaves the others alone. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FaultPlan } from '../../../../src/disk/fault-plan.ts'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import type { ShardLog } from '../../../../src/log/shard-log.ts'
import { errorCodeOf } from '../../../../src/model/errors.ts'
import { limits } from '../../../../src/model/limits.ts'
import { createAsleepFlag, Doorbell } from '../../../../src/ring/bell.ts'
import { createRing, RingConsumer, RingProducer } from '../../../../src/ring/spsc-ring.ts'
import { write64 } from '../../../../src/wire/primitives/u64.ts'
import { ALL_PARTITIONS, replyTypes, requestTypes } from '../../../../src/wire/shard/messages.ts'
import { ColdWaits } from '../../../../workers/shard/cold-waits.ts'
import { OffsetQueue } from '../../../../workers/shard/offset-queue.ts'
import { ReplyWriter } from '../../../../workers/shard/reply-writer.ts'
import { ManualClock, append, openLog, partitionOf, textRecord } from '../../../support/log-harness.ts'

const topic = { firstHandle: 1, partitionCount: 4, segmentBytes: 2 ** 31 - 1 }

/** A queue over a log with 200 groups in partitions 0 and 2, at times 0, 10, 20 …, none of them in memory. */
class Fixture {
  readonly faults = new FaultPlan()
  readonly log: ShardLog
  readonly #ring = createRing(1024 * 1024)
  readonly #replies = new ReplyWriter(
    new RingProducer(this.#ring),
    new Doorbell(createAsleepFlag(), { postMessage: () => undefined })
  )
  readonly #answers = new RingConsumer(this.#ring)
  readonly queue: OffsetQueue
  /** A clock on which each look costs a tenth of a turn. */
  #ms = 0

  constructor() {
    const disk = new SimulatedDisk({ faults: this.faults })
    const clock = new ManualClock(0)
    const options = { clock, firstSlotBytes: 8 * 1024 * 1024, encodeBufferBytes: 16 * 1024 }
    const first = openLog(disk, options)
    first.table.open(topic)
    for (let i = 0; i < 200; i++) {
      clock.wallMs = i * 10
      const records = [0, 2].map(partition => textRecord(partition, null, 'v'.repeat(10_000)))
      append(first, { firstHandle: 1, records })
    }
    first.close()
    this.log = openLog(disk, options)
    this.log.table.open(topic)
    for (const partition of [0, 2]) partitionOf(this.log, 1, partition).noteGivenTimes(Infinity)
    const monotonicMs = (): number => (this.#ms += 0.1)
    const coldWaits = new ColdWaits(this.#replies, { counters: new Float64Array(64), monotonicMs })
    this.queue = new OffsetQueue(this.log, this.#replies, { monotonicMs, coldWaits })
  }

  ask(requestId: number, partition: number, timestampMs: number | null): void {
    const message = Buffer.alloc(24)
    message[0] = requestTypes.offsets
    message[1] = timestampMs === null ? 0 : 1
    message.writeUInt32BE(requestId, 4)
    message.writeUInt32BE(1, 8)
    message.writeUInt32BE(partition, 12)
    write64(message, 16, timestampMs ?? 0)
    this.queue.take(message, 0)
    // Borrowed until return only.
    message.fill(0xff)
  }

  /** Runs until all is answered. @returns turns it took. */
  runAll(): number {
    let turns = 1
    while (this.queue.run()) turns++
    return turns
  }

  /** Requests answered so far: id, then the error, or partition · earliest · latest · offset · time of each entry. */
  answers(): (string | number | null)[][] {
    this.#replies.flush()
    const all: (string | number | null)[][] = []
    for (let at = this.#answers.next(); at >= 0; at = this.#answers.next()) {
      const bytes = this.#answers.buffer.subarray(at, at + this.#answers.length)
      const id = bytes.readUInt32BE(4)
      if (bytes[0] === replyTypes.failed) all.push([id, errorCodeOf(bytes.readUInt16BE(8))])
      if (bytes[0] === replyTypes.offsets) all.push([id, ...entriesOf(bytes.subarray(8))])
    }
    this.#answers.release()
    return all
  }
}

function entriesOf(bytes: Buffer): (number | null)[] {
  const numbers: (number | null)[] = []
  for (let at = 0; at < bytes.length; at += 40) {
    const [earliest, latest, offset, time] = [8, 16, 24, 32].map(field => Number(bytes.readBigInt64BE(at + field)))
    const isFound = bytes.readUInt32BE(at + 4) === 1
    numbers.push(bytes.readUInt32BE(at), earliest ?? -1, latest ?? -1)
    numbers.push(...(isFound ? [offset ?? -1, time ?? -1] : [null, null]))
  }
  return numbers
}

describe('a question for offsets', () => {
  it('gives way after its share of a turn, and comes to the same answer', () => {
    const fixture = new Fixture()
    fixture.ask(7, 0, 1500)
    const turns = fixture.runAll()
    assert.ok(turns >= 15 && turns <= 25, `150 batches took ${turns} turns of about 10`)
    assert.deepEqual(fixture.answers(), [[7, 0, 0, 200, 150, 1500]])
  })

  it('is refused when too many wait, and the others are answered', () => {
    const fixture = new Fixture()
    for (let id = 0; id <= limits.offsetQuestionsMax; id++) fixture.ask(id, 1, null)
    assert.deepEqual(fixture.answers(), [[limits.offsetQuestionsMax, 'OVERLOADED']])
    fixture.runAll()
    fixture.ask(5, 0, null)
    fixture.runAll()
    const answered = fixture.answers()
    assert.equal(answered.length, limits.offsetQuestionsMax + 1)
    assert.deepEqual(answered.at(-1), [5, 0, 0, 200, null, null])
  })

  it('is answered for all partitions with data here, and for one without', () => {
    const fixture = new Fixture()
    fixture.ask(1, ALL_PARTITIONS, 1985)
    fixture.ask(2, ALL_PARTITIONS, null)
    fixture.ask(3, 2, -1)
    fixture.ask(4, 1, 5)
    fixture.ask(5, 0, 1991)
    fixture.runAll()
    assert.deepEqual(fixture.answers(), [
      [1, 0, 0, 200, 199, 1990, 2, 0, 200, 199, 1990],
      [2, 0, 0, 200, null, null, 2, 0, 200, null, null],
      [3, 2, 0, 200, 0, 0],
      [4],
      [5, 0, 0, 200, null, null]
    ])
  })

  it('fails if its topic is deleted meanwhile', () => {
    const fixture = new Fixture()
    fixture.ask(1, 0, 1500)
    assert.equal(fixture.queue.run(), true)
    fixture.log.table.drop(1)
    fixture.ask(2, 0, null)
    fixture.runAll()
    assert.deepEqual(fixture.answers(), [
      [1, 'TOPIC_NOT_FOUND'],
      [2, 'TOPIC_NOT_FOUND']
    ])
  })

  it('fails alone when the disk refuses a read, and may be asked again', () => {
    const fixture = new Fixture()
    const next = fixture.faults.callCount('slot.read') + 1
    const fault = { kind: 'error', code: 'EIO' } as const
    fixture.faults.arm({ point: 'slot.read', firstCall: next, lastCall: next, fault })
    fixture.ask(1, 0, 1500)
    fixture.ask(2, 2, 1500)
    fixture.ask(3, 0, 1500)
    fixture.runAll()
    assert.deepEqual(fixture.answers(), [
      [1, 'READ_FAILED'],
      [2, 2, 0, 200, 150, 1500],
      [3, 0, 0, 200, 150, 1500]
    ])
  })
})
