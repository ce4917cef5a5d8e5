/**
 * An Avro schema as resolution sees it: names resolved, what is only for readers left out. Made from parsed JSON by the
 * rules of the Avro 1.12 specification, "Schema Declaration" and "Names". Pure, any thread.
 */

export const primitiveKinds = ['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string'] as const
export type PrimitiveKind = (typeof primitiveKinds)[number]

export interface PrimitiveType {
  readonly kind: PrimitiveKind
}
interface NamedType {
  /** With its namespace. */
  readonly name: string
  /** With their namespaces. */
  readonly aliases: readonly string[]
}
export interface RecordField {
  readonly name: string
  readonly aliases: readonly string[]
  readonly type: AvroType
  readonly hasDefault: boolean
}
export interface RecordType extends NamedType {
  readonly kind: 'record'
  /** Filled once its name is known: a field may have the record's own type. */
  readonly fields: RecordField[]
}
export interface EnumType extends NamedType {
  readonly kind: 'enum'
  readonly symbols: ReadonlySet<string>
  readonly defaultSymbol: string | null
}
export interface FixedType extends NamedType {
  readonly kind: 'fixed'
  /** Bytes. */
  readonly size: number
}
export interface ArrayType {
  readonly kind: 'array'
  readonly items: AvroType
}
export interface MapType {
  readonly kind: 'map'
  readonly values: AvroType
}
export interface UnionType {
  readonly kind: 'union'
  readonly branches: readonly AvroType[]
}
export type AvroType = PrimitiveType | RecordType | EnumType | FixedType | ArrayType | MapType | UnionType

/** The name of a type as the rules of unions and differences use it. */
export function nameOf(type: AvroType): string {
  return type.kind === 'record' || type.kind === 'enum' || type.kind === 'fixed' ? type.name : type.kind
}

/** The part of a full name after the last dot. */
export function simpleName(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
}
