/**
 * The language in which the messages of the Kafka protocol are written down: one table of fields per message, over all its
 * versions. Readers, writers and TypeScript types follow from it. Pure, any thread; tables are made once, at start-up.
 *
 *   const example = {
 *     throttleTimeMs: int32({ since: 1, ignorable: true }),
 *     topics: structsOf({ name: string(), partitions: arrayOf(int32()) }, { nullableSince: 2 })
 *   }
 *
 * The order of the fields is that on the wire; `since` and `until` are versions and include both ends. A field within a
 * struct is there at most in the versions of that struct. A field with a tag is a tagged one in all versions that have it.
 */

/** TypeScript's value for each kind of scalar, as it is read. */
export interface ScalarValues {
  bool: boolean
  int8: number
  int16: number
  uint16: number
  int32: number
  uint32: number
  /** Up to ±(2^53 − 1); what is beyond is malformed. */
  int64: number
  /** Beyond ±(2^53 − 1) the nearest of both: for what is compared only, as a time or an offset that is looked up. */
  int64Clamped: number
  /** All 64 bits: for ids that others may have chosen. */
  int64Exact: bigint
  float64: number
  /** UTF-8, up to 32 767 bytes. */
  string: string
  /** Read: a view of the message. */
  bytes: Buffer
  /** Read: a view of the message. Written: pieces that are not copied. */
  records: Buffer
  /** The 22 characters that Kafka's tools print: base64url without padding. */
  uuid: string
}
export type ScalarKind = keyof ScalarValues

export type Type =
  | { readonly kind: ScalarKind }
  | { readonly kind: 'array'; readonly element: Type }
  | { readonly kind: 'struct'; readonly fields: FieldTable }

/** What a table says of one field. */
export interface Field<T extends Type = Type, Nullable extends boolean = boolean, Optional extends boolean = boolean> {
  readonly type: T
  readonly isNullable: Nullable
  /** May a writer leave it out? Then the default is written. */
  readonly isOptional: Optional
  readonly since: number
  readonly until: number
  /** First version in which it may be null; Infinity: none. */
  readonly nullableSince: number
  /** −1: not a tagged field. */
  readonly tag: number
  /** What is read where a version, or a message without the tag, lacks the field. */
  readonly default: unknown
  /** May a value other than the default be dropped in versions that lack the field? Otherwise to write one is a bug. */
  readonly isIgnorable: boolean
}

/** Fields by name, in the order of the wire. */
export interface FieldTable {
  readonly [name: string]: Field
}

export interface FieldOptions<Value = unknown> {
  readonly since?: number
  readonly until?: number
  readonly nullableSince?: number
  readonly tag?: number
  /** Without one: zero, false, empty; null for records. */
  readonly default?: Value | null
  readonly ignorable?: boolean
}

type IsNullable<O> = O extends { readonly nullableSince: number } ? true : false
/** A field that has a default of its own, or that some versions lack, may be left out. */
type IsOptional<O> = O extends
  { readonly default: unknown } | { readonly since: number } | { readonly until: number } | { readonly tag: number }
  ? true
  : false
type FieldOf<T extends Type, O> = Field<T, IsNullable<O>, IsOptional<O>>

/** The zero of the ids of topics and directories. */
export const ZERO_UUID = 'AAAAAAAAAAAAAAAAAAAAAA'
const NO_BYTES: Buffer = Buffer.alloc(0)
const NO_ELEMENTS: readonly never[] = Object.freeze([])

const zeros: Record<Exclude<ScalarKind, 'bytes'>, unknown> = {
  bool: false,
  int8: 0,
  int16: 0,
  uint16: 0,
  int32: 0,
  uint32: 0,
  int64: 0,
  int64Clamped: 0,
  int64Exact: 0n,
  float64: 0,
  string: '',
  records: null,
  uuid: ZERO_UUID
}

function zeroOf(type: Type): unknown {
  if (type.kind === 'array') return NO_ELEMENTS
  if (type.kind === 'struct') return defaultsOf(type.fields)
  return type.kind === 'bytes' ? NO_BYTES : zeros[type.kind]
}

/** A struct with all its fields at their defaults. Frozen: it is shared. */
export function defaultsOf(fields: FieldTable): object {
  return Object.freeze(Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.default])))
}

function fieldOf<T extends Type, O extends FieldOptions>(type: T, options: O): FieldOf<T, O> {
  const { since = 0, until = Infinity, nullableSince = Infinity, tag = -1, ignorable = false } = options
  return {
    type,
    isNullable: ('nullableSince' in options) as IsNullable<O>,
    isOptional: ['default', 'since', 'until', 'tag'].some(name => name in options) as IsOptional<O>,
    since,
    until,
    nullableSince,
    tag,
    default: 'default' in options ? options.default : zeroOf(type),
    isIgnorable: ignorable
  }
}

/** Makes a field of that kind. */
type ScalarBuilder<K extends ScalarKind> = <const O extends FieldOptions<ScalarValues[K]> = object>(
  options?: O
) => FieldOf<{ readonly kind: K }, O>

function builderOf<K extends ScalarKind>(kind: K): ScalarBuilder<K> {
  return <const O extends FieldOptions<ScalarValues[K]> = object>(options?: O) =>
    fieldOf({ kind }, options ?? ({} as O))
}

export const bool: ScalarBuilder<'bool'> = builderOf('bool')
export const int8: ScalarBuilder<'int8'> = builderOf('int8')
export const int16: ScalarBuilder<'int16'> = builderOf('int16')
export const uint16: ScalarBuilder<'uint16'> = builderOf('uint16')
export const int32: ScalarBuilder<'int32'> = builderOf('int32')
export const uint32: ScalarBuilder<'uint32'> = builderOf('uint32')
export const int64: ScalarBuilder<'int64'> = builderOf('int64')
export const int64Clamped: ScalarBuilder<'int64Clamped'> = builderOf('int64Clamped')
export const int64Exact: ScalarBuilder<'int64Exact'> = builderOf('int64Exact')
export const float64: ScalarBuilder<'float64'> = builderOf('float64')
export const string: ScalarBuilder<'string'> = builderOf('string')
export const bytes: ScalarBuilder<'bytes'> = builderOf('bytes')
export const records: ScalarBuilder<'records'> = builderOf('records')
export const uuid: ScalarBuilder<'uuid'> = builderOf('uuid')

/** A list of scalars. @param element of it, only its kind counts. */
export function arrayOf<T extends Type, const O extends FieldOptions<readonly never[]> = object>(
  element: Field<T, false, false>,
  options?: O
): FieldOf<{ readonly kind: 'array'; readonly element: T }, O> {
  return fieldOf({ kind: 'array', element: element.type }, options ?? ({} as O))
}

/** A list of structs. */
export function structsOf<F extends FieldTable, const O extends FieldOptions<readonly never[]> = object>(
  fields: F,
  options?: O
): FieldOf<{ readonly kind: 'array'; readonly element: { readonly kind: 'struct'; readonly fields: F } }, O> {
  return fieldOf({ kind: 'array', element: { kind: 'struct', fields } }, options ?? ({} as O))
}

/** One struct, which is never null. */
export function struct<F extends FieldTable, const O extends Omit<FieldOptions, 'default' | 'nullableSince'> = object>(
  fields: F,
  options?: O
): FieldOf<{ readonly kind: 'struct'; readonly fields: F }, O> {
  return fieldOf({ kind: 'struct', fields }, options ?? ({} as O))
}

/** What a table's reader makes: every field of every version, those that a version lacks at their defaults. */
export type ReadOf<F extends FieldTable> = { readonly [N in keyof F]: ReadOfField<F[N]> }
type ReadOfField<D> =
  D extends Field<infer T, infer Nullable, boolean> ? ReadOfType<T> | (Nullable extends true ? null : never) : never
type ReadOfType<T extends Type> = T extends { readonly kind: 'struct'; readonly fields: infer F extends FieldTable }
  ? ReadOf<F>
  : T extends { readonly kind: 'array'; readonly element: infer E extends Type }
    ? readonly ReadOfType<E>[]
    : T extends { readonly kind: 'records' }
      ? Buffer | null
      : T extends { readonly kind: infer K extends ScalarKind }
        ? ScalarValues[K]
        : never

/** What a table's writer takes: whatever is read, and less. */
export type WriteOf<F extends FieldTable> = {
  readonly [N in keyof F as F[N]['isOptional'] extends true ? never : N]: WriteOfField<F[N]>
} & { readonly [N in keyof F as F[N]['isOptional'] extends true ? N : never]?: WriteOfField<F[N]> | undefined }
type WriteOfField<D> =
  D extends Field<infer T, infer Nullable, boolean> ? WriteOfType<T> | (Nullable extends true ? null : never) : never
type WriteOfType<T extends Type> = T extends { readonly kind: 'struct'; readonly fields: infer F extends FieldTable }
  ? WriteOf<F>
  : T extends { readonly kind: 'array'; readonly element: infer E extends Type }
    ? readonly WriteOfType<E>[]
    : T extends { readonly kind: 'records' }
      ? Buffer | readonly Buffer[] | null
      : T extends { readonly kind: infer K extends ScalarKind }
        ? ScalarValues[K]
        : never

/** Whether a field is there in that version. */
export function isIn(field: Field, version: number): boolean {
  return version >= field.since && version <= field.until
}
