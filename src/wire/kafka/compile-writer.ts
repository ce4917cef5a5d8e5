/**
 * Turns a table of fields into the writer of one version: a tree of closures, made once. Pure, any thread.
 * A field that is left out is written as its default. What a version cannot say is dropped only where the table allows it;
 * else it is a bug of ours, whose message names the field.
 */
import { BugError, unreachable } from '../../base/assert.ts'
import { isIn, type Field, type FieldTable, type ScalarKind, type Type } from './schema.ts'
import type { WireWriter } from './writer.ts'

/** Writes one value of the type that it was compiled for. */
export type WriteValue = (writer: WireWriter, value: unknown) => void

/** The version that is compiled, and the name of what is compiled for the messages of errors. */
interface Target {
  readonly version: number
  readonly isFlexible: boolean
  readonly path: string
}

/** What all tables call it; an int16 wherever it is. */
const ERROR_CODE = 'errorCode'

const writeErrorCode: WriteValue = (writer, value) => writer.writeErrorCode(value as number)

interface FieldWrite {
  readonly name: string
  readonly field: Field
  readonly write: WriteValue
}

/** Writes a message in steps: one ends behind each element of its lists, and of lists within them. */
export type StepWriter = (writer: WireWriter, value: unknown) => Generator<void, void>

/** What a version has of a struct. */
interface CompiledFields {
  readonly present: readonly FieldWrite[]
  /** In the order of their tags. */
  readonly tagged: readonly FieldWrite[]
  readonly missing: readonly FieldWrite[]
}

/** @returns the writer of a struct of these fields. @param path what errors call it. */
export function compileWriter(fields: FieldTable, target: Target): WriteValue {
  const { present, tagged, missing } = compileFields(fields, target)
  return (writer, value) => {
    const source = value as Record<string, unknown>
    for (const one of present) one.write(writer, valueOf(one, source))
    checkMissing(writer, missing, source)
    if (target.isFlexible) writeTaggedFields(writer, tagged, source)
  }
}

/** @returns the writer of a message of these fields, which writes the same bytes. */
export function compileStepWriter(fields: FieldTable, target: Target): StepWriter {
  const { present, tagged, missing } = compileFields(fields, target)
  const elements = new Map<FieldWrite, StepWriter>()
  for (const one of present) {
    const { type } = one.field
    if (isOfStructs(type)) elements.set(one, elementSteps(type.element, target, one.name))
  }
  return function* (writer, value) {
    const source = value as Record<string, unknown>
    for (const one of present) {
      const given = valueOf(one, source)
      const stepsOf = elements.get(one)
      if (stepsOf === undefined || given === null) one.write(writer, given)
      else {
        const list = given as readonly unknown[]
        writer.writeLength(list.length, target.isFlexible)
        for (const element of list) yield* stepsOf(writer, element)
      }
    }
    checkMissing(writer, missing, source)
    if (target.isFlexible) writeTaggedFields(writer, tagged, source)
  }
}

function elementSteps(element: Type, target: Target, name: string): StepWriter {
  const inner = { ...target, path: `${target.path}.${name}` }
  if (element.kind === 'struct' && hasLists(element.fields, target.version)) {
    const steps = compileStepWriter(element.fields, inner)
    return function* (writer, value) {
      yield* steps(writer, value)
      // Its lists may be empty.
      yield
    }
  }
  const write = writerOf(element, inner, false)
  return function* (writer, value) {
    write(writer, value)
    yield
  }
}

/** Lists of single values are short in all that we answer. */
function isOfStructs(type: Type): type is Type & { readonly kind: 'array' } {
  return type.kind === 'array' && type.element.kind === 'struct'
}

function hasLists(fields: FieldTable, version: number): boolean {
  return Object.values(fields).some(field => isOfStructs(field.type) && isIn(field, version))
}

function compileFields(fields: FieldTable, target: Target): CompiledFields {
  const { version } = target
  const present: FieldWrite[] = []
  const tagged: FieldWrite[] = []
  const missing: FieldWrite[] = []
  for (const [name, field] of Object.entries(fields)) {
    const inner = { ...target, path: `${target.path}.${name}` }
    if (!isIn(field, version)) {
      if (!field.isIgnorable) missing.push({ name, field, write: refuse(inner) })
    } else if (field.tag >= 0) tagged.push({ name, field, write: writerOf(field.type, inner, true) })
    else if (name === ERROR_CODE) present.push({ name, field, write: writeErrorCode })
    else present.push({ name, field, write: writerOf(field.type, inner, version >= field.nullableSince) })
  }
  tagged.sort((one, other) => one.field.tag - other.field.tag)
  return { present, tagged, missing }
}

function valueOf({ name, field }: FieldWrite, source: Record<string, unknown>): unknown {
  const given = source[name]
  return given === undefined ? field.default : given
}

/** @throws BugError if one of them is not at its default. */
function checkMissing(writer: WireWriter, missing: readonly FieldWrite[], source: Record<string, unknown>): void {
  for (const { name, field, write } of missing) {
    if (!isDefault(field.type, source[name], field.default)) write(writer, source[name])
  }
}

function refuse({ path, version }: Target): WriteValue {
  return () => {
    throw new BugError(`${path} cannot be said in version ${version}`)
  }
}

/** Those at their defaults are left out, as Kafka does. */
function writeTaggedFields(writer: WireWriter, tagged: readonly FieldWrite[], source: Record<string, unknown>): void {
  // Most structs have none.
  if (tagged.length === 0) {
    writer.writeUvarint(0)
    return
  }
  const written = tagged.filter(({ name, field }) => !isDefault(field.type, source[name], field.default))
  writer.writeUvarint(written.length)
  for (const { name, field, write } of written) {
    writer.writeUvarint(field.tag)
    const begun = writer.beginSized()
    write(writer, source[name])
    writer.endSized(begun)
  }
}

/** Whether a reader that does not find the value would make it anyway. */
function isDefault(type: Type, value: unknown, fallback: unknown): boolean {
  if (value === undefined || value === fallback) return true
  if (value === null || fallback === null) return false
  if (type.kind === 'struct') {
    const given = value as Record<string, unknown>
    return Object.entries(type.fields).every(([name, field]) => isDefault(field.type, given[name], field.default))
  }
  if (type.kind !== 'array' && type.kind !== 'bytes') return false
  // Their defaults are empty.
  return (value as { readonly length: number }).length === 0
}

function writerOf(type: Type, target: Target, isNullable: boolean): WriteValue {
  if (type.kind === 'struct') return compileWriter(type.fields, target)
  const { isFlexible, path } = target
  const write = type.kind === 'array' ? arrayWriter(type.element, target) : scalarWriter(type.kind, isFlexible)
  if (isNullable) return write
  return (writer, value) => {
    if (value === null) throw new BugError(`${path} cannot be null in version ${target.version}`)
    write(writer, value)
  }
}

function arrayWriter(element: Type, target: Target): WriteValue {
  const writeElement = writerOf(element, target, false)
  return (writer, value) => {
    const elements = value as readonly unknown[] | null
    writer.writeLength(elements === null ? -1 : elements.length, target.isFlexible)
    if (elements !== null) for (const one of elements) writeElement(writer, one)
  }
}

function scalarWriter(kind: ScalarKind, isFlexible: boolean): WriteValue {
  switch (kind) {
    case 'bool':
      return (writer, value) => writer.writeBool(value as boolean)
    case 'int8':
      return (writer, value) => writer.writeInt8(value as number)
    case 'int16':
      return (writer, value) => writer.writeInt16(value as number)
    case 'uint16':
      return (writer, value) => writer.writeUint16(value as number)
    case 'int32':
      return (writer, value) => writer.writeInt32(value as number)
    case 'uint32':
      return (writer, value) => writer.writeUint32(value as number)
    case 'int64':
    case 'int64Clamped':
      return (writer, value) => writer.writeInt64(value as number)
    case 'int64Exact':
      return (writer, value) => writer.writeInt64Exact(value as bigint)
    case 'float64':
      return (writer, value) => writer.writeFloat64(value as number)
    case 'uuid':
      return (writer, value) => writer.writeUuid(value as string)
    case 'string':
      return (writer, value) => writer.writeText(value as string | null, isFlexible)
    case 'bytes':
      return (writer, value) => writer.writeBytes(value as Buffer | null, isFlexible)
    case 'records':
      return (writer, value) => writer.writeRecords(value as Buffer | readonly Buffer[] | null, isFlexible)
    default:
      return unreachable(kind)
  }
}
