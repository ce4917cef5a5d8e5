/** Every message of the Kafka protocol, in every version: what is written is read again, and what is hostile is refused. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { compileReader } from '../../../../src/wire/kafka/compile-reader.ts'
import type { AnyMessage } from '../../../../src/wire/kafka/message.ts'
import { WireReader } from '../../../../src/wire/kafka/reader.ts'
import { forEachVersion, randomStruct } from '../../../support/kafka-messages.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../../support/log-random.ts'

const FILE = 'test/unit/wire/kafka/messages.test.ts'
const ROUNDS = process.env['MILLRACE_LONG'] === '1' ? 200 : 10

/** Reads a body that stands between other bytes, as in a receive buffer. */
function decodeWithin(message: AnyMessage, version: number, body: Buffer): object | string {
  const around = Buffer.concat([Buffer.from([0xff, 0xff, 0xff]), body, Buffer.from([1, 1, 1, 1, 1, 1, 1, 1])])
  return message.decode(version, around, 3, 3 + body.length)
}

/** One body as the attacker would have it: some bytes changed, cut, doubled, or made up. */
function distorted(body: Buffer, dice: Dice): Buffer {
  if (dice.chance(0.1)) return dice.bytes(dice.below(100))
  const bytes = Buffer.from(body)
  for (let i = dice.below(4); i >= 0 && bytes.length > 0; i--) {
    bytes[dice.below(bytes.length)] = dice.pick([0, 1, 0x7f, 0x80, 0xff, dice.below(256)])
  }
  const at = dice.below(bytes.length + 1)
  if (dice.chance(0.3)) return bytes.subarray(0, at)
  return dice.chance(0.3)
    ? Buffer.concat([bytes.subarray(0, at), dice.bytes(dice.below(9)), bytes.subarray(at)])
    : bytes
}

/** Elements of all lists within a value, whatever became of it. */
function elementsIn(value: unknown): number {
  if (Buffer.isBuffer(value) || value === null || typeof value !== 'object') return 0
  const own = Array.isArray(value) ? value.length : 0
  return Object.values(value).reduce<number>((count, part) => count + elementsIn(part), own)
}

describe('a message of the Kafka protocol', () => {
  it('is read as it was written, in every version', () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    forEachVersion((message, version) => {
      for (let round = 0; round < ROUNDS; round++) {
        const told = `${message.name} v${version}, ${replayLine(seed, FILE)}`
        const value = randomStruct(message.fields, version, dice)
        const body = message.encode(version, value as never)
        assert.deepStrictEqual(decodeWithin(message, version, body), value, told)
        const again = message.decode(version, body)
        assert.deepStrictEqual(message.encode(version, again as never), body, told)
      }
    })
  })

  it('is refused by the name of a field when its end is missing, wherever it is cut', () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    forEachVersion((message, version) => {
      const body = message.encode(version, randomStruct(message.fields, version, dice) as never)
      const cuts = Array.from({ length: Math.min(body.length, 30) }, (_, i) =>
        i < 15 ? body.length - 1 - i : dice.below(body.length)
      )
      for (const cut of cuts.filter(at => at >= 0)) {
        const told = `${message.name} v${version} cut at ${cut} of ${body.length}, ${replayLine(seed, FILE)}`
        const problem = decodeWithin(message, version, body.subarray(0, cut))
        assert.equal(typeof problem, 'string', told)
        const field = /^[A-Za-z]+|^\(tags\)/.exec(problem as string)?.[0] ?? ''
        assert.ok(field === '(tags)' || field in message.fields, `${told}: ${problem as string}`)
      }
    })
  })

  it('costs no more than its bytes and throws nothing, whatever the bytes are', () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    let refused = 0
    let read = 0
    forEachVersion((message, version) => {
      const readValue = compileReader(message.fields, version, message.isFlexible(version))
      for (let round = 0; round < 3 * ROUNDS; round++) {
        const told = `${message.name} v${version}, ${replayLine(seed, FILE)}`
        const body = distorted(message.encode(version, randomStruct(message.fields, version, dice) as never), dice)
        const reader = new WireReader(body, 0, body.length)
        // What was made before the fault counts too, though nobody sees it.
        assert.ok(elementsIn(readValue(reader)) <= body.length, told)
        const outcome = decodeWithin(message, version, body)
        if (typeof outcome === 'string') {
          assert.match(outcome, /^[A-Za-z(][^ ]* (is|has|leaves) ./, told)
          refused++
        } else read++
      }
    })
    // Else this would be no test of either.
    assert.ok(refused > 500 && read > 500, `${refused} refused, ${read} read`)
  })
})
