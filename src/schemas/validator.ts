/**
 * Whether the value of a record matches a schema. Background thread: a pattern of the schema runs on a value that is the
 * client's too, and may take for ever. The caller ends the thread, and keeps what was compiled.
 *
 * A value is what the schema describes, or the same in the frame of Confluent's serializers:
 *
 *   byte   0        1 … 4           5 …
 *          0        schema id, BE   protobuf: zigzag varints, how many and which message indexes; then the value
 *
 * JSON text and protobuf messages never begin with a 0 byte. An Avro datum may: then it is taken for a frame first.
 */
import { unreachable } from '../base/assert.ts'
import type { SchemaText } from '../model/schemas.ts'
import { checkDatum, DatumError } from './avro/datum.ts'
import { parseAvro } from './avro/parse.ts'
import { compileJsonSchema, invalidity, parseJsonSchema } from './json-schema/parse.ts'
import { cutProblem } from './problems.ts'
import { messageCheck } from './protobuf/message.ts'

/** @returns null: the value matches. Else one sentence that says why not. The bytes are only read. */
export type Validator = (value: Uint8Array) => string | null

/** Bytes of a frame before what it holds. */
const FRAME_BYTES = 5

/**
 * What checks values by that schema.
 *
 * @param text a text without a parseProblem (check.ts); throws the error of its parser otherwise.
 */
export function compileValidator(text: SchemaText): Validator {
  const check = uncutValidator(text)
  return value => {
    const problem = check(value)
    return problem === null ? null : cutProblem(problem)
  }
}

function uncutValidator(text: SchemaText): Validator {
  switch (text.type) {
    case 'json_schema':
      return jsonValidator(text.schema)
    case 'avro':
      return avroValidator(text.schema)
    case 'protobuf':
      return protobufValidator(text.schema)
    default:
      return unreachable(text.type)
  }
}

function jsonValidator(schema: string): Validator {
  const validate = compileJsonSchema(parseJsonSchema(schema))
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  return value => {
    let parsed: unknown
    try {
      parsed = JSON.parse(utf8.decode(isFramed(value) ? value.subarray(FRAME_BYTES) : value))
    } catch (error) {
      if (error instanceof SyntaxError) return `it is not JSON: ${error.message}`
      if (error instanceof TypeError) return 'it is not UTF-8'
      throw error
    }
    try {
      return validate(parsed) === true ? null : invalidity(validate.errors?.[0])
    } catch (error) {
      // A recursive schema follows the value as deep as that goes.
      if (error instanceof RangeError) return 'it is nested too deeply'
      // Of a pattern that was compiled once, and is compiled anew for the machine where it is used often.
      if (error instanceof SyntaxError) return `it cannot be matched: ${error.message}`
      throw error
    }
  }
}

function avroValidator(schema: string): Validator {
  const type = parseAvro(schema)
  const problemFrom = (value: Uint8Array, start: number): string | null => {
    try {
      checkDatum(type, value, start)
      return null
    } catch (error) {
      if (error instanceof DatumError) return error.message
      throw error
    }
  }
  return value => {
    const framed = isFramed(value) ? problemFrom(value, FRAME_BYTES) : 'it has no frame'
    if (framed === null) return null
    const plain = problemFrom(value, 0)
    return plain === null || !isFramed(value) ? plain : framed
  }
}

function protobufValidator(schema: string): Validator {
  const check = messageCheck(schema)
  return value => {
    if (value.length === 0 || value[0] !== 0) return check.plain(value)
    return isFramed(value) ? check.indexed(value.subarray(FRAME_BYTES)) : 'its frame is cut off'
  }
}

function isFramed(value: Uint8Array): boolean {
  return value[0] === 0 && value.length >= FRAME_BYTES
}
