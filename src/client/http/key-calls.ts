/** The calls of API keys. Shapes as the API has them; any thread. */
import type { Answer, HttpClient, Whole } from './http-client.ts'
import { writeExact } from './http-client.ts'

/** One rule of a key. */
export interface KeyRule {
  readonly action: string
  readonly topic_prefix: string
}

/** What a key is to be. */
export interface KeyFields {
  readonly name: string
  readonly acls: readonly KeyRule[]
  /** null: unlimited. */
  readonly produce_bytes_per_sec: Whole | null
  readonly consume_bytes_per_sec: Whole | null
}

/** A key as it is. */
export interface KeyAnswer extends KeyFields {
  readonly key_id: string
  readonly created_at_ms: number
  /** It was revoked. */
  readonly disabled: boolean
}

/** The secret is in this answer alone. */
export function createKey(
  client: HttpClient,
  fields: KeyFields
): Promise<Answer<{ readonly key: KeyAnswer; readonly secret: string }>> {
  return client.call('POST', '/admin/keys', writeExact({ ...fields }))
}

export function listKeys(client: HttpClient): Promise<Answer<{ readonly keys: readonly KeyAnswer[] }>> {
  return client.call('GET', '/admin/keys')
}

export async function revokeKey(client: HttpClient, keyId: string): Promise<void> {
  await client.call('DELETE', `/admin/keys/${encodeURIComponent(keyId)}`)
}
