/**
 * The flags of `serve` and `config explain`, made from the schema table. The command line is only collected here:
 * judging it, unknown flags included, is src/config's, so that all faults of all sources come at once.
 */
import { Option, type Command } from 'commander'
import type { RawValue } from '../config/kinds.ts'
import { resolveSettings, type Resolution, type Sources } from '../config/resolve.ts'
import { envNameOf, schema, settingFields, showFallback } from '../config/schema.ts'
import type { Settings } from '../config/settings.ts'
import { optionsOf, type OptionTexts } from './common-options.ts'
import { UsageError, type CliIo } from './io.ts'
import { optionHint } from './option-hints.ts'

/** Adds --config and one flag per setting. The command takes unknown flags and keeps them for resolveCommandLine. */
export function addSettingsOptions(command: Command): Command {
  command.addOption(configOption('TOML file with settings'))
  for (const field of settingFields) command.addOption(settingOption(field))
  return command.allowUnknownOption().allowExcessArguments()
}

/** --config. @param text what is done with the file. */
export function configOption(text: string): Option {
  return new Option('--config <file>', `${text}; also MILLRACE_CONFIG (default: none)`)
}

/** The file that it names; null: none. */
export function configFileOf(options: OptionTexts, io: CliIo): string | null {
  const file = options['config'] ?? io.env['MILLRACE_CONFIG'] ?? ''
  return file === '' ? null : String(file)
}

function settingOption(field: keyof Settings): Option {
  const { flag, kind, text, later, group } = schema[field]
  const notes = [`default: ${showFallback(field)}`]
  if (kind.name === 'list') notes.push('repeatable')
  if (kind.min !== null) notes.push(`allowed: ${kind.allowed}`)
  if (later) notes.push('not in this version')
  const value = kind.name === 'boolean' ? '[true|false]' : kind.placeholder
  const option = new Option(`${flag} ${value}`, `${text} (${notes.join('; ')})`).helpGroup(`${group}:`)
  if (kind.name !== 'list') return option
  return option.argParser((word: string, before: unknown): string[] => [
    ...(Array.isArray(before) ? before.map(String) : []),
    word
  ])
}

/** @throws UsageError with every fault of every source */
export function resolveCommandLine(command: Command, io: CliIo): { settings: Settings; sources: Sources } {
  const options = optionsOf(command)
  const flags: Record<string, RawValue> = {}
  for (const field of settingFields) {
    const { flag } = schema[field]
    const value = options[camelCase(flag)]
    if (typeof value === 'string' || typeof value === 'boolean') flags[flag] = value
    else if (Array.isArray(value)) flags[flag] = value.map(String)
  }
  const { unknownFlags, strays } = sortLeftovers(command.args)
  const resolution: Resolution = resolveSettings({
    flags,
    unknownFlags,
    flagHint: flag => optionHint('serve', flag),
    env: io.env,
    file: configFileOf(options, io)
  })
  const faults = [...strays.map(word => `unexpected argument '${word}'`), ...(resolution.ok ? [] : resolution.faults)]
  if (!resolution.ok || faults.length > 0) throw new UsageError(listFaults(faults))
  return resolution
}

/** `--data-dir` → `dataDir`, as commander names it. */
function camelCase(flag: string): string {
  return flag.slice(2).replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

/** Unknown flags; the word after one is taken for its value, any other is a stray. */
function sortLeftovers(words: readonly string[]): { unknownFlags: string[]; strays: string[] } {
  const unknownFlags: string[] = []
  const strays: string[] = []
  for (const [index, word] of words.entries()) {
    const before = words[index - 1]
    if (word.startsWith('-') && word.length > 1) unknownFlags.push(word)
    else if (before === undefined || !before.startsWith('-') || before.includes('=')) strays.push(word)
  }
  return { unknownFlags, strays }
}

function listFaults(faults: readonly string[]): string {
  if (faults.length === 1) return faults[0] ?? ''
  return `${faults.length} faults in the configuration:\n${faults.map(fault => `  ${fault}`).join('\n')}`
}

/** Text after the options of both commands: the other two ways to give a setting. */
export function sourcesHelp(): string {
  const example = envNameOf('dataDir')
  return (
    '\nEvery flag is also an environment variable and a key of the file: --data-dir is ' +
    `${example} and data_dir.\nFlags win over the environment, that over the file, that over the defaults.`
  )
}
