/** The table of API keys: rows to keys and back. Store thread, and offline tools. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { GrantRule, ScramVerifier, StoredKey } from '../../src/model/keys.ts'
import { grantActions } from '../../src/model/principal.ts'
import { bytesOf, countOf, integerOf, textOf, wrongValue, type Row } from './columns.ts'

/** Writes a key as a row, behind all others. */
export const INSERT_KEY = `
  INSERT INTO keys (
    key_id, name, rules, produce_bytes_per_sec, consume_bytes_per_sec, created_at_ms, is_disabled, secret_sha256,
    scram_sha256_salt, scram_sha256_iterations, scram_sha256_stored_key, scram_sha256_server_key,
    scram_sha512_salt, scram_sha512_iterations, scram_sha512_stored_key, scram_sha512_server_key
  ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** The values of INSERT_KEY. */
export function keyValues(key: StoredKey): SQLInputValue[] {
  const { keyId, name, rules, produceBytesPerSec, consumeBytesPerSec, createdAtMs, isDisabled, traces } = key
  return [
    ...[keyId, name, writeRules(rules), produceBytesPerSec, consumeBytesPerSec, createdAtMs, isDisabled ? 1 : 0],
    ...[traces.sha256, ...verifierValues(traces.scramSha256), ...verifierValues(traces.scramSha512)]
  ]
}

/** All keys, in the order in which they were made. @throws StoreOpenError damaged */
export function readKeys(database: DatabaseSync): StoredKey[] {
  return database.prepare('SELECT * FROM keys ORDER BY position').all().map(keyOf)
}

function keyOf(row: Row): StoredKey {
  return {
    keyId: textOf(row, 'key_id'),
    name: textOf(row, 'name'),
    rules: readRules(textOf(row, 'rules')),
    produceBytesPerSec: countOf(row, 'produce_bytes_per_sec'),
    consumeBytesPerSec: countOf(row, 'consume_bytes_per_sec'),
    createdAtMs: integerOf(row, 'created_at_ms'),
    isDisabled: integerOf(row, 'is_disabled') !== 0,
    traces: {
      sha256: bytesOf(row, 'secret_sha256'),
      scramSha256: verifierOf(row, 'scram_sha256'),
      scramSha512: verifierOf(row, 'scram_sha512')
    }
  }
}

function verifierValues({ salt, iterations, storedKey, serverKey }: ScramVerifier): SQLInputValue[] {
  return [salt, iterations, storedKey, serverKey]
}

function verifierOf(row: Row, prefix: string): ScramVerifier {
  return {
    salt: bytesOf(row, `${prefix}_salt`),
    iterations: integerOf(row, `${prefix}_iterations`),
    storedKey: bytesOf(row, `${prefix}_stored_key`),
    serverKey: bytesOf(row, `${prefix}_server_key`)
  }
}

/** `[["write","orders."], …]`: read whole with its key, never searched. */
function writeRules(rules: readonly GrantRule[]): string {
  return JSON.stringify(rules.map(({ action, topicPrefix }) => [action, topicPrefix]))
}

function readRules(text: string): GrantRule[] {
  const value = parse(text)
  if (!Array.isArray(value)) throw wrongValue('rules', text)
  return value.map((entry: unknown) => {
    const [name, topicPrefix]: readonly unknown[] = Array.isArray(entry) ? entry : []
    const action = grantActions.find(known => known === name)
    if (action === undefined || typeof topicPrefix !== 'string') throw wrongValue('rules', text)
    return { action, topicPrefix }
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw wrongValue('rules', text)
    throw error
  }
}
