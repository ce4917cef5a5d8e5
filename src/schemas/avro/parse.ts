/**
 * Whether a text is an Avro schema: JSON of a bounded depth that load.ts takes. Nothing is read from files. Background
 * thread.
 */
import { limits } from '../../model/limits.ts'
import { isDeeperThan } from '../json-schema/json.ts'
import type { Json } from '../json-schema/json.ts'
import { AvroSchemaError, loadAvro } from './load.ts'
import type { AvroType } from './model.ts'

/** null: it is one. Else what is wrong, and where. */
export function avroProblem(text: string): string | null {
  try {
    parseAvro(text)
    return null
  } catch (error) {
    if (error instanceof AvroSchemaError) return error.message
    throw error
  }
}

/** The types of the text. @throws AvroSchemaError */
export function parseAvro(text: string): AvroType {
  let json: Json
  try {
    json = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new AvroSchemaError(`it is not JSON: ${error.message}`)
  }
  if (isDeeperThan(json, limits.schemaDepthMax)) {
    throw new AvroSchemaError(`it is nested deeper than ${limits.schemaDepthMax}`)
  }
  return loadAvro(json)
}
