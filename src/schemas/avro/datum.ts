/**
 * Whether bytes are one datum of an Avro schema, without making values of them: what a record holds is the client's, and a
 * block may say that it has 2^60 items of no bytes each. "Binary Encoding" in the Avro 1.12 specification. Pure,
 * background thread.
 */
import { limits } from '../../model/limits.ts'
import { unreachable } from '../../base/assert.ts'
import { nameOf } from './model.ts'
import type { AvroType } from './model.ts'

/** The bytes are no datum of the schema; `message` says where and why. */
export class DatumError extends Error {
  override readonly name = 'DatumError'
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** @throws DatumError unless `bytes` from `start` on are exactly one datum of the type. */
export function checkDatum(type: AvroType, bytes: Uint8Array, start: number): void {
  const reader = new DatumReader(bytes, start)
  reader.skip(type, 0)
  if (reader.position !== bytes.length) {
    throw new DatumError(`the datum ends at byte ${reader.position} of ${bytes.length}`)
  }
}

class DatumReader {
  position: number
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = bytes
    this.position = start
  }

  /** Goes over one datum. @param depth of types in each other: a recursive schema lets a client choose it. */
  skip(type: AvroType, depth: number): void {
    if (depth > limits.jsonDepthMax) throw new DatumError(`values are nested deeper than ${limits.jsonDepthMax}`)
    switch (type.kind) {
      case 'null':
        return
      case 'boolean':
        return this.#boolean()
      case 'int':
      case 'long':
        return this.#integer(type.kind)
      case 'float':
        return this.#take(4n, 'float')
      case 'double':
        return this.#take(8n, 'double')
      case 'bytes':
        return this.#take(this.#varint(), 'bytes')
      case 'string':
        return this.#string()
      case 'fixed':
        return this.#take(BigInt(type.size), type.name)
      case 'enum':
        this.#index(type.symbols.size, type.name)
        return
      case 'union':
        return this.skip(this.#branch(type.branches), depth + 1)
      case 'record':
        for (const field of type.fields) this.skip(field.type, depth + 1)
        return
      case 'array':
        return this.#blocks(depth, () => this.skip(type.items, depth + 1))
      case 'map':
        return this.#blocks(depth, () => {
          this.#string()
          this.skip(type.values, depth + 1)
        })
      default:
        return unreachable(type)
    }
  }

  #boolean(): void {
    const value = this.#bytes[this.position]
    this.#take(1n, 'boolean')
    if (value !== 0 && value !== 1) throw this.#error('a boolean that is neither 0 nor 1')
  }

  #integer(kind: 'int' | 'long'): void {
    const value = this.#varint()
    if (kind === 'int' && BigInt.asIntN(32, value) !== value)
      throw this.#error(`the int ${value}, which has over 32 bits`)
  }

  #string(): void {
    const length = this.#varint()
    const start = this.position
    this.#take(length, 'string')
    try {
      utf8.decode(this.#bytes.subarray(start, this.position))
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      throw this.#error('a string that is not UTF-8')
    }
  }

  #branch(branches: readonly AvroType[]): AvroType {
    const branch = branches[this.#index(branches.length, `union of ${branches.map(nameOf).slice(0, 5).join(', ')}`)]
    if (branch === undefined) throw this.#error('a branch of a union that has none')
    return branch
  }

  #index(count: number, what: string): number {
    const value = this.#varint()
    if (value < 0n || value >= BigInt(count)) throw this.#error(`index ${value} into the ${count} of ${what}`)
    return Number(value)
  }

  /** Blocks of an array or a map. Items without bytes are alike: one stands for all of its block. */
  #blocks(depth: number, skipItem: () => void): void {
    if (depth > limits.jsonDepthMax) throw new DatumError(`values are nested deeper than ${limits.jsonDepthMax}`)
    for (let count = this.#varint(); count !== 0n; count = this.#varint()) {
      if (count < 0n) this.#varint()
      for (let left = count < 0n ? -count : count; left > 0n; left -= 1n) {
        const start = this.position
        skipItem()
        if (this.position === start) break
      }
    }
  }

  /** A zigzag varint of at most ten bytes. */
  #varint(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.position]
      if (byte === undefined) throw this.#error('its end, within a number')
      this.position += 1
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) {
        const bits = BigInt.asUintN(64, value)
        return (bits >> 1n) ^ -(bits & 1n)
      }
    }
    throw this.#error('a number of more than ten bytes')
  }

  #take(length: bigint, what: string): void {
    if (length < 0n || length > BigInt(this.#bytes.length - this.position)) {
      throw this.#error(`its end, within ${what} of ${length} bytes`)
    }
    this.position += Number(length)
  }

  #error(what: string): DatumError {
    return new DatumError(`at byte ${this.position} the datum has ${what}`)
  }
}
