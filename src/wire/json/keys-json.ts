/** API keys as JSON text. Pure; any thread. */
import type { KeyDescription } from '../../model/keys.ts'

function fieldsOf({
  keyId,
  name,
  rules,
  produceBytesPerSec,
  consumeBytesPerSec,
  createdAtMs,
  isDisabled
}: KeyDescription) {
  return {
    key_id: keyId,
    name,
    acls: rules.map(({ action, topicPrefix }) => ({ action, topic_prefix: topicPrefix })),
    produce_bytes_per_sec: produceBytesPerSec,
    consume_bytes_per_sec: consumeBytesPerSec,
    created_at_ms: createdAtMs,
    disabled: isDisabled
  }
}

/** The one answer that has a secret. */
export function writeCreatedKey(key: KeyDescription, secret: string): string {
  return JSON.stringify({ key: fieldsOf(key), secret })
}

/** A list of keys, without anything of their secrets. */
export function writeKeys(keys: readonly KeyDescription[]): string {
  return JSON.stringify({ keys: keys.map(fieldsOf) })
}
