/** What of the settings takes effect while the broker runs: the one table of it, and the comparison. Pure. */
import type { SettingField } from './setting-spec.ts'
import { schema, settingFields } from './schema.ts'
import type { Settings } from './settings.ts'

/** docs/configuration.md lists the same; a test compares them. Every other setting needs a restart. */
export const reloadable: readonly SettingField[] = [
  'allowedHost',
  'tlsCert',
  'tlsKey',
  'corsOrigin',
  'shutdownTimeoutMs',
  'logLevel'
]

export interface ReloadPlan {
  /** What is in effect from now on: the old settings with the new values of those that can change. */
  readonly settings: Settings
  /** Flags that changed and take effect now. */
  readonly changed: readonly string[]
  /** Flags that changed and need a restart. */
  readonly needRestart: readonly string[]
}

/** @param before what is in effect. @param wanted what the sources say now. */
export function planReload(before: Settings, wanted: Settings): ReloadPlan {
  const different = settingFields.filter(field => JSON.stringify(before[field]) !== JSON.stringify(wanted[field]))
  // Other files can be taken while TLS is on; to turn it on or off is another listener.
  const turnsTls = (before.tlsCert === null) !== (wanted.tlsCert === null)
  const canChange = (field: SettingField): boolean =>
    reloadable.includes(field) && !(turnsTls && (field === 'tlsCert' || field === 'tlsKey'))
  const changed = different.filter(canChange)
  const values = Object.fromEntries(changed.map(field => [field, wanted[field]])) as Partial<Settings>
  return {
    settings: { ...before, ...values },
    changed: changed.map(field => schema[field].flag),
    needRestart: different.filter(field => !canChange(field)).map(field => schema[field].flag)
  }
}
