/** Schemas and compatibility levels as the API of Confluent's schema registry has them. Pure; any thread. */
import type { CompatibilityMode, SchemaType, SchemaVersion } from '../../model/schemas.ts'

/** Names of types. */
export const confluentTypes: Readonly<Record<SchemaType, string>> = {
  avro: 'AVRO',
  json_schema: 'JSON',
  protobuf: 'PROTOBUF'
}

/** Names of levels, each that of a mode in capitals; `default` has none there. */
export const confluentLevels = [
  'NONE',
  'BACKWARD',
  'BACKWARD_TRANSITIVE',
  'FORWARD',
  'FORWARD_TRANSITIVE',
  'FULL',
  'FULL_TRANSITIVE'
] as const

/** `default` shows as what it is nearest to, and what is general there where nothing was chosen. */
export function levelOf(mode: CompatibilityMode): string {
  return mode === 'default' ? 'BACKWARD' : mode.toUpperCase()
}

/** The type of a schema, left out of Avro: clients that know no other take it so. */
function typeOf(type: SchemaType): object {
  return type === 'avro' ? {} : { schemaType: confluentTypes[type] }
}

/** A schema that was asked for by its id. */
export function writeConfluentSchema({ type, schema }: SchemaVersion): string {
  return JSON.stringify({ ...typeOf(type), schema })
}

/** A version of a subject. */
export function writeConfluentVersion({ subject, version, id, type, schema }: SchemaVersion): string {
  return JSON.stringify({ subject, version, id, ...typeOf(type), schema })
}

/** Where a schema is: a subject, and its version there. */
export function writeConfluentPlace({ subject, version }: SchemaVersion): string {
  return JSON.stringify({ subject, version })
}

/** The level that counts, or that counted until now. */
export function writeLevel(mode: CompatibilityMode): string {
  return JSON.stringify({ compatibilityLevel: levelOf(mode) })
}

/** The level that was chosen: another field, in the API too. */
export function writeChosenLevel(mode: CompatibilityMode): string {
  return JSON.stringify({ compatibility: levelOf(mode) })
}

/** Whether a schema would do. @param isVerbose with what keeps it from that, in words. */
export function writeVerdict(problems: readonly string[], isVerbose: boolean): string {
  const verdict = { is_compatible: problems.length === 0 }
  return JSON.stringify(isVerbose ? { ...verdict, messages: problems } : verdict)
}
