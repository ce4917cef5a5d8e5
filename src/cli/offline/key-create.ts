/**
 * `millrace key create --data-dir`: a key for whoever is locked out, written into the store of a stopped broker. Main
 * thread, with the directory's lock held; the rules for keys are the broker's own.
 */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '../../base/clock.ts'
import type { KeyFields } from '../../client/http/key-calls.ts'
import { decideKey, makeKey } from '../../control/keys.ts'
import { BrokerError } from '../../model/errors.ts'
import type { StoredKey } from '../../model/keys.ts'
import { grantActions } from '../../model/principal.ts'
import { StoreOpenError } from '../../store/store-open-error.ts'
import { writeCreatedKey } from '../../wire/json/keys-json.ts'
import { StoreDatabase } from '../../../workers/store/database.ts'
import { prepareTables } from '../../../workers/store/schema.ts'
import type { OptionTexts } from '../common-options.ts'
import { formatCreatedKey } from '../format-key.ts'
import { exitCodes, print, UsageError, type CliIo, type ExitCode } from '../io.ts'
import type { DataDirectory } from './data-directory.ts'
import { withDataDirectory } from './offline-run.ts'

/** @returns ok, refused if the broker would refuse such a key, unreachable if the directory does. @throws UsageError */
export function runKeyCreate(fields: KeyFields, options: OptionTexts, io: CliIo): Promise<ExitCode> {
  const writes = true
  return withDataDirectory(
    options,
    io,
    async directory => {
      const made = await newKey(directory, fields)
      if (made instanceof BrokerError) {
        await print(io.stderr, `millrace: ${made.message}\n`)
        return exitCodes.refused
      }
      const { key, secret } = made
      storeKey(directory.path, key)
      const text =
        options['json'] === true ? `${writeCreatedKey(key, secret)}\n` : formatCreatedKey(answerOf(key), secret)
      await print(io.stdout, text)
      return exitCodes.ok
    },
    writes
  )
}

async function newKey(
  { store }: DataDirectory,
  fields: KeyFields
): Promise<{ key: StoredKey; secret: string } | BrokerError> {
  const [problem] = store.problems
  if (store.image === null || problem !== undefined) {
    throw new StoreOpenError('damaged', `the store is damaged: ${problem ?? 'it cannot be read'}`)
  }
  const { keys } = store.image
  try {
    const wanted = decideKey(requestOf(fields), keys.filter(({ isDisabled }) => !isDisabled).length)
    return await makeKey(wanted, id => keys.some(({ keyId }) => keyId === id), systemClock.nowMs())
  } catch (error) {
    if (error instanceof BrokerError) return error
    throw error
  }
}

function requestOf(fields: KeyFields): Parameters<typeof decideKey>[0] {
  return {
    name: fields.name,
    rules: fields.acls.map(({ action: word, topic_prefix: topicPrefix }) => {
      const action = grantActions.find(known => known === word)
      if (action === undefined) throw new UsageError(`--acl: '${word}' is no action`)
      return { action, topicPrefix }
    }),
    produceBytesPerSec: fields.produce_bytes_per_sec === null ? null : Number(fields.produce_bytes_per_sec),
    consumeBytesPerSec: fields.consume_bytes_per_sec === null ? null : Number(fields.consume_bytes_per_sec)
  }
}

/** Durable on return. @throws StoreOpenError */
function storeKey(dataDir: string, key: StoredKey): void {
  const path = join(dataDir, 'store.db')
  const connection = new DatabaseSync(path)
  prepareTables(connection, path)
  const database = new StoreDatabase(connection)
  try {
    const [outcome] = database.commitGroup([[{ kind: 'key-created', key }]])
    if (outcome?.kind === 'committed') return
    const cause = outcome?.cause
    throw new StoreOpenError(
      'unusable',
      `${path} does not take the key: ${cause instanceof Error ? cause.message : ''}`
    )
  } finally {
    database.close()
  }
}

function answerOf(key: StoredKey): Parameters<typeof formatCreatedKey>[0] {
  return {
    key_id: key.keyId,
    name: key.name,
    acls: key.rules.map(({ action, topicPrefix }) => ({ action, topic_prefix: topicPrefix })),
    produce_bytes_per_sec: key.produceBytesPerSec,
    consume_bytes_per_sec: key.consumeBytesPerSec,
    created_at_ms: key.createdAtMs,
    disabled: key.isDisabled
  }
}
