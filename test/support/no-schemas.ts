/** The registry of a broker that has no schemas: for tests of what is not about them. */
import { BrokerError } from '../../src/model/errors.ts'
import type { SchemaUseCases } from '../../src/model/schemas.ts'

const noSchema = (): BrokerError => new BrokerError('SCHEMA_NOT_FOUND', { schema: 'none' })

function refuse(): never {
  throw noSchema()
}

export const noSchemas: SchemaUseCases = {
  register: () => Promise.reject(noSchema()),
  registerOnce: () => Promise.reject(noSchema()),
  list: () => [],
  byId: refuse,
  versionsOfId: refuse,
  subjects: () => [],
  versionsOf: refuse,
  version: refuse,
  lookup: refuse,
  incompatibilities: () => Promise.reject(noSchema()),
  modeOf: () => null,
  setMode: () => Promise.reject(noSchema())
}
