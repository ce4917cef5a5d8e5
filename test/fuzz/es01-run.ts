/** A run of the fuzz: groups of sessions, each with its own seed, host and dice, so that one can be played again alone. */
import assert from 'node:assert/strict'
import { diceOf, type Dice } from '../support/log-random.ts'
import { features } from '../../src/wire/es01/handshake.ts'
import { frameOf, helloOf } from './es01-fields.ts'
import type { Expectation, OracleWorld } from './es01-oracle.ts'
import { FuzzHost, noPlant, type Plant } from './es01-receiver.ts'
import { FuzzSession, play } from './es01-session.ts'
import { packedOf } from './gzip-layers.ts'

/** Sessions that ask for gzip: some, as each frame of them costs many times what a plain one does. */
const PACKED_SHARE = 0.2
/** What a connection may hold of the pool whatever it was sent: one read, and answers that are gathered and written. */
const FREE_BYTES = 256 * 1024
/** What it may hold for a byte that came or is to go: a buffer four times the pending bytes, of the next size of the pool. */
const BYTES_PER_BYTE = 8

export interface FuzzCounts {
  frames: number
  /** Of them: on connections that speak gzip. */
  packedFrames: number
  sessions: number
  receivedBytes: number
  /** Of the pools: made anew, and the most that was out beyond what is free, for a byte of the session. */
  madeBytes: number
  heldPerByte: number
  readonly outcomes: Map<string, number>
}

/** Counts of zero. */
export function newCounts(): FuzzCounts {
  return {
    frames: 0,
    packedFrames: 0,
    sessions: 0,
    receivedBytes: 0,
    madeBytes: 0,
    heldPerByte: 0,
    outcomes: new Map()
  }
}

function worldOf(dice: Dice): OracleWorld {
  return {
    isGuarded: dice.chance(0.3),
    features: features.gzip,
    frameLengthMax: 0x10_0000,
    fetchRecordsMax: 1000,
    fetchBytesMax: dice.pick([1000, 100_000]),
    topics: { t: 4, u: 1 }
  }
}

function sessionBytes(dice: Dice, { frameLengthMax }: OracleWorld): Buffer {
  const asked = dice.chance(PACKED_SHARE) ? dice.pick([1, 1, 0xffff_ffff]) : dice.pick([0, 0, 2, 0xffff_fffe])
  const parts = [helloOf(dice, asked)]
  const pack = (payload: Buffer): Buffer => ((asked & 1) === 0 ? payload : packedOf(dice, payload, frameLengthMax))
  for (let frames = dice.below(80); frames > 0; frames--) parts.push(frameOf(dice, dice.below(2 ** 32), pack))
  const bytes = Buffer.concat(parts)
  return dice.chance(0.1) ? bytes.subarray(0, dice.below(bytes.length + 1)) : bytes
}

/** Plays one group and adds it to the counts. @throws AssertionError that says what is wrong and how to see it again. */
export async function playGroup(
  seed: number,
  replay: string,
  counts: FuzzCounts,
  plant: Plant = noPlant
): Promise<void> {
  const dice = diceOf(seed)
  const world = worldOf(dice)
  const host = new FuzzHost(dice, world, plant)
  // Twice on one host: the second meets buffers that others have used.
  for (const sessions of [1 + dice.below(3), 1 + dice.below(3)]) {
    const sent = Array.from({ length: sessions }, () => sessionBytes(dice, world))
    const players = sent.map(bytes => new FuzzSession(host, dice, bytes))
    await play(host, dice, players)
    for (const [i, player] of players.entries()) {
      const complaint = player.complaint()
      assert.equal(
        complaint,
        null,
        `${complaint}\nsession ${i}: ${sent[i]?.subarray(0, 2_000).toString('hex')}\n${replay}`
      )
      count(counts, player.expected)
    }
    const bytes = players.reduce((sum, player) => sum + player.sentBytes + player.writtenBytes, 0)
    const held = (host.pool.takePeak() - players.length * FREE_BYTES) / Math.max(1, bytes)
    assert.ok(held <= BYTES_PER_BYTE, `${held} bytes were held for each that came or went\n${replay}`)
    counts.heldPerByte = Math.max(counts.heldPerByte, held)
    counts.sessions += players.length
    counts.receivedBytes += players.reduce((sum, player) => sum + player.sentBytes, 0)
    for (const player of players) player.vanish()
    host.pool.takePeak()
  }
  counts.madeBytes += host.pool.madeBytes
  const left = [
    host.pool.outstandingBytes,
    host.requestBudget.usedBytes,
    host.replyBudget.usedBytes,
    host.probe.refused.bug
  ]
  assert.deepEqual(left, [0, 0, 0, 0], `buffers, request bytes and reply bytes are back, and no bug was met\n${replay}`)
}

function count(counts: FuzzCounts, { helloStatus, features, outcomes, end }: Expectation): void {
  counts.frames += outcomes.length
  if (features !== 0) counts.packedFrames += outcomes.length
  const add = (name: string): unknown => counts.outcomes.set(name, (counts.outcomes.get(name) ?? 0) + 1)
  for (const { kind, text } of outcomes) add(kind === 'error' ? text.replace(': ', '') : kind)
  if (helloStatus !== 0) add(`hello ${helloStatus ?? 'not whole'}`)
  else if (end === 'closed') add('closed')
}
