/**
 * The schema registry's state: subjects with their versions, ids, and compatibility modes, all in memory. Main thread only;
 * calls nobody. Decisions give changes; what is committed is applied.
 *
 *   decide ─▶ reserve ─▶ the store ─▶ apply
 *                           └─ refused ─▶ abandon
 *
 * Invariants: versions of a subject are 1, 2, 3 … without a gap; an id has one text for ever, also one whose commit was
 * refused; what is reserved counts for the limits. One change of a subject at a time: whoever changes it sees to that.
 */
import { hash } from 'node:crypto'
import { assert } from '../base/assert.ts'
import { BrokerError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import type { CompatibilityMode, RegisterRequest, SchemaText, SchemaVersion } from '../model/schemas.ts'
import { echo } from './echo.ts'
import type { SchemaChange, StoreImage } from './store-image.ts'

/** What all subjects together may have. */
export interface SchemaLimits {
  readonly schemaVersionsMax: number
  readonly schemaBytesTotalMax: number
}

/** The general mode as long as none was chosen: the seed's rule. */
const DEFAULT_MODE: CompatibilityMode = 'default'

type Image = Pick<StoreImage, 'schemaVersions' | 'schemaModes' | 'nextSchemaId'>

export class SchemaTable {
  readonly #limits: SchemaLimits
  /** By subject, each ascending from version 1. */
  readonly #bySubject = new Map<string, SchemaVersion[]>()
  /** By id, each in no particular order. */
  readonly #byId = new Map<number, SchemaVersion[]>()
  /** The lowest id of a text and type, reserved ones included. */
  readonly #idByText = new Map<string, number>()
  readonly #modes = new Map<string, CompatibilityMode>()
  #generalMode: CompatibilityMode = DEFAULT_MODE
  #nextId: number
  /** Reserved ones included. */
  #versionCount = 0
  #textBytes = 0
  /** All by id, then subject, and the names of subjects; null: to be made anew. */
  #sorted: SchemaVersion[] | null = null
  #names: readonly string[] | null = null

  constructor(image: Image, bounds: SchemaLimits = limits) {
    this.#limits = bounds
    this.#nextId = image.nextSchemaId
    const ascending = [...image.schemaVersions].sort((a, b) => a.version - b.version)
    for (const version of ascending) {
      assert(version.id < this.#nextId, 'the next schema id is above every one that was given')
      this.#count(version, 1)
      this.#insert(version)
    }
    for (const { subject, mode } of image.schemaModes) this.#setMode(subject, mode)
  }

  get versionCount(): number {
    return this.#versionCount
  }

  /** Of UTF-8, over all versions. */
  get textBytes(): number {
    return this.#textBytes
  }

  /** Names of subjects that have a version, sorted by code unit. */
  subjects(): readonly string[] {
    return (this.#names ??= [...this.#bySubject.keys()].sort())
  }

  /** Ascending; empty if there is no such subject. */
  versionsOf(subject: string): readonly SchemaVersion[] {
    return this.#bySubject.get(subject) ?? []
  }

  /** By subject, then version; empty: nothing has that id. */
  versionsOfId(id: number): readonly SchemaVersion[] {
    return [...(this.#byId.get(id) ?? [])].sort(bySubject)
  }

  /** All, by id, then subject: valid until the next change. */
  versions(): readonly SchemaVersion[] {
    return (this.#sorted ??= [...this.#byId.keys()].sort((a, b) => a - b).flatMap(id => this.versionsOfId(id)))
  }

  /** The newest version of the subject with that text and type. */
  newestLike({ subject, type, schema }: RegisterRequest): SchemaVersion | undefined {
    return this.versionsOf(subject).findLast(version => version.type === type && version.schema === schema)
  }

  /** What was chosen for the subject; null: nothing. subject null: the general one. */
  modeOf(subject: string | null): CompatibilityMode | null {
    return subject === null ? this.#generalMode : (this.#modes.get(subject) ?? null)
  }

  /** The mode that counts for a subject. */
  effectiveMode(subject: string): CompatibilityMode {
    return this.#modes.get(subject) ?? this.#generalMode
  }

  /**
   * The next version of a subject.
   * @param sharesId it gets the id that its text has anywhere, if it has one; else a new one in any case.
   * @throws BrokerError SCHEMAS_TOO_MANY
   */
  decideVersion(request: RegisterRequest, sharesId: boolean, nowMs: number): SchemaVersion {
    const { subject, type, schema } = request
    const { schemaVersionsMax, schemaBytesTotalMax } = this.#limits
    if (this.#versionCount >= schemaVersionsMax) throw tooMany(subject, schemaVersionsMax, 'versions')
    if (this.#textBytes + Buffer.byteLength(schema) > schemaBytesTotalMax)
      throw tooMany(subject, schemaBytesTotalMax, 'bytes of texts')
    const known = sharesId ? this.#idByText.get(hashOf(request)) : undefined
    const version = this.versionsOf(subject).length + 1
    return { id: known ?? this.#nextId, subject, version, type, schema, createdAtMs: nowMs }
  }

  /**
   * What choosing a mode changes: nothing if it is chosen.
   * @param mode null: the subject follows the general one; of the general one: as if none was ever chosen.
   * @throws BrokerError SCHEMAS_TOO_MANY
   */
  decideMode(subject: string | null, mode: CompatibilityMode | null): readonly SchemaChange[] {
    if (subject === null)
      return this.#generalMode === (mode ?? DEFAULT_MODE) ? [] : [{ kind: 'schema-mode', subject, mode }]
    if ((this.#modes.get(subject) ?? null) === mode) return []
    const { schemaVersionsMax } = this.#limits
    if (!this.#modes.has(subject) && this.#modes.size >= schemaVersionsMax)
      throw tooMany(subject, schemaVersionsMax, 'modes')
    return [{ kind: 'schema-mode', subject, mode }]
  }

  /** Claims what a decided version needs: its id, its place in the limits. In the same turn as the decision. */
  reserve(version: SchemaVersion): void {
    const { id } = version
    if (id === this.#nextId) this.#nextId++
    else assert(this.#idByText.get(hashOf(version)) === id, 'an id is new, or that of the same text')
    this.#count(version, 1)
    this.#noteText(version)
  }

  /** Gives up a reservation whose commit was refused. Its id stays with its text, which may come again. */
  abandon(version: SchemaVersion): void {
    this.#count(version, -1)
  }

  /** Carries out what the store has committed; a version must be reserved. */
  apply(change: SchemaChange): void {
    if (change.kind === 'schema-added') this.#insert(change.version)
    else this.#setMode(change.subject, change.mode)
  }

  #count({ schema }: SchemaVersion, sign: 1 | -1): void {
    this.#versionCount += sign
    this.#textBytes += sign * Buffer.byteLength(schema)
    assert(this.#versionCount >= 0 && this.#textBytes >= 0, 'more given up than was reserved')
  }

  #noteText(version: SchemaVersion): void {
    const text = hashOf(version)
    const known = this.#idByText.get(text)
    if (known === undefined || version.id < known) this.#idByText.set(text, version.id)
  }

  #insert(version: SchemaVersion): void {
    const { id, subject } = version
    const versions = this.#bySubject.get(subject) ?? []
    assert(version.version === versions.length + 1, 'versions of a subject are 1, 2, 3 … without a gap')
    if (versions.length === 0) {
      this.#bySubject.set(subject, versions)
      this.#names = null
    }
    versions.push(version)
    const same = this.#byId.get(id)
    if (same === undefined) this.#byId.set(id, [version])
    else same.push(version)
    this.#noteText(version)
    this.#list(version)
  }

  /** A new id stands last; sorting all anew for it would hold the thread for each registration. */
  #list(version: SchemaVersion): void {
    const last = this.#sorted?.at(-1)
    if (last !== undefined && last.id < version.id) this.#sorted?.push(version)
    else this.#sorted = null
  }

  #setMode(subject: string | null, mode: CompatibilityMode | null): void {
    if (subject === null) this.#generalMode = mode ?? DEFAULT_MODE
    else if (mode === null) this.#modes.delete(subject)
    else this.#modes.set(subject, mode)
  }
}

/** Of type and text: the key of a map that has no text twice. */
function hashOf({ type, schema }: SchemaText): string {
  return hash('sha256', `${type}\n${schema}`, 'base64')
}

function bySubject(a: SchemaVersion, b: SchemaVersion): number {
  if (a.subject !== b.subject) return a.subject < b.subject ? -1 : 1
  return a.version - b.version
}

function tooMany(subject: string, limit: number, what: string): BrokerError {
  return new BrokerError('SCHEMAS_TOO_MANY', { subject: echo(subject), limit, what })
}
