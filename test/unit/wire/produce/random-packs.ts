/**
 * Random produce bodies in MessagePack, sound, odd and broken, and what a plain recursive decoder with a type check makes of
 * them: the reference for the scanner. Slow and simple on purpose.
 */
import { isUtf8 } from 'node:buffer'
import { limits } from '../../../../src/model/limits.ts'
import type { Random, Reference, ReferenceRecord } from '../json/random-bodies.ts'

const NO_SEQUENCE = -(2n ** 63n)

/** A value as it lies in the bytes. */
export type Pack =
  | { readonly kind: 'nil' | 'boolean' | 'extension' }
  | { readonly kind: 'number'; readonly value: bigint | number }
  | { readonly kind: 'text' | 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'array'; readonly items: readonly Pack[] }
  | { readonly kind: 'map'; readonly pairs: readonly (readonly [Pack, Pack])[] }

class Malformed extends Error {}

class Decoder {
  readonly #bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  take(count: number): Buffer {
    if (this.at + count > this.#bytes.length) throw new Malformed('short')
    this.at += count
    return this.#bytes.subarray(this.at - count, this.at)
  }

  #unsigned(bytes: number): number {
    return this.take(bytes).readUIntBE(0, bytes)
  }

  value(depth: number): Pack {
    const type = this.#unsigned(1)
    if (type < 0x80) return { kind: 'number', value: BigInt(type) }
    if (type < 0x90) return this.#map(type - 0x80, depth)
    if (type < 0xa0) return this.#array(type - 0x90, depth)
    if (type < 0xc0) return { kind: 'text', bytes: this.take(type - 0xa0) }
    if (type >= 0xe0) return { kind: 'number', value: BigInt(type - 0x100) }
    switch (type) {
      case 0xc0:
        return { kind: 'nil' }
      case 0xc2:
      case 0xc3:
        return { kind: 'boolean' }
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return { kind: 'bytes', bytes: this.take(this.#unsigned(2 ** (type - 0xc4))) }
      case 0xc7:
      case 0xc8:
      case 0xc9:
        this.take(1 + this.#unsigned(2 ** (type - 0xc7)))
        return { kind: 'extension' }
      case 0xca:
        return { kind: 'number', value: this.take(4).readFloatBE() }
      case 0xcb:
        return { kind: 'number', value: this.take(8).readDoubleBE() }
      case 0xcc:
      case 0xcd:
      case 0xce:
        return { kind: 'number', value: BigInt(this.#unsigned(2 ** (type - 0xcc))) }
      case 0xcf:
        return { kind: 'number', value: this.take(8).readBigUInt64BE() }
      case 0xd0:
      case 0xd1:
      case 0xd2: {
        const size = 2 ** (type - 0xd0)
        return { kind: 'number', value: BigInt(this.take(size).readIntBE(0, size)) }
      }
      case 0xd3:
        return { kind: 'number', value: this.take(8).readBigInt64BE() }
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        this.take(1 + 2 ** (type - 0xd4))
        return { kind: 'extension' }
      case 0xd9:
      case 0xda:
      case 0xdb:
        return { kind: 'text', bytes: this.take(this.#unsigned(2 ** (type - 0xd9))) }
      case 0xdc:
      case 0xdd:
        return this.#array(this.#unsigned(type === 0xdc ? 2 : 4), depth)
      case 0xde:
      case 0xdf:
        return this.#map(this.#unsigned(type === 0xde ? 2 : 4), depth)
      default:
        throw new Malformed('0xc1')
    }
  }

  #array(count: number, depth: number): Pack {
    if (count > this.#bytes.length - this.at || depth >= limits.jsonDepthMax) throw new Malformed('array')
    return { kind: 'array', items: Array.from({ length: count }, () => this.value(depth + 1)) }
  }

  #map(count: number, depth: number): Pack {
    if (2 * count > this.#bytes.length - this.at || depth >= limits.jsonDepthMax) throw new Malformed('map')
    return {
      kind: 'map',
      pairs: Array.from({ length: count }, () => [this.value(depth + 1), this.value(depth + 1)] as const)
    }
  }
}

/** The value of the last pair of that name. */
function fieldOf(pack: Pack, wanted: string): Pack | null {
  if (pack.kind !== 'map') return null
  const found = pack.pairs.filter(([name]) => name.kind === 'text' && name.bytes.equals(Buffer.from(wanted)))
  return found.at(-1)?.[1] ?? null
}

const isNone = (pack: Pack | null): boolean => pack === null || pack.kind === 'nil'

function bytesOf(pack: Pack | null): Buffer | null {
  if (pack?.kind === 'bytes') return pack.bytes
  return pack?.kind === 'text' && isUtf8(pack.bytes) ? pack.bytes : null
}

function integerOf(pack: Pack, min: bigint, max: bigint): bigint | null {
  if (pack.kind !== 'number') return null
  if (typeof pack.value === 'number' && !Number.isSafeInteger(pack.value)) return null
  const integer = BigInt(pack.value)
  return integer >= min && integer <= max ? integer : null
}

function headersOf(pack: Pack | null, path: string): [string, Buffer | null][] | string {
  if (pack === null || pack.kind === 'nil') return []
  if (pack.kind !== 'array') return path
  const headers: [string, Buffer | null][] = []
  for (const [i, pair] of pack.items.entries()) {
    if (pair.kind !== 'array' || pair.items.length !== 2) return `${path}[${i}]`
    const [name, value] = pair.items
    const isName = name?.kind === 'text' && isUtf8(name.bytes)
    if (!isName || name.bytes.length < 1 || name.bytes.length > limits.headerNameBytesMax) return `${path}[${i}][0]`
    const bytes = bytesOf(value ?? null)
    if (bytes === null && value?.kind !== 'nil') return `${path}[${i}][1]`
    headers.push([name.bytes.toString(), bytes])
  }
  return headers.length > limits.recordHeadersMax ? path : headers
}

function recordOf(pack: Pack, path: string): ReferenceRecord | string {
  if (pack.kind !== 'map') return path
  const key = fieldOf(pack, 'key')
  const keyBytes = bytesOf(key)
  if (keyBytes === null && !isNone(key)) return `${path}.key`
  const value = bytesOf(fieldOf(pack, 'value'))
  if (value === null) return `${path}.value`
  const partition = fieldOf(pack, 'partition') ?? { kind: 'nil' }
  const partitionNumber = isNone(partition) ? -1n : integerOf(partition, 0n, 2n ** 32n - 1n)
  if (partitionNumber === null) return `${path}.partition`
  const sequence = fieldOf(pack, 'sequence') ?? { kind: 'nil' }
  const sequenceNumber = isNone(sequence) ? NO_SEQUENCE : integerOf(sequence, NO_SEQUENCE, 2n ** 63n - 1n)
  if (sequenceNumber === null) return `${path}.sequence`
  const headers = headersOf(fieldOf(pack, 'headers'), `${path}.headers`)
  if (typeof headers === 'string') return headers
  return { key: keyBytes, value, partition: Number(partitionNumber), sequence: sequenceNumber, headers }
}

/** What a produce body means. */
export function referenceOfPack(bytes: Buffer): Reference {
  const decoder = new Decoder(bytes)
  let body: Pack
  try {
    body = decoder.value(0)
    if (decoder.at !== bytes.length) return { outcome: 'malformed' }
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return { outcome: 'malformed' }
  }
  if (body.kind !== 'map') return { outcome: 'ill-typed', field: 'body' }
  const list = fieldOf(body, 'records')
  if (list?.kind !== 'array') return { outcome: 'ill-typed', field: 'records' }
  const records: ReferenceRecord[] = []
  for (const [i, item] of list.items.entries()) {
    const record = recordOf(item, `records[${i}]`)
    if (typeof record === 'string') return { outcome: 'ill-typed', field: record }
    records.push(record)
  }
  const producer = fieldOf(body, 'producer_id')
  const isText = producer?.kind === 'text' && isUtf8(producer.bytes)
  if (!isNone(producer) && !isText) return { outcome: 'ill-typed', field: 'producer_id' }
  if (!isNone(fieldOf(body, 'encoding'))) return { outcome: 'ill-typed', field: 'encoding' }
  return { outcome: 'sound', records, producerId: isText ? producer.bytes.toString() : null }
}

/** A type byte and a big-endian number of that many bytes. */
function head(type: number, size: number, number: number | bigint): Buffer {
  const bytes = Buffer.alloc(1 + size)
  bytes[0] = type
  let rest = BigInt.asUintN(64, BigInt(number))
  for (let i = size; i > 0; i--, rest >>= 8n) bytes[i] = Number(rest & 0xffn)
  return bytes
}

export class PackMaker {
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  /** A length in one of the forms that hold it. @param fixed of the one-byte form, and the most it holds. */
  #sized(
    fixed: readonly [number, number] | null,
    long: readonly (readonly [number, number])[],
    length: number
  ): Buffer {
    const forms = long.filter(([, size]) => length < 2 ** (8 * size)).map(([type, size]) => head(type, size, length))
    if (fixed !== null && length <= fixed[1]) forms.push(head(fixed[0] + length, 0, 0))
    return this.#random.pick(forms)
  }

  text(text: string | Buffer): Buffer {
    const bytes = Buffer.from(text)
    const long = [[0xd9, 1], [0xda, 2], [0xdb, 4]] as const // prettier-ignore
    return Buffer.concat([this.#sized([0xa0, 31], long, bytes.length), bytes])
  }

  bytes(bytes: Buffer): Buffer {
    return Buffer.concat([this.#sized(null, [[0xc4, 1], [0xc5, 2], [0xc6, 4]], bytes.length), bytes]) // prettier-ignore
  }

  array(items: readonly Buffer[]): Buffer {
    return Buffer.concat([this.#sized([0x90, 15], [[0xdc, 2], [0xdd, 4]], items.length), ...items]) // prettier-ignore
  }

  map(pairs: readonly (readonly [Buffer, Buffer])[]): Buffer {
    return Buffer.concat([this.#sized([0x80, 15], [[0xde, 2], [0xdf, 4]], pairs.length), ...pairs.flat()]) // prettier-ignore
  }

  #number(): Buffer {
    const random = this.#random
    const float = Buffer.alloc(9, 0xcb)
    float.writeDoubleBE(random.pick([0, -0, 1, 4294967295, 2 ** 53, 2 ** 53 - 1, -5, 0.5, Infinity, NaN]), 1)
    return random.pick([
      Buffer.from([random.below(0x80)]),
      Buffer.from([0xe0 + random.below(0x20)]),
      head(random.pick([0xcc, 0xd0]), 1, random.below(256)),
      head(random.pick([0xcd, 0xd1]), 2, random.below(65536)),
      head(random.pick([0xce, 0xd2]), 4, random.pick([0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1])),
      head(random.pick([0xcf, 0xd3]), 8, random.pick([0n, 1n, 2n ** 32n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n])),
      Buffer.from([0xca, ...random.pick([[0x3f, 0x80, 0, 0], [0x3f, 0, 0, 0], [0x7f, 0xc0, 0, 0]])]), // prettier-ignore
      float
    ])
  }

  #payload(): Buffer {
    const random = this.#random
    const text = random.pick(['', 'a', 'plain', 'é€😀', 'x'.repeat(31), 'x'.repeat(70), 'y'.repeat(300)])
    if (random.below(2)) return this.text(random.below(30) ? text : Buffer.from([0x61, 0xff]))
    return this.bytes(Buffer.from(Array.from({ length: random.below(40) }, () => random.below(256))))
  }

  #value(depth: number): Buffer {
    const random = this.#random
    const kind = random.below(depth > 3 ? 6 : 9)
    if (kind === 0) return Buffer.from([0xc0])
    if (kind === 1) return Buffer.from([0xc2 + random.below(2)])
    if (kind === 2) return this.#number()
    if (kind <= 4) return this.#payload()
    if (kind === 5) return random.pick([Buffer.from([0xd4, 0, 0]), Buffer.from([0xc7, 2, 9, 1, 1]), head(0xd8, 17, 1)])
    if (kind === 6) return this.array(Array.from({ length: random.below(4) }, () => this.#value(depth + 1)))
    if (kind === 7)
      return Buffer.concat([Buffer.alloc(random.pick([2, 508, 509, 510, 511, 600]), 0x91), Buffer.from([0])])
    return this.map(Array.from({ length: random.below(4) }, () => [this.#value(depth + 1), this.#value(depth + 1)]))
  }

  #pair(name: string, usual: () => Buffer): [Buffer, Buffer] {
    return [this.text(name), this.#random.below(50) === 0 ? this.#value(1) : usual()]
  }

  #headers(): Buffer {
    const random = this.#random
    if (random.below(40) === 0) {
      const count = random.pick([limits.recordHeadersMax, limits.recordHeadersMax + 1])
      return this.array(Array.from({ length: count }, () => this.array([this.text('n'), this.text('v')])))
    }
    const pair = (): Buffer => {
      if (random.below(40) === 0) return this.#value(2)
      const name = random.below(30) ? this.text(random.pick(['n', 'trace', 'é'])) : this.#value(2)
      const parts = [name, random.below(5) ? this.#payload() : Buffer.from([0xc0])]
      if (random.below(40) === 0) parts.length = random.below(2)
      return this.array(parts)
    }
    return this.array(Array.from({ length: random.below(4) }, pair))
  }

  #record(): Buffer {
    const random = this.#random
    if (random.below(80) === 0) return this.#value(1)
    const pairs = [this.#pair('value', () => this.#payload())]
    if (random.below(2)) pairs.push(this.#pair('key', () => this.#payload()))
    if (random.below(3) === 0) pairs.push(this.#pair('partition', () => Buffer.from([random.below(5)])))
    if (random.below(3) === 0)
      pairs.push(this.#pair('sequence', () => (random.below(8) ? Buffer.from([3]) : this.#number())))
    if (random.below(4) === 0) pairs.push(this.#pair('headers', () => this.#headers()))
    if (random.below(8) === 0) pairs.push([this.#value(2), this.#value(2)])
    if (random.below(12) === 0) pairs.push(random.pick(pairs))
    pairs.sort(() => random.below(3) - 1)
    return this.map(pairs)
  }

  /** A body; some of them then damaged in one place. */
  make(): Buffer {
    const random = this.#random
    const list = (): Buffer => this.array(Array.from({ length: random.below(4) }, () => this.#record()))
    const pairs = [this.#pair('records', list)]
    if (random.below(6) === 0) pairs.push(this.#pair('producer_id', () => this.text(random.pick(['p', 'ü', '']))))
    if (random.below(20) === 0) pairs.push(this.#pair('encoding', () => Buffer.from([0xc0])))
    if (random.below(6) === 0) pairs.push([this.#value(1), this.#value(1)])
    if (random.below(10) === 0) pairs.push(this.#pair('records', list))
    pairs.sort(() => random.below(3) - 1)
    const bytes = random.below(60) ? this.map(pairs) : this.#value(0)
    const at = random.below(bytes.length)
    const kind = random.below(10)
    if (kind === 0) return bytes.subarray(0, at)
    if (kind === 1) bytes[at] = (bytes[at] as number) ^ (1 << random.below(8))
    if (kind === 2) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random.below(3))])
    if (kind === 3) return Buffer.concat([bytes, Buffer.from([random.below(256)])])
    if (kind === 4) bytes[at] = random.pick([0xdd, 0xdf, 0xdb, 0xc6, 0xc9, 0xc1, 0xff])
    return bytes
  }
}
