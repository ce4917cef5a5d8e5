/**
 * What the rules of a key cover, and which rules, names and quotas a key may have (spec 1.14, 2.9, 2.10). Pure.
 */
import { BrokerError } from '../model/errors.ts'
import type { CreateKeyRequest, GrantRule } from '../model/keys.ts'
import { limits } from '../model/limits.ts'
import { grantActions, type GrantAction } from '../model/principal.ts'
import { echo } from './echo.ts'

const PREFIX_RULE = `'*', or 1 to ${limits.nameBytesMax} of A-Z a-z 0-9 . _ -`
const prefixPattern = /^[A-Za-z0-9._-]+$/
const U32_MAX = 0xffff_ffff

/** What parts the levels of a name. */
const separators = '.-_'

const endsInSeparator = (text: string): boolean => separators.includes(text.charAt(text.length - 1))

/**
 * Whether a prefix covers a name, whatever exists.
 *
 *   no prefix                   nothing; no key has one
 *   prefix `*`                  everything
 *   name = prefix               yes
 *   name does not start so      no
 *   prefix ends in a separator  yes: `orders.` covers `orders.eu`
 *   else                        if a separator follows: `orders` covers `orders-archive`, not `ordersecret`
 */
export function covers(prefix: string, name: string): boolean {
  if (prefix === '' || (prefix !== '*' && !name.startsWith(prefix))) return false
  if (prefix === '*' || name === prefix) return true
  return endsInSeparator(prefix) || separators.includes(name.charAt(prefix.length))
}

/** True if the rules let their key do that with the name. Each action includes those before it (model/principal.ts). */
export function grants(rules: readonly GrantRule[], action: GrantAction, name: string): boolean {
  const least = grantActions.indexOf(action)
  return rules.some(rule => grantActions.indexOf(rule.action) >= least && covers(rule.topicPrefix, name))
}

/** True for an administrator: on a prefix, admin is worth no more than write. */
export function isAdministrator(rules: readonly GrantRule[]): boolean {
  return rules.some(({ action, topicPrefix }) => action === 'admin' && topicPrefix === '*')
}

/** @returns the request with its quotas in one form: unlimited is null. @throws BrokerError FIELD_INVALID, FIELD_RANGE, NAME_INVALID */
export function checkedKey(request: CreateKeyRequest): CreateKeyRequest {
  checkName(request.name)
  const { rules } = request
  if (rules.length > limits.keyRulesMax) {
    const problem = `has ${rules.length} rules: at most ${limits.keyRulesMax} are possible`
    throw new BrokerError('FIELD_INVALID', { field: 'acls', problem })
  }
  for (const [index, rule] of rules.entries()) checkRule(rule, `acls[${index}]`)
  return {
    ...request,
    produceBytesPerSec: checkedQuota(request.produceBytesPerSec, 'produce_bytes_per_sec'),
    consumeBytesPerSec: checkedQuota(request.consumeBytesPerSec, 'consume_bytes_per_sec')
  }
}

/** Any characters that UTF-8 can hold. */
function checkName(name: string): void {
  const byteCount = Buffer.byteLength(name)
  if (!name.isWellFormed()) throw new BrokerError('FIELD_INVALID', { field: 'name', problem: 'is not Unicode text' })
  if (byteCount >= 1 && byteCount <= limits.nameBytesMax) return
  const problem = `has ${byteCount} bytes: 1 to ${limits.nameBytesMax} are possible`
  throw new BrokerError('FIELD_INVALID', { field: 'name', problem })
}

function checkRule({ action, topicPrefix }: GrantRule, field: string): void {
  if (!grantActions.includes(action)) {
    const problem = `must be one of "${grantActions.join('", "')}"`
    throw new BrokerError('FIELD_INVALID', { field: `${field}.action`, problem })
  }
  if (topicPrefix === '*') return
  if (prefixPattern.test(topicPrefix) && topicPrefix.length <= limits.nameBytesMax) return
  const details = { field: `${field}.topic_prefix`, value: echo(topicPrefix), rule: PREFIX_RULE }
  throw new BrokerError('NAME_INVALID', details)
}

function checkedQuota(value: number | null, field: string): number | null {
  if (value === null || value === 0) return null
  if (Number.isInteger(value) && value > 0 && value <= U32_MAX) return value
  throw new BrokerError('FIELD_RANGE', { field, value, min: 0, max: U32_MAX })
}
