/** Payloads as gzip streams for the fuzz: good ones of every form, and ones that are torn, wrong, or lie about their size. */
import { crc32, gzipSync } from 'node:zlib'
import type { Dice } from '../support/log-random.ts'

const FHCRC = 2
const FEXTRA = 4
const FNAME = 8
const FCOMMENT = 16

function member(dice: Dice, bytes: Buffer): Buffer {
  return gzipSync(bytes, { level: dice.pick([0, 1, 6, 9]) })
}

/** The same stream with everything that a header may have. */
function withHeader(dice: Dice, stream: Buffer): Buffer {
  const flags = dice.below(32) & ~1
  const text = (): Buffer => Buffer.concat([Buffer.alloc(dice.below(60), 'n'), Buffer.alloc(1)])
  const head = Buffer.from(stream.subarray(0, 10))
  head[3] = flags
  const parts: Buffer[] = [head]
  if ((flags & FEXTRA) !== 0) {
    const extra = dice.bytes(dice.below(80))
    parts.push(Buffer.from([extra.length & 0xff, extra.length >> 8]), extra)
  }
  if ((flags & FNAME) !== 0) parts.push(text())
  if ((flags & FCOMMENT) !== 0) parts.push(text())
  if ((flags & FHCRC) !== 0) {
    const crc = crc32(Buffer.concat(parts))
    parts.push(Buffer.from([crc & 0xff, (crc >> 8) & 0xff]))
  }
  return Buffer.concat([...parts, stream.subarray(10)])
}

/** The payload in several members, some of them empty. */
function inMembers(dice: Dice, payload: Buffer): Buffer {
  const cuts = Array.from({ length: 1 + dice.below(3) }, () => dice.below(payload.length + 1)).sort((a, b) => a - b)
  const parts = [0, ...cuts].map((start, i) => payload.subarray(start, cuts[i] ?? payload.length))
  return Buffer.concat(parts.map(part => member(dice, part)))
}

/** Zeros behind the payload, so that it is about as large as a frame may be, or far larger. */
function bomb(dice: Dice, payload: Buffer, frameLengthMax: number): Buffer {
  const most = frameLengthMax - 5
  const total = dice.pick([most - 1, most, most + 1, frameLengthMax, 4 * frameLengthMax, 70_000])
  const whole = Buffer.concat([payload, Buffer.alloc(Math.max(0, total - payload.length))])
  return dice.chance(0.3) ? inMembers(dice, whole) : gzipSync(whole, { level: 1 })
}

/** Another number in its last four bytes, which say how much it holds. */
function withSize(stream: Buffer, bytes: number): Buffer {
  const changed = Buffer.from(stream)
  changed.writeUInt32LE(bytes >>> 0, changed.length - 4)
  return changed
}

const trailers: readonly Buffer[] = ['00', '0000000000', '1f', '1f8b', '1f8b08', '1f8b0800', 'ff', '504b0304'].map(
  text => Buffer.from(text, 'hex')
)

/** @returns the payload as a stream, good in about three of four cases. */
export function packedOf(dice: Dice, payload: Buffer, frameLengthMax: number): Buffer {
  const way = dice.below(60)
  if (way < 36) return member(dice, payload)
  if (way < 40) return withHeader(dice, member(dice, payload))
  if (way < 44) return inMembers(dice, payload)
  if (way === 44) return bomb(dice, payload, frameLengthMax)
  if (way === 45) return payload
  const stream = way < 56 ? member(dice, payload) : inMembers(dice, payload)
  if (way < 48) return stream.subarray(0, dice.below(stream.length + 1))
  if (way < 51) {
    const at = dice.below(stream.length)
    stream[at] = (stream[at] as number) ^ (1 << dice.below(8))
    return stream
  }
  if (way < 54) return withSize(stream, dice.pick([0, 1, payload.length + 1, 70_000, 0x7fff_ffff, 0xffff_ffff]))
  if (way === 54) return withSize(stream, payload.length - 1)
  return Buffer.concat([stream, dice.chance(0.7) ? dice.pick(trailers) : dice.bytes(dice.below(40))])
}
