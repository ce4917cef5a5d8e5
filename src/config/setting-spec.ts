/**
 * What one row of the table of settings is: its shape, the groups, and the units that ranges are written in. Data only;
 * main thread and CLI. The rows are in schema.ts and log-settings.ts.
 */
import type { Kind } from './kinds.ts'
import type { Settings } from './settings.ts'

/** Bytes. */
export const KIB = 1024
/** Bytes. */
export const MIB = 1024 * KIB
/** Bytes. */
export const GIB = 1024 * MIB
/** Bytes. */
export const TIB = 1024 * GIB
/** Milliseconds. */
export const SECOND_MS = 1_000
/** Milliseconds. */
export const HOUR_MS = 3_600_000
/** Milliseconds. */
export const DAY_MS = 24 * HOUR_MS

/** Sections of the documentation and of --help, in order. */
export type SettingGroup =
  'Listening and access' | 'The log' | 'The journal' | 'Cold storage' | 'Limits' | 'Memory' | 'Cluster' | 'Logging'

/** One row. */
export interface SettingSpec<T> {
  /** `--data-dir`. The environment variable and the TOML key follow from it: MILLRACE_DATA_DIR, data_dir. */
  readonly flag: string
  readonly group: SettingGroup
  readonly kind: Kind<T>
  readonly fallback: T
  /** What it does, for --help, the shipped file and the documentation: no full stop, one line. */
  readonly text: string
  /** What it is of, and comes later: any value but the default refuses at start, because silence would mislead. */
  readonly later?: string
  /** Never shown, not even in a fault. */
  readonly isSecret?: true
  /** One more environment variable, read when the first is not set. */
  readonly extraEnv?: string
}

/** A setting by its field of Settings. */
export type SettingField = keyof Settings
/** A row for every field of Settings. */
export type Schema = { readonly [Field in SettingField]: SettingSpec<Settings[Field]> }
