/**
 * What the registry asks of a schema: whether it parses as its type, and whether it goes together with other versions. The
 * face of this folder, with validator.ts. Pure, and of a cost that a client decides within bounds: it runs in a background
 * thread that the caller ends after `limits.schemaCheckMs`. Nothing here reads a file or a network.
 */
import { unreachable } from '../base/assert.ts'
import type { CompatibilityMode, SchemaText, SchemaType } from '../model/schemas.ts'
import { avroDifferences } from './avro/compatibility.ts'
import { avroProblem, parseAvro } from './avro/parse.ts'
import { ComparisonLimitError } from './differences.ts'
import type { Difference } from './differences.ts'
import { schemaDifferences } from './json-schema/comparison.ts'
import { defaultRuleProblems } from './json-schema/default-rule.ts'
import { jsonSchemaProblem, shapedSchema } from './json-schema/parse.ts'
import { cutProblem, Problems } from './problems.ts'
import { protobufDifferences } from './protobuf/compatibility.ts'
import { parseProtobuf, protobufProblem } from './protobuf/parse.ts'

const problemOf: Readonly<Record<SchemaType, (text: string) => string | null>> = {
  json_schema: jsonSchemaProblem,
  avro: avroProblem,
  protobuf: protobufProblem
}
/** A candidate against one version: what keeps it from reading what that wrote, and that from reading what it writes. */
interface Directions {
  reads(): readonly Difference[]
  isRead(): readonly Difference[]
}
/** Parses the candidate once, each version once. */
type Against = (candidate: string) => (version: string) => Directions

function against<Parsed>(
  parse: (text: string) => Parsed,
  differences: (writer: Parsed, reader: Parsed) => readonly Difference[]
): Against {
  return candidate => {
    const next = parse(candidate)
    return version => {
      const old = parse(version)
      return { reads: () => differences(old, next), isRead: () => differences(next, old) }
    }
  }
}

const againstOf: Readonly<Record<SchemaType, Against>> = {
  json_schema: against(shapedSchema, schemaDifferences),
  avro: against(parseAvro, avroDifferences),
  protobuf: against(parseProtobuf, protobufDifferences)
}

/** null: it parses as its type. Else one sentence that names what is wrong and where. */
export function parseProblem(text: SchemaText): string | null {
  const problem = problemOf[text.type](text.schema)
  return problem === null ? null : cutProblem(problem)
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
  if (mode !== 'default') addByMode(candidate, previous, mode, problems)
  else if (latest.type === candidate.type) addByDefault(candidate, latest, problems)
  return problems.sentences
}

/** @param latest of the candidate's type. */
function addByDefault(candidate: SchemaText, latest: SchemaText, problems: Problems): void {
  if (candidate.type === 'json_schema') defaultRuleProblems(candidate.schema, latest.schema, problems)
  else addByMode(candidate, [latest], 'backward', problems)
}

type ComparingMode = Exclude<CompatibilityMode, 'default' | 'none'>

function addByMode(
  candidate: SchemaText,
  previous: readonly SchemaText[],
  mode: ComparingMode,
  problems: Problems
): void {
  const { reads, isRead } = directionsOf(mode)
  const directionsTo = againstOf[candidate.type](candidate.schema)
  for (const version of previous) {
    if (problems.isFull) return
    if (candidate.type !== version.type) {
      problems.add(`type went from ${version.type} to ${candidate.type}`)
      continue
    }
    const directions = directionsTo(version.schema)
    if (reads) addFound(directions.reads, 'the new schema cannot read data of the old one', problems)
    if (isRead) addFound(directions.isRead, 'the old schema cannot read data of the new one', problems)
  }
}

/** Whether the new one reads what the old one wrote, and whether the old one reads what the new one writes. */
function directionsOf(mode: ComparingMode): { reads: boolean; isRead: boolean } {
  switch (mode) {
    case 'backward':
    case 'backward_transitive':
      return { reads: true, isRead: false }
    case 'forward':
    case 'forward_transitive':
      return { reads: false, isRead: true }
    case 'full':
    case 'full_transitive':
      return { reads: true, isRead: true }
    default:
      return unreachable(mode)
  }
}

function addFound(find: () => readonly Difference[], claim: string, problems: Problems): void {
  try {
    for (const { path, words } of find()) problems.add(`${claim}: at ${placeOf(path)}: ${words}`)
  } catch (error) {
    if (!(error instanceof ComparisonLimitError)) throw error
    problems.add(`the schemas cannot be compared: ${error.message}`)
  }
}

/** A place as JSON pointers write one. */
function placeOf(path: readonly string[]): string {
  return `'/${path.map(part => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}'`
}
