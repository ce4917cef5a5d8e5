/**
 * Whether a JSON value is a default of an Avro type: "Complex Types", table of field defaults, in the Avro 1.12
 * specification. Of a union any branch may be meant. Pure, any thread.
 */
import { isJsonObject, own } from '../json-schema/json.ts'
import type { Json } from '../json-schema/json.ts'
import type { AvroType, RecordType } from './model.ts'

/** @param value nested at most `limits.schemaDepthMax` deep: each step into it goes as deep as the value does. */
export function isDefaultOf(type: AvroType, value: Json): boolean {
  switch (type.kind) {
    case 'null':
      return value === null
    case 'boolean':
      return typeof value === 'boolean'
    case 'int':
      return Number.isInteger(value) && Math.abs(Number(value) + 0.5) < 2 ** 31
    case 'long':
      return Number.isInteger(value)
    case 'float':
    case 'double':
      return typeof value === 'number'
    case 'string':
    case 'enum':
      return typeof value === 'string'
    case 'bytes':
    case 'fixed':
      return typeof value === 'string' && isBytes(value)
    case 'array':
      return Array.isArray(value) && value.every((each: Json) => isDefaultOf(type.items, each))
    case 'map':
      return (
        isJsonObject(value) && Object.values(value).every(each => each !== undefined && isDefaultOf(type.values, each))
      )
    case 'union':
      return type.branches.some(branch => branch.kind !== 'union' && isDefaultOf(branch, value))
    case 'record':
      return isRecordDefault(type, value)
  }
}

/** A character stands for the byte of its code. */
function isBytes(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 255) return false
  return true
}

/** What the value does not say, the field's own default must. */
function isRecordDefault(type: RecordType, value: Json): boolean {
  if (!isJsonObject(value)) return false
  return type.fields.every(field => {
    const given = own(value, field.name)
    return given === undefined ? field.hasDefault : isDefaultOf(field.type, given)
  })
}
