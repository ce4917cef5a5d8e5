/**
 * The schema registry as the gateways see it. Main thread. Implemented by broker/schemas.ts.
 *
 * A subject has versions 1, 2, 3 …; a version names a schema id. Ids are global, 1, 2, 3 …, and never used again. The native
 * API gives every registration a new id; the Confluent-compatible one gives the same text of the same type the id that it
 * has, so one id may stand in several subjects. The latest version of a subject is its highest.
 */
import type { Principal } from './principal.ts'

export const schemaTypes = ['json_schema', 'avro', 'protobuf'] as const
export type SchemaType = (typeof schemaTypes)[number]

/**
 * Which other versions a new one must go together with, and in which direction.
 *
 *   default    json_schema: the rule of the seed, against the latest version, if that is json_schema too: no required field
 *              is added, no property removed. avro and protobuf: as backward, if the latest is of the same type
 *   none       nothing is asked
 *   backward   the new schema reads what was written with the latest version; _transitive: with every version
 *   forward    the latest version reads what is written with the new schema; _transitive: every version does
 *   full       both
 *
 * In all but `default` and `none` a version of another type is incompatible.
 */
export const compatibilityModes = [
  'default',
  'none',
  'backward',
  'backward_transitive',
  'forward',
  'forward_transitive',
  'full',
  'full_transitive'
] as const
export type CompatibilityMode = (typeof compatibilityModes)[number]

/** A schema as it is written. */
export interface SchemaText {
  readonly type: SchemaType
  readonly schema: string
}

/** One version of a subject. */
export interface SchemaVersion extends SchemaText {
  readonly id: number
  readonly subject: string
  /** From 1. */
  readonly version: number
  /** Unix ms. */
  readonly createdAtMs: number
}

export interface RegisterRequest extends SchemaText {
  readonly subject: string
}

/** null: the highest. */
export type VersionWanted = number | null

/**
 * What throws or rejects does so with BrokerError. Reading a subject takes a grant of read on its name; what may not be read
 * is not found. Whatever costs time per schema (parsing, comparing) happens off the main thread, within a bound of time.
 */
export interface SchemaUseCases {
  /**
   * Adds a version under a new id. Resolves when it is durable. Two registrations of a subject never race: the later one is
   * compared with the earlier.
   * @fails FORBIDDEN, NAME_INVALID, SCHEMA_TOO_LARGE, SCHEMA_INVALID, SCHEMA_INCOMPATIBLE, SCHEMAS_TOO_MANY, SCHEMA_TIMEOUT
   */
  register(who: Principal, request: RegisterRequest): Promise<SchemaVersion>
  /** The version of the subject that has this text and type; else adds one, under the id that the text has anywhere. @fails as register */
  registerOnce(who: Principal, request: RegisterRequest): Promise<SchemaVersion>
  /** All versions that the caller may read, by id, then subject. */
  list(who: Principal): readonly SchemaVersion[]
  /** The first version, of those that the caller may read, that has this id. @throws SCHEMA_NOT_FOUND */
  byId(who: Principal, id: number): SchemaVersion
  /** Every version that has this id and may be read, by subject. @throws SCHEMA_NOT_FOUND */
  versionsOfId(who: Principal, id: number): readonly SchemaVersion[]
  /** Subjects that the caller may read, sorted by code unit. */
  subjects(who: Principal): readonly string[]
  /** Ascending. @throws SUBJECT_NOT_FOUND */
  versionsOf(who: Principal, subject: string): readonly SchemaVersion[]
  /** @throws SUBJECT_NOT_FOUND, VERSION_NOT_FOUND */
  version(who: Principal, subject: string, version: VersionWanted): SchemaVersion
  /** The newest version with that text and type. @throws SUBJECT_NOT_FOUND, SCHEMA_NOT_FOUND */
  lookup(who: Principal, request: RegisterRequest): SchemaVersion
  /**
   * Whether a schema would do beside that version, or, `all`, as the next one under the subject's mode. Changes nothing.
   * @returns what is incompatible, in words; empty: nothing.
   * @fails SUBJECT_NOT_FOUND and VERSION_NOT_FOUND of a version; SCHEMA_INVALID, SCHEMA_TIMEOUT
   */
  incompatibilities(
    who: Principal,
    request: RegisterRequest,
    against: VersionWanted | 'all'
  ): Promise<readonly string[]>
  /** The mode of a subject: its own, or null if it follows the general one. subject null: the general one. @throws SUBJECT_NOT_FOUND of one that may not be read */
  modeOf(who: Principal, subject: string | null): CompatibilityMode | null
  /** Resolves when it is durable. A subject need not have versions. mode null: the subject follows the general one again. @fails FORBIDDEN, NAME_INVALID */
  setMode(who: Principal, subject: string | null, mode: CompatibilityMode | null): Promise<void>
}
