/**
 * The rows of the schema registry in store.db. Store thread only.
 *
 *   schemas          id, type, schema: a text once, however many subjects have it
 *   schema_versions  by subject and version: the id that the version has, and when it was made
 *   schema_modes     by subject, empty for the general one: the compatibility mode that was chosen
 *
 * Invariants: an id has one text for ever, and the counter in `state` is above every id; it moves with the row, in the same
 * transaction.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { assert } from '../../src/base/assert.ts'
import type { SchemaChange, SchemaModeRow, StoreImage } from '../../src/control/store-image.ts'
import { compatibilityModes, schemaTypes, type SchemaVersion } from '../../src/model/schemas.ts'
import { choiceOf, integerOf, textOf, type Row } from './columns.ts'

export const schemaTables = `
  ALTER TABLE state ADD COLUMN next_schema_id INTEGER NOT NULL DEFAULT 1;
  CREATE TABLE schemas (
    id INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    schema TEXT NOT NULL
  ) STRICT;
  CREATE TABLE schema_versions (
    subject TEXT NOT NULL,
    version INTEGER NOT NULL,
    id INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (subject, version)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE schema_modes (
    subject TEXT PRIMARY KEY,
    mode TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
`

/** What stands for all subjects in schema_modes: no subject is called so. */
const GENERAL = ''

/** @throws StoreOpenError damaged, also if a version has an id without a text. */
export function readSchemas(database: DatabaseSync): Pick<StoreImage, 'schemaVersions' | 'schemaModes'> {
  // LEFT: a version whose text is gone must be seen, not passed over.
  const versions = database.prepare(
    `SELECT subject, version, id, created_at_ms, type, schema FROM schema_versions LEFT JOIN schemas USING (id)
     ORDER BY id, subject, version`
  )
  return {
    schemaVersions: versions.all().map(versionOf),
    schemaModes: database.prepare('SELECT subject, mode FROM schema_modes ORDER BY subject').all().map(modeOf)
  }
}

function versionOf(row: Row): SchemaVersion {
  return {
    id: integerOf(row, 'id'),
    subject: textOf(row, 'subject'),
    version: integerOf(row, 'version'),
    type: choiceOf(row, 'type', schemaTypes),
    schema: textOf(row, 'schema'),
    createdAtMs: integerOf(row, 'created_at_ms')
  }
}

function modeOf(row: Row): SchemaModeRow {
  const subject = textOf(row, 'subject')
  return { subject: subject === GENERAL ? null : subject, mode: choiceOf(row, 'mode', compatibilityModes) }
}

/** Applies the changes of the registry, each inside of the transaction of its commit. */
export class SchemaRows {
  readonly #allot: StatementSync
  readonly #addText: StatementSync
  readonly #findText: StatementSync
  readonly #addVersion: StatementSync
  readonly #setMode: StatementSync
  readonly #clearMode: StatementSync

  constructor(database: DatabaseSync) {
    this.#allot = database.prepare('UPDATE state SET next_schema_id = max(next_schema_id, ?)')
    // OR IGNORE: another subject has the text, or main was told that the version that brought it could not be stored.
    this.#addText = database.prepare('INSERT OR IGNORE INTO schemas (id, type, schema) VALUES (?, ?, ?)')
    this.#findText = database.prepare('SELECT 1 FROM schemas WHERE id = ? AND type = ? AND schema = ?')
    this.#addVersion = database.prepare(
      'INSERT INTO schema_versions (subject, version, id, created_at_ms) VALUES (?, ?, ?, ?)'
    )
    this.#setMode = database.prepare('INSERT OR REPLACE INTO schema_modes (subject, mode) VALUES (?, ?)')
    this.#clearMode = database.prepare('DELETE FROM schema_modes WHERE subject = ?')
  }

  apply(change: SchemaChange): void {
    if (change.kind === 'schema-added') return this.#add(change.version)
    const subject = change.subject ?? GENERAL
    if (change.mode === null) this.#clearMode.run(subject)
    else this.#setMode.run(subject, change.mode)
  }

  #add({ id, subject, version, type, schema, createdAtMs }: SchemaVersion): void {
    this.#allot.run(id + 1)
    this.#addText.run(id, type, schema)
    assert(this.#findText.get(id, type, schema) !== undefined, 'a schema id has one text for ever')
    this.#addVersion.run(subject, version, id, createdAtMs)
  }
}
