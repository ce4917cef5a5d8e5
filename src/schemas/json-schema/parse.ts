/**
 * Whether a text is a JSON Schema: JSON of a bounded depth, valid by the meta-schema of its draft (draft.ts), and compiled
 * once, which proves its patterns and that every `$ref` leads to a place in it. A `$ref` to another document is refused,
 * never fetched. Background thread: compiling may take long, and the schema is the client's.
 */
import { Ajv } from 'ajv'
import type { AnySchema, ErrorObject, ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import draft06 from 'ajv/dist/refs/json-schema-draft-06.json' with { type: 'json' }
import { limits } from '../../model/limits.ts'
import { draftOf, inModernWords } from './draft.ts'
import type { Draft } from './draft.ts'
import { isDeeperThan, isJsonObject } from './json.ts'
import type { Json } from './json.ts'
import { replaceKeywords } from './keywords.ts'
import { patternOf } from './pattern.ts'
import { ShapedSchema } from './shapes.ts'

/** A schema of that text, in the words of draft-06 or later. */
export interface ParsedSchema {
  readonly root: Json & AnySchema
  readonly draft: Draft
  /** Of the text. */
  readonly characters: number
}

/** The text is no JSON Schema that we can use; `message` says what is wrong with it and where. */
class JsonSchemaError extends Error {
  override readonly name = 'JsonSchemaError'
}

/** null: it is one. Else what is wrong, and where. */
export function jsonSchemaProblem(text: string): string | null {
  try {
    compileJsonSchema(parseJsonSchema(text))
    return null
  } catch (error) {
    if (error instanceof JsonSchemaError) return error.message
    throw error
  }
}

/** @throws JsonSchemaError unless it is JSON of the shape and depth of a schema. */
export function parseJsonSchema(text: string): ParsedSchema {
  const parsed = parsedJson(text)
  if (typeof parsed !== 'boolean' && !isJsonObject(parsed)) {
    throw new JsonSchemaError('a JSON Schema is an object or a boolean')
  }
  if (isDeeperThan(parsed, limits.schemaDepthMax)) {
    throw new JsonSchemaError(`it is nested deeper than ${limits.schemaDepthMax}`)
  }
  if (isJsonObject(parsed)) {
    if (parsed['$schema'] !== undefined && typeof parsed['$schema'] !== 'string') {
      throw new JsonSchemaError('$schema is not a string')
    }
    if (Object.hasOwn(parsed, '$async')) throw new JsonSchemaError('$async is not supported')
  }
  const draft = draftOf(parsed)
  const root = inModernWords(parsed, draft)
  return { root: typeof root === 'boolean' || isJsonObject(root) ? root : {}, draft, characters: text.length }
}

/** The same, ready to be compared. @throws JsonSchemaError */
export function shapedSchema(text: string): ShapedSchema {
  const { root, draft } = parseJsonSchema(text)
  return new ShapedSchema(root, draft)
}

/**
 * What stops at the first error is nested code, as deep as a place has keywords, and takes V8 long from a few thousand on;
 * what finds all errors is flat. Schemas whose text is longer than this are compiled to that.
 */
const NESTED_CODE_CHARACTERS_MAX = 32 * 1024

/** @throws JsonSchemaError if the schema is invalid or refers to what it does not have. */
export function compileJsonSchema(schema: ParsedSchema): ValidateFunction {
  const ajv = ajvFor(schema)
  if (ajv.validateSchema(schema.root) !== true) throw new JsonSchemaError(invalidity(ajv.errors?.[0]))
  try {
    return ajv.compile(schema.root)
  } catch (error) {
    // What ajv throws is about the schema, or a stack that its own recursion used up.
    if (error instanceof RangeError) {
      throw new JsonSchemaError('its references form a ring, or it has more parts in one place than can be compiled')
    }
    if (error instanceof Error) throw new JsonSchemaError(compileProblem(error.message))
    throw error
  }
}

/** One sentence about what ajv found first. */
export function invalidity(error: ErrorObject | undefined): string {
  if (error === undefined) return 'it is not valid'
  const allowed: unknown = error.params['allowedValues']
  const values = Array.isArray(allowed) ? `: ${allowed.map(inWords).join(', ')}` : ''
  return `at '${error.instancePath === '' ? '/' : error.instancePath}': ${error.message ?? error.keyword}${values}`
}

function inWords(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function compileProblem(message: string): string {
  const reference = /^can't resolve reference (\S+)/.exec(message)?.[1]
  if (reference === undefined) return message
  return `$ref ${reference} leads to nothing in it, and other documents are not fetched`
}

function parsedJson(text: string): Json {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new JsonSchemaError(`it is not JSON: ${error.message}`)
  }
}

/** An instance per schema: what it compiles, it keeps. */
function ajvFor({ draft, characters }: ParsedSchema): Ajv {
  const allErrors = characters > NESTED_CODE_CHARACTERS_MAX
  // ajv's optimizer takes quadratic time, and V8 has its own.
  const code = { optimize: false, regExp: compiledPattern }
  // ownProperties: without it, `{}` has a property that is called `constructor`.
  const ajv = madeAjv(draft, { strict: false, logger: false, allErrors, ownProperties: true, code })
  addFormats.default(ajv)
  // Without `$schema` an `id` is a draft-04 id or a note; ajv would refuse it.
  ajv.removeKeyword('id')
  replaceKeywords(ajv)
  return ajv
}

/** V8 compiles a pattern when it is first used, and only then finds it too large, or nested too deeply for its stack. */
function compiledPattern(pattern: string): RegExp {
  const made = patternOf(pattern)
  // Once for each width of characters.
  for (const text of ['', '\u0100']) made.test(text)
  return made
}
/** How ajv would write a pattern into code of its own; nothing is written here. */
compiledPattern.code = 'new RegExp'

function madeAjv(draft: Draft, options: ConstructorParameters<typeof Ajv>[0]): Ajv {
  if (draft === '2019-09') return new Ajv2019(options)
  if (draft === '2020-12') return new Ajv2020(options)
  const ajv = new Ajv(options)
  ajv.addMetaSchema(draft06)
  return ajv
}
