/** Schemas as JSON text. Pure; any thread. */
import type { CompatibilityMode, SchemaVersion } from '../../model/schemas.ts'

/** A version, with the fields of the API in its order. */
export function writeSchema({ id, subject, type, schema, createdAtMs }: SchemaVersion): string {
  return JSON.stringify({ id, subject, type, schema, created_at_ms: createdAtMs })
}

/** What a registration is answered with. */
export function writeSchemaId(id: number): string {
  return JSON.stringify({ id })
}

/** The versions that a subject has. */
export function writeVersions(subject: string, versions: readonly SchemaVersion[]): string {
  return JSON.stringify({ subject, versions: versions.map(({ version }) => version) })
}

/** null: the general mode counts. */
export function writeCompatibility(mode: CompatibilityMode | null): string {
  return JSON.stringify({ compatibility: mode })
}
