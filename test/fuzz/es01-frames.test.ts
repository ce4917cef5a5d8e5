/**
 * Millions of frames, whole and damaged in what they mean, cut anywhere, several connections at once: each gets the answer
 * that the specification gives it, nothing breaks, nothing stays held, and memory follows what came, not what was announced.
 * 20,000 frames; a million with MILLRACE_LONG=1; as many as FUZZ_FRAMES says.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RequestReader } from '../../src/gateway/es01/requests.ts'
import { opcodes } from '../../src/wire/es01/frame.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { replayLine } from '../support/log-random.ts'
import { usedBytes } from '../support/used-bytes.ts'
import { CountingPool, type Plant } from './es01-receiver.ts'
import { newCounts, playGroup } from './es01-run.ts'

const FILE = 'test/fuzz/es01-frames.test.ts'
const frames = Number(process.env['FUZZ_FRAMES'] ?? (isLong ? 1_000_000 : 20_000))
const MIB = 1024 * 1024

/** The command that plays the group of that seed alone. */
const replay = (group: number): string =>
  replayLine(group, FILE).replace('MILLRACE_SEED', 'FUZZ_FRAMES=1 MILLRACE_SEED')

test(`${frames} frames are each answered, refused or waited for as the specification says`, async t => {
  t.diagnostic(replayLine(seed, FILE))
  const limit = Error.stackTraceLimit
  // Most refusals are errors: where each was made is not what is looked at here.
  Error.stackTraceLimit = 0
  t.after(() => (Error.stackTraceLimit = limit))
  const counts = newCounts()
  await playGroup(seed, replay(seed), counts)
  const before = await usedBytes()
  let most = before
  for (let group = seed + 1; counts.frames < frames; group++) {
    await playGroup(group, replay(group), counts)
    if (group % 2_000 === 0) most = Math.max(most, await usedBytes())
  }
  const grown = (await usedBytes()) - before
  const made = counts.madeBytes / counts.receivedBytes
  t.diagnostic(
    `${counts.frames} frames, ${counts.packedFrames} of them gzip, of ${counts.sessions} sessions, ${counts.receivedBytes} bytes`
  )
  t.diagnostic([...counts.outcomes].map(([name, count]) => `${name} ${count}`).join(', '))
  t.diagnostic(
    `pools made ${made.toFixed(2)} bytes for each that came; held at most ${counts.heldPerByte.toFixed(2)} for each beyond what is free`
  )
  t.diagnostic(
    `in use ${(before / MIB).toFixed(1)} MiB at first, ${(most / MIB).toFixed(1)} MiB at most, ${(grown / MIB).toFixed(1)} MiB more at the end`
  )
  // A pool begins empty in each group, so that each connection pays for its first buffers: what was announced does not count.
  assert.ok(made < 8, `${made} bytes were made for each that came`)
  assert.ok(grown < 16 * MIB, `${grown} bytes more are in use`)
  if (frames < 20_000) return
  assert.ok(counts.packedFrames > frames / 20, `${counts.packedFrames} frames were gzip`)
  for (const outcome of ['produced', 'consumed', 'pong', 'decode', 'bad request', 'not found', 'forbidden', 'closed']) {
    assert.ok((counts.outcomes.get(outcome) ?? 0) > 50, `${outcome} came up ${counts.outcomes.get(outcome) ?? 0} times`)
  }
})

type Take = RequestReader['take']
type FrameHead = Parameters<Take>[1]

/** The product's reader with one thing done otherwise. */
function instead(change: (take: Take) => Take): Plant {
  return {
    requests(real) {
      const changed = { largestAnswerBytes: real.largestAnswerBytes, take: change((...frame) => real.take(...frame)) }
      return changed as unknown as RequestReader
    }
  }
}

/** Strikes one frame in 256, by its id. */
const isStruck = ({ requestId }: FrameHead): boolean => requestId % 256 === 7

class GreedyPool extends CountingPool {
  override take(bytes: number): Buffer {
    return super.take(Math.max(bytes, 4 * MIB))
  }
}

class LeakyPool extends CountingPool {
  override give(buffer: Buffer): void {
    if (this.madeBytes % 7 > 0 || buffer.length < 64 * 1024) super.give(buffer)
  }
}

/** Hands out a buffer that somebody has. */
class SharingPool extends CountingPool {
  readonly #last = new Map<number, Buffer>()

  override take(bytes: number): Buffer {
    const buffer = super.take(bytes)
    const last = this.#last.get(buffer.length)
    this.#last.set(buffer.length, buffer)
    return last ?? buffer
  }
}

/** Each with what is said of it. */
const plants: readonly (readonly [string, Plant, RegExp])[] = [
  [
    'a decoder that overlooks the last byte of a frame',
    instead(take => (sink, head, bytes, start, end) => {
      return take(sink, head, bytes, start, isStruck(head) ? Math.max(start, end - 1) : end)
    }),
    /answered '\d+ error decode: ' where/
  ],
  [
    'a request that is dropped',
    instead(
      take =>
        (sink, head, ...range) =>
          isStruck(head) ? 'answered' : take(sink, head, ...range)
    ),
    /: (\d+) of (?!\1)\d+ answers/
  ],
  [
    'a ping that is answered twice',
    instead(take => (sink, head, ...range) => {
      if (isStruck(head) && head.opcode === opcodes.ping) take(sink, head, ...range)
      return take(sink, head, ...range)
    }),
    /answered '\d+ pong/
  ],
  [
    'a decoder that throws',
    instead(take => (sink, head, ...range) => {
      if (isStruck(head)) throw new RangeError('planted')
      return take(sink, head, ...range)
    }),
    /it was closed/
  ],
  ['buffers for far more than came', { pool: () => new GreedyPool(16 * MIB) }, /bytes were held for each/],
  ['buffers that are not given back', { pool: () => new LeakyPool(16 * MIB) }, /are back|bytes were held/],
  ['a buffer that two connections have', { pool: () => new SharingPool(16 * MIB) }, /./]
]

for (const [what, plant, complaint] of plants) {
  test(`the fuzz notices ${what}`, async () => {
    await assert.rejects(async () => {
      const counts = newCounts()
      for (let group = 1; counts.frames < 20_000; group++) await playGroup(group, '', counts, plant)
    }, complaint)
  })
}
