/**
 * Random produce bodies, sound, odd and broken, and what JSON.parse with a plain type check makes of them: the reference
 * for the byte scanner. Slow and simple on purpose.
 */
import { limits } from '../../../../src/model/limits.ts'

export interface Random {
  readonly seed: number
  /** A whole number from 0 to below `end`. */
  below(end: number): number
  pick<T>(items: readonly T[]): T
}

/** A generator with a seed from MILLRACE_SEED or the clock (mulberry32). */
export function makeRandom(): Random {
  const seed = Number(process.env['MILLRACE_SEED'] ?? Date.now() % 0x7fff_ffff)
  let state = seed >>> 0
  const below = (end: number): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % end
  }
  return {
    seed,
    below,
    pick<T>(items: readonly T[]): T {
      return items[below(items.length)] as T
    }
  }
}

export interface ReferenceRecord {
  readonly key: Buffer | null
  readonly value: Buffer
  readonly partition: number
  readonly sequence: bigint
  readonly headers: readonly (readonly [string, Buffer | null])[]
}

export type Reference =
  | { readonly outcome: 'malformed' }
  | { readonly outcome: 'ill-typed'; readonly field: string }
  | { readonly outcome: 'sound'; readonly records: ReferenceRecord[]; readonly producerId: string | null }

const NO_SEQUENCE = -(2n ** 63n)

/** A number as it was written. */
class Written {
  readonly source: string
  constructor(source: string) {
    this.source = source
  }
}

function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  for (const mark of text.replace(/"(?:[^"\\]|\\.)*"/g, '').match(/[[\]{}]/g) ?? []) {
    depth += mark === '[' || mark === '{' ? 1 : -1
    deepest = Math.max(deepest, depth)
  }
  return deepest
}

function parse(bytes: Buffer): { value: unknown } | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    JSON.parse(text)
    if (depthOf(text) > limits.jsonDepthMax) return null
    const value: unknown = JSON.parse(text, (_name, member: unknown, context?: { source?: string }) =>
      typeof member === 'number' ? new Written(context?.source ?? '') : member
    )
    return { value }
  } catch {
    // Not UTF-8 or not JSON: both decoders say so by throwing.
    return null
  }
}

function integerOf(value: unknown, min: bigint, max: bigint): bigint | null {
  if (!(value instanceof Written) || !/^-?\d+$/.test(value.source)) return null
  const integer = BigInt(value.source)
  return integer >= min && integer <= max ? integer : null
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Written)

/** The pairs, or the path of the first that is none. */
function headersOf(headers: unknown, path: string): [string, string | null][] | string {
  if (headers === null) return []
  if (!Array.isArray(headers)) return path
  const pairs: [string, string | null][] = []
  for (const [i, pair] of headers.entries()) {
    if (!Array.isArray(pair)) return `${path}[${i}]`
    const [name, value]: unknown[] = pair
    const length = typeof name === 'string' ? Buffer.byteLength(name) : 0
    if (pair.length > 0 && (typeof name !== 'string' || length < 1 || length > limits.headerNameBytesMax)) {
      return `${path}[${i}][0]`
    }
    if (pair.length > 1 && value !== null && typeof value !== 'string') return `${path}[${i}][1]`
    if (pair.length !== 2 || typeof name !== 'string') return `${path}[${i}]`
    pairs.push([name, typeof value === 'string' ? value : null])
  }
  return pairs.length > limits.recordHeadersMax ? path : pairs
}

/** What base64 means, or null. */
export function base64Of(text: string): Buffer | null {
  const digits = text.length % 4 === 0 ? text.replace(/={1,2}$/, '') : text
  return /^[A-Za-z0-9+/]*$/.test(digits) && digits.length % 4 !== 1 ? Buffer.from(digits, 'base64') : null
}

function recordOf(value: unknown, path: string, isBase64: boolean): ReferenceRecord | string {
  if (!isObject(value)) return path
  const { key = null, value: text, partition = null, sequence = null, headers = null } = value
  if (key !== null && typeof key !== 'string') return `${path}.key`
  if (typeof text !== 'string') return `${path}.value`
  const partitionNumber = partition === null ? -1n : integerOf(partition, 0n, 2n ** 32n - 1n)
  if (partitionNumber === null) return `${path}.partition`
  const sequenceNumber = sequence === null ? NO_SEQUENCE : integerOf(sequence, NO_SEQUENCE, 2n ** 63n - 1n)
  if (sequenceNumber === null) return `${path}.sequence`
  const pairs = headersOf(headers, `${path}.headers`)
  if (typeof pairs === 'string') return pairs
  const bytesOf = (part: string): Buffer | null => (isBase64 ? base64Of(part) : Buffer.from(part))
  const keyBytes = key === null ? null : bytesOf(key)
  if (key !== null && keyBytes === null) return `${path}.key`
  const valueBytes = bytesOf(text)
  if (valueBytes === null) return `${path}.value`
  const parts = pairs.map(
    ([name, part]) => [Buffer.from(name).toString(), part === null ? null : bytesOf(part)] as const
  )
  const bad = parts.findIndex(([, part], i) => part === null && pairs[i]?.[1] !== null)
  if (bad >= 0) return `${path}.headers[${bad}][1]`
  return {
    key: keyBytes,
    value: valueBytes,
    partition: Number(partitionNumber),
    sequence: sequenceNumber,
    headers: parts
  }
}

/** What a produce body means. */
export function referenceOf(bytes: Buffer): Reference {
  const parsed = parse(bytes)
  if (parsed === null) return { outcome: 'malformed' }
  if (!isObject(parsed.value)) return { outcome: 'ill-typed', field: 'body' }
  const { records, producer_id: producerId = null, encoding = null } = parsed.value
  if (!Array.isArray(records)) return { outcome: 'ill-typed', field: 'records' }
  const kept: ReferenceRecord[] = []
  for (const [i, item] of records.entries()) {
    const record = recordOf(item, `records[${i}]`, encoding === 'base64')
    if (typeof record === 'string') return { outcome: 'ill-typed', field: record }
    kept.push(record)
  }
  if (producerId !== null && typeof producerId !== 'string') return { outcome: 'ill-typed', field: 'producer_id' }
  if (encoding !== null && encoding !== 'utf8' && encoding !== 'base64')
    return { outcome: 'ill-typed', field: 'encoding' }
  return {
    outcome: 'sound',
    records: kept,
    producerId: producerId === null ? null : Buffer.from(producerId).toString()
  }
}

const pieces = [
  'a', 'plain text', 'é', '€', '😀', '\\n', '\\"', '\\\\', '\\/', '\\b\\f\\r\\t', '\\u0041', '\\u00e9', '\\u20AC', '\\ud83d\\ude00',
  '\\ud83d', '\\ude00', '\\ud83d\\u0041', '\\ud83d\\ud83d\\ude00', '\\u0000', '\u007f', '\u2028', '{', '}', '[', ']', ',', ':', '0', 'x'.repeat(60)
] // prettier-ignore
const numbers = [
  '0', '-0', '1', '7', '4294967295', '4294967296', '-1', '1.0', '1e2', '1E+2', '0.5', '-0.0e-0', '9007199254740991', '9007199254740993',
  '9223372036854775807', '9223372036854775808', '-9223372036854775808', '-9223372036854775809', '18446744073709551616',
  '123456789012345', '1234567890123456', '-999999999999999999', '1'.repeat(400), '1e999'
] // prettier-ignore
/** Not JSON, each in its own way. */
const junk = [
  '01',
  '+1',
  '1.',
  '.5',
  '1e',
  '-',
  'nul',
  'True',
  'NaN',
  "'a'",
  '"\t"',
  '"\\x"',
  '"\\u12"',
  '"\\u12g4"',
  '"open',
  '/**/',
  ''
]

export class BodyMaker {
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  #space(): string {
    return this.#random.below(4) === 0 ? this.#random.pick([' ', '\n', '\t', '\r\n  ']) : ''
  }

  #string(): string {
    let text = ''
    for (let i = this.#random.below(5); i > 0; i--) text += this.#random.pick(pieces)
    return `"${text}"`
  }

  /** Base64 with and without padding and escapes; some of it broken. */
  #base64(): string {
    const random = this.#random
    const bytes = Buffer.from(Array.from({ length: random.below(9) }, () => random.below(256)))
    let text = bytes.toString('base64')
    if (random.below(3) === 0) text = text.replace(/=+$/, '')
    if (random.below(40) === 0) text += random.pick(['=', 'A', '-', '_', ' ', '====', 'é'])
    if (random.below(3) === 0) text = text.replaceAll('/', '\\/')
    if (random.below(6) === 0) text = text.replaceAll('A', '\\u0041')
    return `"${text}"`
  }

  #headers(text: () => string): string {
    const random = this.#random
    const name = (): string => (random.below(20) ? `"n${random.pick(pieces)}"` : this.#value(0))
    const pair = (): string => {
      if (random.below(40) === 0) return this.#value(0)
      const parts = [name(), random.below(6) ? text() : random.below(6) ? 'null' : this.#value(0)]
      if (random.below(40) === 0) parts.push(text())
      if (random.below(40) === 0) parts.length = random.below(2)
      return `[${parts.map(part => this.#space() + part + this.#space()).join(',')}]`
    }
    if (random.below(40) === 0) {
      const count = random.pick([limits.recordHeadersMax, limits.recordHeadersMax + 1])
      return `[${Array.from({ length: count }, () => '["n","v"]').join(',')}]`
    }
    return this.#array(pair)
  }

  #name(name: string): string {
    if (this.#random.below(12) !== 0) return `"${name}"`
    const at = this.#random.below(name.length)
    const code = name.charCodeAt(at).toString(16).padStart(4, '0')
    return `"${name.slice(0, at)}\\u${code}${name.slice(at + 1)}"`
  }

  #value(depth: number): string {
    const kind = this.#random.below(depth > 3 ? 5 : 8)
    if (kind === 0) return 'null'
    if (kind === 1) return this.#random.pick(['true', 'false'])
    if (kind === 2) return this.#random.pick(numbers)
    if (kind <= 4) return this.#string()
    if (kind === 5) return this.#array(() => this.#value(depth + 1))
    if (kind === 6) return this.#nest(this.#random.pick([1, 2, 3, 508, 509, 510, 511, 512, 600]))
    return this.#object(() => `${this.#string()}${this.#space()}:${this.#value(depth + 1)}`)
  }

  #nest(depth: number): string {
    const open = this.#random.pick(['[', '{"a":'])
    return open.repeat(depth) + '1' + (open === '[' ? ']' : '}').repeat(depth)
  }

  #array(item: () => string): string {
    const items = Array.from({ length: this.#random.below(4) }, () => this.#space() + item() + this.#space())
    return `[${items.length === 0 ? this.#space() : items.join(',')}]`
  }

  #object(member: () => string): string {
    const members = Array.from({ length: this.#random.below(4) }, () => this.#space() + member() + this.#space())
    return `{${members.length === 0 ? this.#space() : members.join(',')}}`
  }

  #member(name: string, usual: () => string): string {
    const odd = this.#random.below(60)
    const value = odd === 0 ? this.#random.pick(junk) : odd < 4 ? this.#value(0) : usual()
    return `${this.#name(name)}${this.#space()}:${this.#space()}${value}`
  }

  #record(isBase64: boolean): string {
    const random = this.#random
    if (random.below(80) === 0) return this.#value(0)
    const text = (): string => (isBase64 ? this.#base64() : this.#string())
    const members = [this.#member('value', text)]
    if (random.below(2)) members.push(this.#member('key', () => (random.below(4) ? text() : 'null')))
    if (random.below(5) === 0) members.push(this.#member('headers', () => this.#headers(text)))
    if (random.below(3) === 0) members.push(this.#member('partition', () => String(random.below(5))))
    if (random.below(3) === 0) members.push(this.#member('sequence', () => random.pick(numbers.slice(0, 4))))
    if (random.below(8) === 0) members.push(this.#member('values', () => this.#value(0)))
    if (random.below(12) === 0) members.push(random.pick(members))
    members.sort(() => random.below(3) - 1)
    return `{${members.map(member => this.#space() + member + this.#space()).join(',')}}`
  }

  #body(): string {
    const random = this.#random
    if (random.below(60) === 0) return this.#value(0)
    const isBase64 = random.below(3) === 0
    const list = (): string => this.#array(() => this.#record(isBase64))
    const members = [this.#member('records', list)]
    if (random.below(6) === 0) members.push(this.#member('producer_id', () => this.#string()))
    if (isBase64) members.push(this.#member('encoding', () => '"base64"'))
    else if (random.below(8) === 0)
      members.push(this.#member('encoding', () => random.pick(['"utf8"', 'null', '"BASE64"', '"hex"', '"ut\\u00668"'])))
    if (random.below(6) === 0) members.push(this.#member('other', () => this.#value(0)))
    if (random.below(10) === 0) members.push(this.#member('records', list))
    members.sort(() => random.below(3) - 1)
    return `${this.#space()}{${members.join(`${this.#space()},`)}}${this.#space()}`
  }

  /** A body; half of them then damaged in one place. */
  make(): Buffer {
    const random = this.#random
    const bytes = Buffer.from(this.#body())
    if (bytes.length === 0) return bytes
    const at = random.below(bytes.length)
    switch (random.below(10)) {
      case 0:
        return bytes.subarray(0, at)
      case 1:
        bytes[at] = (bytes[at] as number) ^ (1 << random.below(8))
        return bytes
      case 2:
        return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random.below(3))])
      case 3:
        return Buffer.concat([
          bytes.subarray(0, at),
          Buffer.from(random.pick([',', '"', '}', ']', '\\', '\0', '1', ' '])),
          bytes.subarray(at)
        ])
      case 4:
        return Buffer.concat([
          bytes,
          random.pick([Buffer.from('x'), Buffer.from('\ufeff'), Buffer.from([0xc3]), Buffer.from('{}')])
        ])
      default:
        return bytes
    }
  }
}
