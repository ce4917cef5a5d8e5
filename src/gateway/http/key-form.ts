/** The body of a request for a key: JSON types checked here, meaning by the broker. Pure; main thread. */
import type { CreateKeyRequest, GrantRule } from '../../model/keys.ts'
import { grantActions } from '../../model/principal.ts'
import type { ExactJson } from '../../wire/json/exact-json.ts'
import { fault, fieldsOf, requireText, U32_MAX, type Fields } from './form.ts'

/** The body of `POST /admin/keys`. @throws BrokerError FIELD_INVALID */
export function readCreateKey(body: ExactJson): CreateKeyRequest {
  const fields = fieldsOf(body, 'body')
  const acls = fields['acls'] ?? null
  const name = requireText(fields, 'name')
  if (acls === null) throw fault('acls', 'is missing: an empty list gives a key that may do nothing')
  if (!Array.isArray(acls)) throw fault('acls', 'must be a list of {"action", "topic_prefix"}')
  return {
    name,
    rules: acls.map((rule, index) => ruleOf(rule, `acls[${index}]`)),
    produceBytesPerSec: quotaOf(fields, 'produce_bytes_per_sec'),
    consumeBytesPerSec: quotaOf(fields, 'consume_bytes_per_sec')
  }
}

function ruleOf(value: ExactJson, path: string): GrantRule {
  const fields = fieldsOf(value, path)
  const name = requireText(fields, 'action', `${path}.`)
  const action = grantActions.find(known => known === name)
  if (action === undefined) throw fault(`${path}.action`, `must be one of "${grantActions.join('", "')}"`)
  return { action, topicPrefix: requireText(fields, 'topic_prefix', `${path}.`) }
}

function quotaOf(fields: Fields, name: string): number | null {
  const value = fields[name] ?? null
  if (value === null) return null
  if (typeof value !== 'bigint' || value < 0n || value > U32_MAX) {
    throw fault(name, `must be a whole number from 0 to ${U32_MAX}, 0 for unlimited, or null`)
  }
  return Number(value)
}
