/** The job `checkSchema`. Background thread, which is ended if a hostile schema keeps it too long. */
import type { CheckSchemaResult, CheckSchemaValue } from '../../src/background/schema-check.ts'
import { incompatibilities, parseProblem } from '../../src/schemas/check.ts'

/** Parses a schema, then compares it with versions that were parsed before they were stored. */
export function checkSchema({ candidate, previous, mode }: CheckSchemaValue): CheckSchemaResult {
  const problem = parseProblem(candidate)
  if (problem !== null) return { kind: 'invalid', problem }
  return { kind: 'compared', incompatibilities: incompatibilities(candidate, previous, mode) }
}
