/**
 * Whether data written by one protobuf schema can be read by another, by the rules of Confluent's registry ("Protobuf
 * compatibility rules" in "Schema Evolution and Compatibility", and the behaviour of its checker where that page is
 * silent). Fields are compared by number. Pure, background thread.
 *
 *   compatible                                       incompatible
 *   message added or moved                           message removed
 *   enum added, removed; its values too              required field added or removed
 *   field added, removed, renamed                    field of another kind: scalar, message, map
 *   int32 uint32 int64 uint64 bool enum              scalar of another group
 *   sint32 sint64 · fixed32 sfixed32                 message type of another name
 *   fixed64 sfixed64 · string bytes                  number that became repeated, or is no longer
 *   one field moved into a new oneof                 several moved into a oneof, or one into an older oneof
 *   oneof added or removed, field added to it        field removed from a oneof that stays
 *   package changed
 */
import protobuf from 'protobufjs'
import { alike, below, difference, Differences } from '../differences.ts'
import type { Difference } from '../differences.ts'
import type { ParsedProtobuf } from './parse.ts'

const groupOfScalar: ReadonlyMap<string, string> = new Map([
  ...['int32', 'int64', 'uint32', 'uint64', 'bool'].map(type => [type, 'varint'] as const),
  ...['sint32', 'sint64'].map(type => [type, 'zigzag varint'] as const),
  ...['fixed32', 'sfixed32'].map(type => [type, 'fixed 32 bits'] as const),
  ...['fixed64', 'sfixed64'].map(type => [type, 'fixed 64 bits'] as const),
  ...['string', 'bytes'].map(type => [type, 'string or bytes'] as const),
  ['float', 'float'],
  ['double', 'double']
])

/** What keeps data that was written by `before` from being read by `after`. */
export function protobufDifferences(before: ParsedProtobuf, after: ParsedProtobuf): readonly Difference[] {
  return messageListDifferences(before.messages, after.messages, { before, after })
}

interface Files {
  readonly before: ParsedProtobuf
  readonly after: ParsedProtobuf
}

function messageListDifferences(
  before: readonly protobuf.Type[],
  after: readonly protobuf.Type[],
  files: Files
): readonly Difference[] {
  const all = new Differences()
  const kept = new Map(after.map(type => [type.name, type]))
  for (const type of before) {
    const now = kept.get(type.name)
    if (now === undefined) all.add(difference('message was removed', type.name))
    else all.add(below([type.name], messageDifferences(type, now, files)))
  }
  return all.found
}

/** Recursive as deep as messages are declared in each other, which the parser bounds. */
function messageDifferences(before: protobuf.Type, after: protobuf.Type, files: Files): readonly Difference[] {
  const all = new Differences()
  all.add(oneofDifferences(before, after))
  const now = new Map(after.fieldsArray.map(field => [field.id, field]))
  const was = new Map(before.fieldsArray.map(field => [field.id, field]))
  for (const field of before.fieldsArray) {
    const kept = now.get(field.id)
    if (kept !== undefined) all.add(below([String(field.id)], fieldDifferences(field, kept, files)))
    else if (field.required) all.add(difference(`required field ${field.name} was removed`, String(field.id)))
  }
  for (const field of after.fieldsArray) {
    if (field.required && !was.has(field.id)) {
      all.add(difference(`required field ${field.name} was added`, String(field.id)))
    }
  }
  all.add(messageListDifferences(nestedMessages(before), nestedMessages(after), files))
  return all.found
}

function nestedMessages(type: protobuf.Type): protobuf.Type[] {
  return type.nestedArray.filter(each => each instanceof protobuf.Type)
}

function oneofDifferences(before: protobuf.Type, after: protobuf.Type): readonly Difference[] {
  const all = new Differences()
  const oneofBefore = new Map(before.fieldsArray.map(field => [field.id, oneofOf(field)]))
  for (const oneof of after.oneofsArray) {
    if (oneof.isProto3Optional) continue
    const known = oneof.fieldsArray.map(field => oneofBefore.get(field.id)).filter(was => was !== undefined)
    const movedCount = known.filter(was => was === null).length
    if (movedCount > 1) all.add(difference(`${movedCount} fields were moved into the oneof`, oneof.name))
    else if (movedCount === 1 && known.length > 1)
      all.add(difference('a field was moved into an older oneof', oneof.name))
  }
  for (const oneof of before.oneofsArray) {
    const now = Object.hasOwn(after.oneofs ?? {}, oneof.name) ? after.oneofs[oneof.name] : undefined
    if (oneof.isProto3Optional || now === undefined || now.isProto3Optional) continue
    const kept = new Set(now.fieldsArray.map(field => field.id))
    for (const field of oneof.fieldsArray) {
      if (!kept.has(field.id)) all.add(difference(`field ${field.name} was removed from the oneof`, oneof.name))
    }
  }
  return all.found
}

/** null: it is in none. What `optional` makes of a proto3 field is none. */
function oneofOf(field: protobuf.Field): protobuf.OneOf | null {
  return field.partOf === null || field.partOf.isProto3Optional ? null : field.partOf
}

function fieldDifferences(before: protobuf.Field, after: protobuf.Field, files: Files): readonly Difference[] {
  const [was, is] = [kindOf(before), kindOf(after)]
  if (was !== is) return difference(`field ${before.name} was a ${was} and is a ${is}`)
  if (was === 'map') return mapDifferences(before, after, files)
  const found = typeDifferences(before, after, files)
  if (found.length > 0 || was === 'message') return found
  return labelDifferences(before, after)
}

function kindOf(field: protobuf.Field): 'scalar' | 'message' | 'map' {
  if (field instanceof protobuf.MapField) return 'map'
  return field.resolvedType instanceof protobuf.Type ? 'message' : 'scalar'
}

function mapDifferences(before: protobuf.Field, after: protobuf.Field, files: Files): readonly Difference[] {
  if (!(before instanceof protobuf.MapField) || !(after instanceof protobuf.MapField)) return alike
  const isMessage = (field: protobuf.Field): boolean => field.resolvedType instanceof protobuf.Type
  const [wasKey, isKey] = [groupOfScalar.get(before.keyType), groupOfScalar.get(after.keyType)]
  if (wasKey !== isKey) return difference(`keys of map ${before.name} became ${after.keyType}`)
  if (isMessage(before) !== isMessage(after)) return difference(`values of map ${before.name} became ${after.type}`)
  return typeDifferences(before, after, files)
}

/** Of two fields that both have a message, or both have none. */
function typeDifferences(before: protobuf.Field, after: protobuf.Field, files: Files): readonly Difference[] {
  const [was, is] = [before.resolvedType, after.resolvedType]
  if (was instanceof protobuf.Type && is instanceof protobuf.Type) {
    const [wasName, isName] = [localName(was, files.before), localName(is, files.after)]
    return wasName === isName ? alike : difference(`type of field ${before.name} went from ${wasName} to ${isName}`)
  }
  if (groupOf(before) === groupOf(after)) return alike
  return difference(`type of field ${before.name} went from ${before.type} to ${after.type}`)
}

function groupOf(field: protobuf.Field): string {
  return field.resolvedType instanceof protobuf.Enum ? 'varint' : (groupOfScalar.get(field.type) ?? field.type)
}

/** Without the package of the file that declares it, so that a package may be renamed. */
function localName(type: protobuf.Type, file: ParsedProtobuf): string {
  const full = type.fullName.replace(/^\./, '')
  const prefix = file.packageName === '' ? '' : `${file.packageName}.`
  return full.startsWith(prefix) ? full.slice(prefix.length) : full
}

/** Strings and bytes may become repeated and back: the last one counts. Numbers would be packed. */
function labelDifferences(before: protobuf.Field, after: protobuf.Field): readonly Difference[] {
  if (groupOf(before) === 'string or bytes') return alike
  const [was, is] = [labelOf(before), labelOf(after)]
  return was === is ? alike : difference(`field ${before.name} was ${was} and is ${is}`)
}

function labelOf(field: protobuf.Field): 'repeated' | 'required' | 'optional' {
  if (field.repeated) return 'repeated'
  return field.required ? 'required' : 'optional'
}
