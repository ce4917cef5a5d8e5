/**
 * The schema registry: register, read, compare, choose modes. Each change is durable before it is told. Main thread.
 *
 *   register ─▶ its subject's turn ─▶ parse and compare, in another thread ─▶ commit ─▶ told
 *
 * Invariants: one change of a subject at a time, so a version is compared with the one before it, whoever sent that; what
 * runs or waits is limited, and holds its text until it is answered; a hostile schema costs its thread, never this one.
 * Comparisons that change nothing, which a key may ask for that only reads, have a line of their own and one thread.
 */
import type { JobBound, BackgroundPool } from '../background/pool.ts'
import type { SchemaJobs } from '../background/jobs.ts'
import type { Clock } from '../base/clock.ts'
import { ChangeTurns } from '../control/change-turns.ts'
import { echo } from '../control/echo.ts'
import type { SchemaTable } from '../control/schemas.ts'
import type { SchemaChange } from '../control/store-image.ts'
import { checkSubject } from '../control/topic-rules.ts'
import { authorise } from '../model/access.ts'
import { BrokerError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import type { Principal } from '../model/principal.ts'
import type {
  CompatibilityMode,
  RegisterRequest,
  SchemaText,
  SchemaUseCases,
  SchemaVersion,
  VersionWanted
} from '../model/schemas.ts'
import type { Store } from '../store/store.ts'

export interface SchemaParts {
  readonly table: SchemaTable
  /** Of subjects. */
  readonly turns: ChangeTurns
  readonly store: Pick<Store, 'commit'>
  readonly pool: Pick<BackgroundPool<SchemaJobs>, 'run'>
  readonly clock: Clock
  /** For a schema to be parsed and compared, ms. */
  readonly checkMs: number
}

/** The turn of the general mode: no subject is called so. */
const GENERAL = ''

/** All of them wait for the same turn. */
const COMPARISONS = 'comparisons'

export class SchemaCommands implements SchemaUseCases {
  readonly #parts: SchemaParts
  /** That run or wait. */
  readonly #changes = new Line('schema changes', limits.schemaChangesMax)
  readonly #comparisons = new Line('schema comparisons', limits.schemaComparisonsMax)
  readonly #comparisonTurns = new ChangeTurns()

  constructor(parts: SchemaParts) {
    this.#parts = parts
  }

  register(who: Principal, request: RegisterRequest): Promise<SchemaVersion> {
    return this.#add(who, request, false)
  }

  registerOnce(who: Principal, request: RegisterRequest): Promise<SchemaVersion> {
    return this.#add(who, request, true)
  }

  list(who: Principal): readonly SchemaVersion[] {
    authorise(who, 'list schemas')
    const readable = new Set(this.#readableSubjects(who))
    return this.#parts.table.versions().filter(({ subject }) => readable.has(subject))
  }

  byId(who: Principal, id: number): SchemaVersion {
    const [first] = this.versionsOfId(who, id)
    if (first === undefined) throw noSchema(id)
    return first
  }

  versionsOfId(who: Principal, id: number): readonly SchemaVersion[] {
    authorise(who, 'list schemas')
    const versions = this.#parts.table.versionsOfId(id).filter(({ subject }) => who.mayRead(subject))
    if (versions.length === 0) throw noSchema(id)
    return versions
  }

  subjects(who: Principal): readonly string[] {
    authorise(who, 'list schemas')
    return this.#readableSubjects(who)
  }

  versionsOf(who: Principal, subject: string): readonly SchemaVersion[] {
    this.#checkReadable(who, subject)
    const versions = this.#parts.table.versionsOf(subject)
    if (versions.length === 0) throw noSubject(subject)
    return versions
  }

  version(who: Principal, subject: string, version: VersionWanted): SchemaVersion {
    const versions = this.versionsOf(who, subject)
    const found = version === null ? versions.at(-1) : versions[version - 1]
    if (found !== undefined) return found
    throw new BrokerError('VERSION_NOT_FOUND', { subject: echo(subject), version: version ?? 'latest' })
  }

  lookup(who: Principal, request: RegisterRequest): SchemaVersion {
    this.versionsOf(who, request.subject)
    const found = this.#parts.table.newestLike(request)
    if (found === undefined) throw noSchema(`with that text in subject '${echo(request.subject)}'`)
    return found
  }

  async incompatibilities(
    who: Principal,
    request: RegisterRequest,
    against: VersionWanted | 'all'
  ): Promise<readonly string[]> {
    const { table } = this.#parts
    const { subject } = request
    this.#checkReadable(who, subject)
    const mode = table.effectiveMode(subject)
    const previous = against === 'all' ? this.#previous(subject, mode) : [this.version(who, subject, against)]
    checkText(request)
    return this.#comparisons.run(() =>
      this.#comparisonTurns.run(COMPARISONS, () => this.#check(request, previous, mode))
    )
  }

  modeOf(who: Principal, subject: string | null): CompatibilityMode | null {
    if (subject === null) authorise(who, 'list schemas')
    else this.#checkReadable(who, subject)
    return this.#parts.table.modeOf(subject)
  }

  async setMode(who: Principal, subject: string | null, mode: CompatibilityMode | null): Promise<void> {
    authorise(who, 'manage compatibility')
    if (subject !== null) checkSubject(subject)
    const { table, turns } = this.#parts
    await this.#changes.run(() =>
      turns.run(subject ?? GENERAL, async () => {
        const changes = table.decideMode(subject, mode)
        if (changes.length > 0) await this.#carryOut(changes)
      })
    )
  }

  /** @param sharesId a text that is there has its id, and in the subject its version. */
  async #add(who: Principal, request: RegisterRequest, sharesId: boolean): Promise<SchemaVersion> {
    authorise(who, 'register schema')
    const { subject } = request
    checkSubject(subject)
    checkText(request)
    const { table, turns, clock } = this.#parts
    return this.#changes.run(() =>
      turns.run(subject, async () => {
        const known = sharesId ? table.newestLike(request) : undefined
        if (known !== undefined) return known
        // Refused for the limits before anything is done for it.
        table.decideVersion(request, sharesId, 0)
        const mode = table.effectiveMode(subject)
        const problems = await this.#check(request, this.#previous(subject, mode), mode)
        if (problems.length > 0) throw incompatible(mode, problems)
        // Whoever asked for it may have been revoked meanwhile.
        authorise(who, 'register schema')
        return this.#commit(table.decideVersion(request, sharesId, clock.nowMs()))
      })
    )
  }

  /** In memory only what is durable. The same turn of the loop as the decision: ids reach the store rising. */
  async #commit(version: SchemaVersion): Promise<SchemaVersion> {
    const { table } = this.#parts
    table.reserve(version)
    try {
      await this.#carryOut([{ kind: 'schema-added', version }])
    } catch (error) {
      table.abandon(version)
      throw error
    }
    return version
  }

  async #carryOut(changes: readonly SchemaChange[]): Promise<void> {
    const { table, store } = this.#parts
    await store.commit(changes)
    for (const change of changes) table.apply(change)
  }

  /** What a mode compares the next version of a subject with, newest first; each id once. */
  #previous(subject: string, mode: CompatibilityMode): readonly SchemaText[] {
    const versions = this.#parts.table.versionsOf(subject)
    if (mode === 'none') return []
    if (!mode.endsWith('_transitive')) return versions.slice(-1)
    const found = new Map<number, SchemaText>()
    let bytes = 0
    for (const version of versions.toReversed()) {
      if (found.has(version.id)) continue
      bytes += Buffer.byteLength(version.schema)
      if (found.size === limits.comparedSchemasMax || bytes > limits.comparedSchemaBytesMax) break
      found.set(version.id, version)
    }
    return [...found.values()]
  }

  /** @returns what is incompatible. @throws BrokerError SCHEMA_INVALID, SCHEMA_TIMEOUT, OVERLOADED */
  async #check(
    request: SchemaText,
    previous: readonly SchemaText[],
    mode: CompatibilityMode
  ): Promise<readonly string[]> {
    const value = { candidate: textOf(request), previous: previous.map(textOf), mode }
    const result = await this.#parts.pool.run('checkSchema', value, { bound: boundOf(request, this.#parts.checkMs) })
    if (result.kind === 'invalid') throw invalid(request, result.problem)
    return result.incompatibilities
  }

  #readableSubjects(who: Principal): readonly string[] {
    const all = this.#parts.table.subjects()
    return who.isAdmin ? all : all.filter(subject => who.mayRead(subject))
  }

  /** What may not be read is not found. @throws BrokerError KEY_REVOKED, SUBJECT_NOT_FOUND */
  #checkReadable(who: Principal, subject: string): void {
    authorise(who, 'list schemas')
    if (!who.mayRead(subject)) throw noSubject(subject)
  }
}

/** What runs or waits of one kind, up to a limit. */
class Line {
  readonly #what: string
  readonly #limit: number
  #inProgress = 0

  constructor(what: string, limit: number) {
    this.#what = what
    this.#limit = limit
  }

  /** One more, if there may be. @throws BrokerError OVERLOADED */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const limit = this.#limit
    if (this.#inProgress >= limit) throw new BrokerError('OVERLOADED', { what: `the line of ${this.#what}`, limit })
    this.#inProgress++
    try {
      return await work()
    } finally {
      this.#inProgress--
    }
  }
}

/** Texts alone: what travels to another thread. */
function textOf({ type, schema }: SchemaText): SchemaText {
  return { type, schema }
}

function boundOf(request: SchemaText, timeMs: number): JobBound {
  return {
    timeMs,
    failure: over =>
      over === 'time'
        ? new BrokerError('SCHEMA_TIMEOUT', { milliseconds: timeMs, step: 'parse and compare' })
        : invalid(request, `it takes more than ${limits.schemaCheckHeapMb} MiB to parse and compare`)
  }
}

/** @throws BrokerError SCHEMA_TOO_LARGE, SCHEMA_INVALID */
function checkText(request: SchemaText): void {
  const size = Buffer.byteLength(request.schema)
  const { schemaBytesMax: limit } = limits
  if (size < 1 || size > limit) throw new BrokerError('SCHEMA_TOO_LARGE', { size, limit })
  // Half a surrogate pair would come back from the disk as another text.
  if (!request.schema.isWellFormed()) throw invalid(request, 'it is not Unicode text')
}

function invalid({ type }: SchemaText, problem: string): BrokerError {
  return new BrokerError('SCHEMA_INVALID', { type, problem })
}

/** The seed's rule is one of backward compatibility, and says so. */
function incompatible(mode: CompatibilityMode, problems: readonly string[]): BrokerError {
  const name = mode === 'default' ? 'backward' : mode
  return new BrokerError('SCHEMA_INCOMPATIBLE', { mode: name, problem: problems.join('; ') })
}

function noSchema(schema: string | number): BrokerError {
  return new BrokerError('SCHEMA_NOT_FOUND', { schema })
}

function noSubject(subject: string): BrokerError {
  return new BrokerError('SUBJECT_NOT_FOUND', { subject: echo(subject) })
}
