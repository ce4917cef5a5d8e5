/**
 * Turns a table of fields into the reader of one version: a tree of closures, made once. Pure, any thread.
 * A struct is read as a copy of its defaults with the fields of the version written over, so that all that a table ever
 * makes have the same fields in the same order.
 */
import { unreachable } from '../../base/assert.ts'
import { UUID_BYTES, type WireReader } from './reader.ts'
import { defaultsOf, isIn, type Field, type FieldTable, type ScalarKind, type Type } from './schema.ts'

/** Reads one value; after a failure it is to be thrown away. */
export type ReadValue = (reader: WireReader) => unknown

/** @returns the reader of a struct of these fields. */
export function compileReader(fields: FieldTable, version: number, isFlexible: boolean): ReadValue {
  const blank = defaultsOf(fields)
  const names: string[] = []
  const reads: ReadValue[] = []
  const tagged = new Map<number, TaggedRead>()
  for (const [name, field] of Object.entries(fields)) {
    if (!isIn(field, version)) continue
    const read = readerOf(field.type, version, isFlexible, version >= field.nullableSince)
    if (field.tag >= 0) tagged.set(field.tag, { name, read })
    else {
      names.push(name)
      reads.push(read)
    }
  }
  return reader => {
    const value: Record<string, unknown> = { ...blank }
    for (let i = 0; i < reads.length; i++) {
      const name = names[i] as string
      value[name] = (reads[i] as ReadValue)(reader)
      if (reader.hasFailed) {
        reader.failedIn(name)
        return value
      }
    }
    if (isFlexible) readTaggedFields(reader, tagged, value)
    return value
  }
}

interface TaggedRead {
  readonly name: string
  readonly read: ReadValue
}

function readTaggedFields(reader: WireReader, tagged: Map<number, TaggedRead>, value: Record<string, unknown>): void {
  // Nearly always there are none.
  if (reader.at < reader.end && reader.bytes[reader.at] === 0) {
    reader.at++
    return
  }
  if (tagged.size === 0) reader.skipTaggedFields()
  else {
    let count = reader.readUvarint()
    while (count-- > 0 && !reader.hasFailed) {
      const tag = reader.readUvarint()
      const size = reader.readUvarint()
      const known = tagged.get(tag)
      if (known === undefined || reader.hasFailed) reader.skip(size)
      else readTagged(reader, known, size, value)
    }
  }
  if (reader.hasFailed) reader.failedIn('(tags)')
}

/** A tagged field ends where its size says: its value sees nothing beyond, and leaves nothing. */
function readTagged(reader: WireReader, known: TaggedRead, size: number, value: Record<string, unknown>): void {
  const messageEnd = reader.end
  const fieldEnd = reader.at + size
  if (fieldEnd > messageEnd) reader.fail(`has ${size} bytes, but ${messageEnd - reader.at} are left`)
  else {
    reader.end = fieldEnd
    value[known.name] = known.read(reader)
    if (reader.at !== fieldEnd) reader.fail(`leaves ${fieldEnd - reader.at} of its ${size} bytes`)
    reader.end = messageEnd
  }
  if (reader.hasFailed) {
    reader.at = messageEnd
    reader.failedIn(known.name)
  }
}

function readerOf(type: Type, version: number, isFlexible: boolean, isNullable: boolean): ReadValue {
  if (type.kind === 'struct') return compileReader(type.fields, version, isFlexible)
  if (type.kind !== 'array') return scalarReader(type.kind, isFlexible, isNullable)
  const elementBytes = leastBytes(type.element, version, isFlexible)
  const readElement = readerOf(type.element, version, isFlexible, false)
  return reader => {
    const count = isFlexible ? reader.readCompactLength() : reader.readInt32()
    if (!reader.admitsCount(count, elementBytes, isNullable)) return null
    const elements: unknown[] = []
    for (let i = 0; i < count; i++) {
      elements.push(readElement(reader))
      if (reader.hasFailed) {
        reader.failedIn(`[${i}]`)
        break
      }
    }
    return elements
  }
}

function scalarReader(kind: ScalarKind, isFlexible: boolean, isNullable: boolean): ReadValue {
  switch (kind) {
    case 'bool':
      return reader => reader.readBool()
    case 'int8':
      return reader => reader.readInt8()
    case 'int16':
      return reader => reader.readInt16()
    case 'uint16':
      return reader => reader.readUint16()
    case 'int32':
      return reader => reader.readInt32()
    case 'uint32':
      return reader => reader.readUint32()
    case 'int64':
      return reader => reader.readInt64()
    case 'int64Clamped':
      return reader => reader.readInt64Clamped()
    case 'int64Exact':
      return reader => reader.readInt64Exact()
    case 'float64':
      return reader => reader.readFloat64()
    case 'uuid':
      return reader => reader.readUuid()
    case 'string':
      return isFlexible
        ? reader => reader.readText(reader.readCompactLength(), isNullable)
        : reader => reader.readText(reader.readInt16(), isNullable)
    case 'bytes':
    case 'records':
      return isFlexible
        ? reader => reader.readView(reader.readCompactLength(), isNullable)
        : reader => reader.readView(reader.readInt32(), isNullable)
    default:
      return unreachable(kind)
  }
}

const scalarBytes: Record<ScalarKind, number> = {
  bool: 1,
  int8: 1,
  int16: 2,
  uint16: 2,
  int32: 4,
  uint32: 4,
  int64: 8,
  int64Clamped: 8,
  int64Exact: 8,
  float64: 8,
  uuid: UUID_BYTES,
  string: 2,
  bytes: 4,
  records: 4
}

/** The least bytes that a value can take; at least 1, so that no count is believed for nothing. */
function leastBytes(type: Type, version: number, isFlexible: boolean): number {
  if (type.kind === 'struct') {
    const present = Object.values(type.fields).filter(field => isIn(field, version) && field.tag < 0)
    const sum = (bytes: number, field: Field): number => bytes + leastBytes(field.type, version, isFlexible)
    return Math.max(1, present.reduce(sum, isFlexible ? 1 : 0))
  }
  const hasLength = ['array', 'string', 'bytes', 'records'].includes(type.kind)
  if (hasLength && isFlexible) return 1
  return type.kind === 'array' ? 4 : scalarBytes[type.kind]
}
