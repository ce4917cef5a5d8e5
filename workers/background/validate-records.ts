/**
 * The job `validateRecords`. Background thread, which is ended if a hostile pattern keeps it too long. Owns the schemas that
 * this thread has compiled, the newest used last; bounded by limits.readySchemas*. It must never keep anything of a record.
 */
import { moved, type Moved } from '../../src/background/moved.ts'
import type { ValidateRecordsResult, ValidateRecordsValue } from '../../src/background/record-validation.ts'
import { ScannedRecords } from '../../src/background/scanned-records.ts'
import { limits } from '../../src/model/limits.ts'
import type { SchemaText } from '../../src/model/schemas.ts'
import { compileValidator, type Validator } from '../../src/schemas/validator.ts'

interface Ready {
  readonly validate: Validator
  readonly textBytes: number
}

/** By schema id; the one used last is the last. */
const ready = new Map<number, Ready>()
let readyBytes = 0

/** Matches each value with the schema, up to the first that does not. An empty value is a tombstone, and passes. */
export function validateRecords({
  schemaId,
  text,
  records
}: ValidateRecordsValue): ValidateRecordsResult | Moved<ValidateRecordsResult> {
  const { memory } = records
  const validate = validatorOf(schemaId, text)
  if (validate === null) return moved<ValidateRecordsResult>({ kind: 'textless', memory }, [memory])
  const scanned = new ScannedRecords(records)
  for (let index = 0; index < scanned.count; index++) {
    const value = scanned.valueOf(index)
    const problem = value.length === 0 ? null : validate(value)
    if (problem === null) continue
    scanned.free()
    return { kind: 'mismatch', index, problem }
  }
  return moved<ValidateRecordsResult>({ kind: 'valid', memory }, [memory])
}

/** @returns null if it is not ready here and there is no text to make it of. */
function validatorOf(id: number, text: SchemaText | null): Validator | null {
  const known = ready.get(id)
  if (known !== undefined) {
    ready.delete(id)
    ready.set(id, known)
    return known.validate
  }
  if (text === null) return null
  const made = { validate: compileValidator(text), textBytes: Buffer.byteLength(text.schema) }
  ready.set(id, made)
  readyBytes += made.textBytes
  for (const [oldId, { textBytes }] of ready) {
    const isWithin = ready.size <= limits.readySchemasMax && readyBytes <= limits.readySchemaBytesMax
    if (isWithin || oldId === id) break
    ready.delete(oldId)
    readyBytes -= textBytes
  }
  return made.validate
}
