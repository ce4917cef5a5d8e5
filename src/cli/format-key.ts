/** The lines that the commands of keys print for people. Pure. */
import type { KeyAnswer } from '../client/http/key-calls.ts'
import { showText } from './format.ts'
import { alignWords } from './table.ts'

/** A new key, and its secret under a line that says what it is. The secret is the last line: scripts take it by that. */
export function formatCreatedKey({ key_id: id, name, acls }: KeyAnswer, secret: string): string {
  const lack = acls.length === 0 ? ': it may do nothing, and rules are given with --acl when a key is made' : ''
  return [
    `created key '${showText(name)}' (${id}) with ${acls.length} rule(s)${lack}`,
    `over Kafka (SASL) the user name is ${id}, and the password the secret`,
    'SECRET, shown this once:',
    `${secret}\n`
  ].join('\n')
}

/** Keys, one a line, marked if it was revoked. */
export function formatKeys(keys: readonly KeyAnswer[]): string[] {
  return alignWords(keys.map(wordsOfKey))
}

function wordsOfKey(key: KeyAnswer): string[] {
  const acls = key.acls.map(({ action, topic_prefix: prefix }) => `${action}:${prefix}`).join(',') || 'none'
  return [
    key.key_id,
    `name='${showText(key.name)}'`,
    `acls=${acls}`,
    `produce_bytes_per_sec=${key.produce_bytes_per_sec ?? 'unlimited'}`,
    `consume_bytes_per_sec=${key.consume_bytes_per_sec ?? 'unlimited'}`,
    `created=${new Date(key.created_at_ms).toISOString()}`,
    ...(key.disabled ? ['[revoked]'] : [])
  ]
}
