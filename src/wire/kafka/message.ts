/**
 * A message of the Kafka protocol in all its versions, and an API as the pair of two. Pure, any thread. Each version is
 * compiled at its first use.
 */
import { assert } from '../../base/assert.ts'
import { compileReader, type ReadValue } from './compile-reader.ts'
import { compileStepWriter, compileWriter, type StepWriter, type WriteValue } from './compile-writer.ts'
import { WireReader } from './reader.ts'
import type { FieldTable, ReadOf, WriteOf } from './schema.ts'
import { WireWriter } from './writer.ts'

/** Versions that the tables describe, both ends included, and the first one with compact forms and tagged fields. */
export interface Versions {
  readonly first: number
  readonly last: number
  /** Infinity: none. */
  readonly flexibleSince: number
}

export class Message<F extends FieldTable = FieldTable> {
  readonly name: string
  readonly fields: F
  readonly versions: Versions
  readonly #readers: (ReadValue | undefined)[] = []
  readonly #writers: (WriteValue | undefined)[] = []
  readonly #stepWriters: (StepWriter | undefined)[] = []

  constructor(name: string, versions: Versions, fields: F) {
    this.name = name
    this.versions = versions
    this.fields = fields
  }

  isFlexible(version: number): boolean {
    return version >= this.versions.flexibleSince
  }

  /**
   * Reads the body bytes[start, end).
   *
   * @param version one of `versions`: to be checked by the caller.
   * @returns the message, in which bytes and records are views; or a text that says which field is malformed and how.
   * Bytes behind the message are ignored, as Kafka does.
   */
  decode(version: number, bytes: Buffer, start = 0, end = bytes.length): ReadOf<F> | string {
    this.#check(version)
    const read = (this.#readers[version] ??= compileReader(this.fields, version, this.isFlexible(version)))
    const reader = new WireReader(bytes, start, end)
    const value = read(reader)
    return reader.hasFailed ? reader.problem() : (value as ReadOf<F>)
  }

  /** Writes a body. @param version likewise. Records are borrowed until the pieces of the writer are sent. */
  write(writer: WireWriter, version: number, value: WriteOf<F>): void {
    this.#check(version)
    const write = (this.#writers[version] ??= compileWriter(this.fields, this.#target(version)))
    write(writer, value)
  }

  /** Writes the same in steps, each of them one element of a list at most. @param version likewise. */
  steps(writer: WireWriter, version: number, value: WriteOf<F>): Generator<void, void> {
    this.#check(version)
    const steps = (this.#stepWriters[version] ??= compileStepWriter(this.fields, this.#target(version)))
    return steps(writer, value)
  }

  #target(version: number) {
    return { version, isFlexible: this.isFlexible(version), path: this.name }
  }

  /** @returns a body alone, in one buffer. */
  encode(version: number, value: WriteOf<F>): Buffer {
    const writer = new WireWriter()
    this.write(writer, version, value)
    return Buffer.concat(writer.finish())
  }

  #check(version: number): void {
    const { first, last } = this.versions
    assert(Number.isInteger(version) && version >= first && version <= last, 'the version was checked before')
  }
}

/** One request and its response. */
export interface Api<Request extends FieldTable = FieldTable, Response extends FieldTable = FieldTable> {
  /** Its name in the protocol. */
  readonly name: string
  readonly key: number
  readonly versions: Versions
  readonly request: Message<Request>
  readonly response: Message<Response>
}

/** A message whose fields are not known to the compiler: what was decoded is to be taken for the type of its table. */
export interface AnyMessage {
  readonly name: string
  readonly fields: FieldTable
  readonly versions: Versions
  isFlexible(version: number): boolean
  decode(version: number, bytes: Buffer, start?: number, end?: number): object | string
  write(writer: WireWriter, version: number, value: never): void
  encode(version: number, value: never): Buffer
}

/** Any of the APIs: to be told apart by `key`. */
export interface AnyApi {
  readonly name: string
  readonly key: number
  readonly versions: Versions
  readonly request: AnyMessage
  readonly response: AnyMessage
}

interface ApiTables<Request extends FieldTable, Response extends FieldTable> extends Omit<Versions, 'flexibleSince'> {
  readonly key: number
  /** Absent: none is flexible. */
  readonly flexibleSince?: number
  readonly request: Request
  readonly response: Response
}

export function apiOf<Request extends FieldTable, Response extends FieldTable>(
  name: string,
  tables: ApiTables<Request, Response>
): Api<Request, Response> {
  const { key, first, last, flexibleSince = Infinity } = tables
  const versions = { first, last, flexibleSince }
  return {
    name,
    key,
    versions,
    request: new Message(`${name}Request`, versions, tables.request),
    response: new Message(`${name}Response`, versions, tables.response)
  }
}
