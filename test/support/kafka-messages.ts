/** Random messages of the Kafka protocol after our tables, and what a reader is to make of them. */
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { assignment, subscription } from '../../src/wire/kafka/consumer-protocol.ts'
import type { AnyMessage } from '../../src/wire/kafka/message.ts'
import { isIn, type FieldTable, type ScalarKind, type Type } from '../../src/wire/kafka/schema.ts'
import type { Dice } from './log-random.ts'

/** Every message of every API, and those within others. */
export const allMessages: readonly AnyMessage[] = [
  ...Object.values(apis).flatMap(api => [api.request, api.response]),
  subscription,
  assignment
]

/** Calls for every version of every message. */
export function forEachVersion(visit: (message: AnyMessage, version: number) => void): void {
  for (const message of allMessages) {
    for (let version = message.versions.first; version <= message.versions.last; version++) visit(message, version)
  }
}

/** Texts whose lengths lie where the compact form takes one more byte, and whose characters take more than one. */
const texts = ['', 'a', 'topic-1', 'ü\u0000€😀', 'x\ufffdy', 'n'.repeat(126), 'n'.repeat(127), 'é'.repeat(200)]

/** A struct in which every field of the version has some value. */
export function randomStruct(fields: FieldTable, version: number, dice: Dice): Record<string, unknown> {
  const value: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(fields)) {
    if (!isIn(field, version)) value[name] = field.default
    else if (version >= field.nullableSince && dice.chance(0.2)) value[name] = null
    else
      value[name] = dice.chance(0.1) && field.default !== null ? field.default : randomValue(field.type, version, dice)
  }
  return value
}

function randomValue(type: Type, version: number, dice: Dice): unknown {
  if (type.kind === 'struct') return randomStruct(type.fields, version, dice)
  if (type.kind !== 'array') return randomScalar(type.kind, dice)
  const count = dice.chance(0.03) ? 130 : dice.below(4)
  const isSmall = type.element.kind !== 'struct' || count < 4
  return Array.from({ length: isSmall ? count : 3 }, () => randomValue(type.element, version, dice))
}

function randomScalar(kind: ScalarKind, dice: Dice): unknown {
  const signed = (bits: number): number => {
    const half = 2 ** (bits - 1)
    return dice.pick([0, 1, -1, half - 1, -half, dice.below(2 * half) - half])
  }
  switch (kind) {
    case 'bool':
      return dice.chance(0.5)
    case 'int8':
      return signed(8)
    case 'int16':
      return signed(16)
    case 'uint16':
      return dice.pick([0, 0xffff, dice.below(0x1_0000)])
    case 'int32':
      return signed(32)
    case 'uint32':
      return dice.pick([0, 0xffff_ffff, dice.below(2 ** 32)])
    case 'int64':
    case 'int64Clamped':
      return dice.pick([
        0,
        -1,
        Number.MAX_SAFE_INTEGER,
        Number.MIN_SAFE_INTEGER,
        Math.floor((dice.unit() - 0.5) * 2 ** 53)
      ])
    case 'int64Exact':
      return dice.pick([0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), dice.bytes(8).readBigInt64BE(0)])
    case 'float64':
      return dice.pick([0, -0.5, Math.PI, Infinity, dice.unit()])
    case 'string':
      return dice.pick(texts)
    case 'bytes':
    case 'records':
      return dice.bytes(dice.pick([0, 1, 126, 127, 128, dice.below(1000)]))
    case 'uuid':
      return dice.bytes(16).toString('base64url')
  }
}
