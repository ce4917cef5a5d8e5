/**
 * Errors as Confluent's schema registry answers them: `{"error_code","message"}`, where the code is the status, or the status
 * and two digits that say what was not found or not valid. Clients choose by it: 404 with 40401 is a subject to register.
 * Pure; main thread.
 */
import { errorTable, type BrokerError, type ErrorCode } from '../../../model/errors.ts'

export interface ConfluentRefusal {
  readonly status: number
  readonly body: Buffer
}

export type ConfluentAnswer = readonly [status: number, errorCode: number]

const INVALID_SCHEMA: ConfluentAnswer = [422, 42201]
const INVALID_VERSION: ConfluentAnswer = [422, 42202]
const INVALID_LEVEL: ConfluentAnswer = [422, 42203]
const INVALID_SUBJECT: ConfluentAnswer = [422, 42208]
const NO_SCHEMA: ConfluentAnswer = [404, 40403]
const STORE_FAILED: ConfluentAnswer = [500, 50001]

/** Where it is not the status of our own table, twice. */
const byCode: Partial<Readonly<Record<ErrorCode, ConfluentAnswer>>> = {
  SUBJECT_NOT_FOUND: [404, 40401],
  VERSION_NOT_FOUND: [404, 40402],
  SCHEMA_NOT_FOUND: NO_SCHEMA,
  LEVEL_NOT_FOUND: [404, 40408],
  SCHEMA_INCOMPATIBLE: [409, 409],
  SCHEMA_INVALID: INVALID_SCHEMA,
  SCHEMA_TOO_LARGE: INVALID_SCHEMA,
  // Not 50002: clients send again what failed with 500, and this takes too long each time.
  SCHEMA_TIMEOUT: INVALID_SCHEMA,
  NAME_INVALID: INVALID_SUBJECT,
  DISK_FULL: STORE_FAILED
}

/** Of FIELD_INVALID, by the field. */
const byField: ReadonlyMap<string, ConfluentAnswer> = new Map([
  ['schema', INVALID_SCHEMA],
  ['schemaType', INVALID_SCHEMA],
  ['references', INVALID_SCHEMA],
  ['metadata', INVALID_SCHEMA],
  ['ruleSet', INVALID_SCHEMA],
  ['version', INVALID_VERSION],
  ['compatibility', INVALID_LEVEL],
  ['id', NO_SCHEMA]
])

/** The status and the code. @param field of FIELD_INVALID. */
export function confluentAnswerOf(code: ErrorCode, field: string | null): ConfluentAnswer {
  const { http } = errorTable[code]
  return (code === 'FIELD_INVALID' ? byField.get(field ?? '') : byCode[code]) ?? [http, http]
}

/** @param text what may be told of it. */
export function confluentRefusal(method: string, { code, details }: BrokerError, text: string): ConfluentRefusal {
  const [status, errorCode] = confluentAnswerOf(code, String(details['field']))
  const isRemoval = code === 'METHOD_NOT_ALLOWED' && method === 'DELETE'
  const message = isRemoval ? `${text}; nothing of this registry is ever deleted` : text
  return { status, body: Buffer.from(JSON.stringify({ error_code: errorCode, message })) }
}
