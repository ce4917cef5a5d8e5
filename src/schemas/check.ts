/**
 * What the registry asks of a schema: whether it parses as its type, and whether it goes together with other versions. The
 * face of this folder. Pure, and of a cost that a client decides within bounds: it runs in a background thread that the
 * caller ends after `limits.schemaCheckMs`. Nothing here reads a file or a network.
 */
import type { CompatibilityMode, SchemaText } from '../model/schemas.ts'
import { defaultRuleProblems } from './json-schema/default-rule.ts'
import { jsonSchemaProblem } from './json-schema/parse.ts'
import { Problems } from './problems.ts'

/** null: it parses as its type. Else one sentence that names what is wrong and where. */
export function parseProblem(text: SchemaText): string | null {
  if (text.type === 'json_schema') return jsonSchemaProblem(text.schema)
  return `schemas of type ${text.type} are not taken yet`
}

/**
 * What keeps `candidate` from being the next version.
 *
 * @param candidate a text without a parseProblem.
 * @param previous the versions that the mode asks for, newest first: the latest alone, or all of them; each parses.
 * @returns sentences, at most `limits.schemaProblemsMax`; empty: compatible.
 */
export function incompatibilities(
  candidate: SchemaText,
  previous: readonly SchemaText[],
  mode: CompatibilityMode
): string[] {
  const problems = new Problems()
  const latest = previous[0]
  if (mode === 'none' || latest === undefined) return []
  if (mode === 'default') {
    if (candidate.type === 'json_schema' && latest.type === 'json_schema') {
      defaultRuleProblems(candidate.schema, latest.schema, problems)
    }
  } else {
    problems.add(`the mode ${mode} is not there yet`)
  }
  return problems.sentences
}
