/**
 * Sessions of ES01 for the fuzz: frames as lists of fields, so that damage can be done to what they mean (a length, a
 * count, a name) and not to random bytes alone. Nothing here goes through an encoder of the product.
 */
import type { Dice } from '../support/log-random.ts'

/** A field: bytes, and whether they are a number that announces something. */
interface Field {
  readonly bytes: Buffer
  readonly kind: 'length' | 'number' | 'name' | 'content'
}

/** Names as they should not be, and some that are fine and strange. */
const names: readonly Buffer[] = [
  'c080',
  'ff',
  '80',
  'c3',
  'e282',
  'eda080',
  'f4908080',
  'f8888080',
  '00',
  'efbbbf74',
  'f09f9880',
  '2e2e',
  '742f30'
].map(text => Buffer.from(text, 'hex'))

const edges: readonly number[] = [
  0, 1, 2, 3, 4, 5, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x7fff_fffe, 0x7fff_ffff
]
const negatives: readonly number[] = [0x8000_0000, 0x8000_0001, 0xffff_fffe, 0xffff_ffff, 0xffff_ff9c]

function number(value: number, bytes: 2 | 4, kind: Field['kind'] = 'number'): Field {
  const target = Buffer.alloc(bytes)
  target.writeUIntBE(value % 2 ** (8 * bytes), 0, bytes)
  return { bytes: target, kind }
}

const content = (bytes: Buffer): Field => ({ bytes, kind: 'content' })
const name = (text: string): readonly Field[] => [
  number(Buffer.byteLength(text), 2, 'length'),
  { bytes: Buffer.from(text), kind: 'name' }
]

/** Lengths of keys and values: mostly small, now and then larger than a read of a socket. */
function contentBytes(dice: Dice): number {
  const size = dice.below(400)
  if (size === 0) return dice.below(200_000)
  return size < 8 ? dice.below(9_000) : dice.below(60)
}

function produceFields(dice: Dice, topic: string): Field[] {
  const fields: Field[] = [...name(topic)]
  const producerBytes = dice.chance(0.15) ? dice.below(12) : -1
  fields.push(number(producerBytes >>> 0, 4, 'length'))
  if (producerBytes > 0) fields.push({ bytes: Buffer.alloc(producerBytes, 'p'), kind: 'name' })
  const count = dice.chance(0.02) ? dice.below(300) : dice.below(6)
  fields.push(number(count, 4, 'length'))
  for (let i = 0; i < count; i++) {
    const keyBytes = dice.chance(0.5) ? -1 : contentBytes(dice)
    fields.push(number(keyBytes >>> 0, 4, 'length'))
    if (keyBytes > 0) fields.push(content(Buffer.alloc(keyBytes, dice.bytes(8))))
    const valueBytes = contentBytes(dice)
    fields.push(number(valueBytes, 4, 'length'), content(Buffer.alloc(valueBytes, dice.below(256))))
    fields.push(number(dice.pick([0, 1, 2, 3, 0, 0xffff_ffff, 0xffff_ffff, 4]), 4))
    fields.push(content(dice.chance(0.8) ? Buffer.from('8000000000000000', 'hex') : dice.bytes(8)))
  }
  return fields
}

function consumeFields(dice: Dice, topic: string): Field[] {
  const u32 = (): Field => number(dice.chance(0.2) ? dice.pick([...edges, ...negatives]) : dice.below(100_000), 4)
  return [...name(topic), number(dice.below(5), 4), u32(), u32(), u32(), u32()]
}

/** One of many ways in which a field can lie. */
function damagedField(dice: Dice, { bytes, kind }: Field): Field {
  if (kind === 'name') return { bytes: dice.pick(names), kind }
  if (kind === 'content') return content(bytes.subarray(0, dice.below(bytes.length + 1)))
  const width = bytes.length as 2 | 4
  const near = bytes.readUIntBE(0, width) + dice.below(5) - 2
  const value = dice.pick([dice.pick(edges), dice.pick(negatives), near, near, dice.below(2 ** 32)])
  return number(((value % 2 ** 32) + 2 ** 32) % 2 ** 32, width, kind)
}

/** Changes one to three things of a list of fields. */
function damage(dice: Dice, fields: Field[]): Field[] {
  for (let rounds = 1 + dice.below(3); rounds > 0 && fields.length > 0; rounds--) {
    const at = dice.below(fields.length)
    const field = fields[at] as Field
    const way = dice.below(10)
    if (way < 6) fields[at] = damagedField(dice, field)
    else if (way === 6) fields.splice(at, 1)
    else if (way === 7) fields.splice(at, 0, field)
    else if (way === 8) fields.splice(dice.below(fields.length), 0, ...fields.splice(at, 1))
    else fields.splice(at, 0, content(dice.bytes(1 + dice.below(12))))
  }
  return fields
}

const join = (fields: readonly Field[]): Buffer => Buffer.concat(fields.map(({ bytes }) => bytes))

/** Opcode and payload of a frame, before its payload is packed; valid in about half of all cases. */
function frameBody(dice: Dice): { opcode: number; payload: Buffer } {
  const topic = dice.pick(['t', 't', 't', 't', 'u', 'none', '', 'ö', 'x'.repeat(dice.below(300))])
  const kind = dice.below(20)
  if (kind < 2) return { opcode: 0x03, payload: dice.bytes(dice.below(40)) }
  if (kind === 2) return { opcode: dice.pick([0x81, 0x82, 0x83, 0xff]), payload: dice.bytes(dice.below(40)) }
  const opcode = kind < 7 ? 0x02 : 0x01
  const whole = opcode === 0x02 ? consumeFields(dice, topic) : produceFields(dice, topic)
  if (dice.chance(0.55)) return { opcode, payload: join(whole) }
  const payload = join(damage(dice, whole))
  if (dice.chance(0.2)) return { opcode, payload: payload.subarray(0, dice.below(payload.length + 1)) }
  return { opcode, payload: dice.chance(0.1) ? Buffer.concat([payload, dice.bytes(dice.below(30))]) : payload }
}

/** A whole frame, or now and then one whose head lies. @param pack what is done to a payload. */
export function frameOf(dice: Dice, id: number, pack: (payload: Buffer) => Buffer): Buffer {
  const body = frameBody(dice)
  const payload = pack(body.payload)
  const frame = Buffer.alloc(9 + payload.length)
  frame.writeUInt32BE(5 + payload.length, 0)
  frame.writeUInt32BE(id, 4)
  frame[8] = body.opcode
  frame.set(payload, 9)
  const lie = dice.below(250)
  if (lie === 0) frame[8] = dice.below(256)
  else if (lie === 1)
    frame.writeUInt32BE(
      dice.pick([
        0,
        1,
        4,
        5,
        6,
        frame.length,
        frame.length + 1,
        0xfffff,
        0x10_0000,
        0x10_0001,
        0x7fff_ffff,
        0xffff_ffff
      ]),
      0
    )
  else if (lie === 2) frame.writeUInt32BE((frame.readUInt32BE(0) + dice.below(9) - 4) >>> 0, 0)
  return frame
}

/** A hello, mostly a good one. */
export function helloOf(dice: Dice, features: number): Buffer {
  const token = dice.pick(['good', 'good', 'good', '', 'gone', 'unknown', 'x'.repeat(1024)])
  const tokenBytes = dice.chance(0.05) ? Buffer.concat([Buffer.from(token), dice.pick(names)]) : Buffer.from(token)
  const hello = Buffer.alloc(12 + tokenBytes.length)
  hello.write(dice.chance(0.02) ? dice.pick(['ES02', 'GET ', 'es01']) : 'ES01', 'latin1')
  hello.writeUInt32BE(features, 4)
  hello.writeUInt32BE(
    dice.chance(0.02) ? dice.pick([1025, 0x7fff_ffff, 0xffff_ffff, tokenBytes.length + 1]) : tokenBytes.length,
    8
  )
  hello.set(tokenBytes, 12)
  return hello
}
