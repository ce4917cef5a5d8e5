/**
 * Settings out of four sources: flags over MILLRACE_* environment over a TOML file over defaults.
 * Every fault of every source is found in one go and told as one line each: key, value, where it came from, what is
 * allowed. Runs before anything else exists; reads the one named file and nothing else.
 */
import { readFileSync } from 'node:fs'
import { parse, TomlError } from 'smol-toml'
import type { TopicConfig } from '../model/topic.ts'
import { checkTogether } from './cross-checks.ts'
import type { RawValue } from './kinds.ts'
import { nearestOf } from './nearest.ts'
import { envNameOf, otherEnvNames, schema, settingFields, tomlKeyOf } from './schema.ts'
import type { SettingField, SettingSpec } from './setting-spec.ts'
import type { Settings } from './settings.ts'

/** Where a value came from, in words that name the exact place: `flag --bind`, `env MILLRACE_BIND`, `file x.toml`, `default`. */
export type Source =
  { readonly kind: 'flag' | 'env' | 'file'; readonly name: string } | { readonly kind: 'default'; readonly name: '' }

export interface ConfigInput {
  /** By flag with its dashes: text, true for a flag without a value, a list for a repeated one. */
  readonly flags: Readonly<Record<string, RawValue>>
  /** Flags nobody knows, as written. */
  readonly unknownFlags: readonly string[]
  /** What to write instead of a flag that other tools have; null or left out: nothing is known of it. */
  readonly flagHint?: (flag: string) => string | null
  readonly env: Readonly<Record<string, string | undefined>>
  /** Path of the TOML file; null: none. */
  readonly file: string | null
}

export type Sources = { readonly [Field in SettingField]: Source }

export type Resolution =
  | { readonly ok: true; readonly settings: Settings; readonly sources: Sources }
  | { readonly ok: false; readonly faults: readonly string[] }

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

interface Candidate {
  readonly raw: RawValue
  readonly source: Source
}

/** Settings of topics that the broker has no default of: who knows Kafka looks for them here. */
const topicFields: ReadonlySet<string> = new Set<keyof TopicConfig>([
  'retention_ms',
  'retention_bytes',
  'cleanup_policy',
  'validate_schema',
  'message_timestamp_type',
  'max_message_bytes',
  'partitioner'
])

/** What other programs, Kafka before all, call a setting: its key here. No spelling is near. */
const namesElsewhere: ReadonlyMap<string, string> = new Map([
  ['host', 'bind'],
  ['port', 'bind'],
  ['listeners', 'bind_kafka'],
  ['advertised_listeners', 'bind_kafka'],
  ['log_dir', 'data_dir'],
  ['log_dirs', 'data_dir']
])

const noSource: Source = { kind: 'default', name: '' }

/** `flag --bind`, `default`. */
export function showSource(source: Source): string {
  return source.kind === 'default' ? 'default' : `${source.kind} ${source.name}`
}

/** Never throws for a fault of the user; an unreadable file is one. */
export function resolveSettings(input: ConfigInput): Resolution {
  const faults: string[] = []
  const file = fileOf(input, faults)
  faults.push(...unknownNames(input, file))
  const values: Partial<Mutable<Settings>> = {}
  const sources: Partial<Record<SettingField, Source>> = {}
  for (const field of settingFields) sources[field] = settle(field, findValue(field, input, file), values, faults)
  faults.push(...checkTogether(values))
  if (faults.length > 0) return { ok: false, faults }
  // Complete: the loop set every field of the table, and the table has every field of Settings.
  return { ok: true, settings: values as Settings, sources: sources as Sources }
}

/**
 * One setting alone, from the same sources: nothing else of the file is judged, and it is read only where it counts. Never
 * throws for a fault of the user.
 */
export function resolveSetting<Field extends SettingField>(
  field: Field,
  input: ConfigInput
): { readonly ok: true; readonly value: Settings[Field] } | { readonly ok: false; readonly faults: readonly string[] } {
  const faults: string[] = []
  const values: Partial<Mutable<Settings>> = {}
  const candidate = findValue(field, input, {}) ?? findValue(field, input, fileOf(input, faults))
  settle(field, candidate, values, faults)
  // Without a fault it was set.
  return faults.length > 0 ? { ok: false, faults } : { ok: true, value: values[field] as Settings[Field] }
}

/** Sets values[field] from the candidate, or leaves it unset and tells why. @returns where the value came from. */
function settle<Field extends SettingField>(
  field: Field,
  candidate: Candidate | null,
  values: Partial<Mutable<Settings>>,
  faults: string[]
): Source {
  const spec: SettingSpec<Settings[Field]> = schema[field]
  if (candidate === null) {
    values[field] = spec.fallback
    return noSource
  }
  const reading = spec.kind.read(candidate.raw)
  const where = describeCandidate(field, candidate)
  if (!reading.ok) {
    faults.push(`${where} ${reading.problem}; allowed: ${spec.kind.allowed}`)
    return candidate.source
  }
  const isDefault = spec.kind.show(reading.value) === spec.kind.show(spec.fallback)
  if (spec.later !== undefined && !isDefault) {
    const only = spec.kind.show(spec.fallback)
    faults.push(`${where}: ${spec.flag} is of ${spec.later}, and not available in this version; only ${only} is`)
    return candidate.source
  }
  values[field] = reading.value
  return candidate.source
}

/** `bind = "x" (flag --bind)`: key, value as written, source. */
function describeCandidate(field: SettingField, candidate: Candidate): string {
  const written = schema[field].isSecret || isKeySecret(candidate.raw) ? '(secret)' : showRaw(candidate.raw)
  return `${tomlKeyOf(field)} = ${written} (${showSource(candidate.source)})`
}

/** The secret of an API key that was put where a setting is read from, such as MILLRACE_AUTH: it is not repeated. */
function isKeySecret(raw: RawValue): boolean {
  return typeof raw === 'string' && raw.startsWith('esk_')
}

function showRaw(raw: RawValue): string {
  return JSON.stringify(raw, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
}

function findValue(
  field: SettingField,
  input: ConfigInput,
  file: Readonly<Record<string, RawValue>>
): Candidate | null {
  const { flag, extraEnv } = schema[field]
  const fromFlag = input.flags[flag]
  if (fromFlag !== undefined) return { raw: fromFlag, source: { kind: 'flag', name: flag } }
  for (const name of [envNameOf(field), extraEnv]) {
    // Empty counts as not set: container tools pass empty variables for what nobody filled in.
    const fromEnv = name === undefined ? undefined : input.env[name]
    if (name !== undefined && fromEnv !== undefined && fromEnv !== '')
      return { raw: fromEnv, source: { kind: 'env', name } }
  }
  const key = tomlKeyOf(field)
  const fromFile = Object.hasOwn(file, key) ? file[key] : undefined
  return fromFile === undefined ? null : { raw: fromFile, source: { kind: 'file', name: input.file ?? '' } }
}

function unknownNames(input: ConfigInput, file: Readonly<Record<string, RawValue>>): string[] {
  const keys = settingFields.map(tomlKeyOf)
  const envNames = [...settingFields.map(envNameOf), ...otherEnvNames]
  const flags = [...settingFields.map(field => schema[field].flag), '--config', '--json', '--help']
  const faults = input.unknownFlags.map(written => {
    const flag = written.split('=')[0] ?? written
    const hint = input.flagHint?.(flag) ?? null
    return hint === null ? unknown('flag', flag, flags) : `unknown flag ${flag}: ${hint}`
  })
  for (const name of Object.keys(input.env)) {
    if (name.startsWith('MILLRACE_') && !envNames.includes(name))
      faults.push(unknown('environment variable', name, envNames))
  }
  for (const key of Object.keys(file)) {
    // A dash for an underscore is the likeliest slip: the flags are written with dashes.
    if (!keys.includes(key)) faults.push(unknown(`key in ${input.file ?? ''}:`, key, keys))
  }
  return faults
}

/** @param name as it was written: of a flag, an environment variable or a key. */
function unknown(what: string, name: string, known: readonly string[]): string {
  const key = keyLike(name)
  if (topicFields.has(key)) return `unknown ${what} ${name}: each topic has its own: 'millrace topic alter' sets it`
  const here = namesElsewhere.get(key)
  const nearest = known.find(one => keyLike(one) === here) ?? nearestOf(name, known)
  return `unknown ${what} ${name}${nearest === null ? '' : `: did you mean ${nearest}?`}`
}

/** A flag or an environment variable, written as the key of the file is. */
function keyLike(name: string): string {
  return name
    .replace(/^--|^MILLRACE_/, '')
    .replaceAll('-', '_')
    .toLowerCase()
}

function fileOf({ file }: ConfigInput, faults: string[]): Record<string, RawValue> {
  return file === null ? {} : readFile(file, faults)
}

function readFile(path: string, faults: string[]): Record<string, RawValue> {
  let content: string
  try {
    content = readFileSync(path, 'utf8')
  } catch (error) {
    faults.push(`cannot read the configuration file ${path} (flag --config): ${reasonOf(error)}`)
    return {}
  }
  try {
    return flatten(parse(content, { integersAsBigInt: 'asNeeded' }), path, faults)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const problem = error.message.split('\n')[0] ?? ''
    faults.push(
      `${path}, line ${error.line}, column ${error.column}: ${problem.replace(/^Invalid TOML document: /, '')}`
    )
    return {}
  }
}

/** Keys are flat: a table, a date or a nested table is a fault of its own. */
function flatten(table: Readonly<Record<string, unknown>>, path: string, faults: string[]): Record<string, RawValue> {
  const values: Record<string, RawValue> = {}
  for (const [key, value] of Object.entries(table)) {
    if (isRawValue(value)) values[key] = value
    else faults.push(`${path}: ${key} is a table or a date: every key stands at the top and has a plain value`)
  }
  return values
}

function isRawValue(value: unknown): value is RawValue {
  if (Array.isArray(value)) return value.every(isRawValue)
  return ['string', 'number', 'bigint', 'boolean'].includes(typeof value)
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return 'no such file'
  if (code === 'EACCES') return 'permission denied'
  if (code === 'EISDIR') return 'it is a directory'
  return error instanceof Error ? error.message : String(error)
}
