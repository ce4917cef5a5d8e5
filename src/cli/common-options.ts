/**
 * What the commands share: the options of every client command, the readers of option texts, examples in --help.
 */
import { readFileSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { HttpClient, type Whole } from '../client/http/http-client.ts'
import type { ClientTls } from '../client/tls.ts'
import { parseBytes, parseDuration } from '../config/parse.ts'
import { addCredentialOptions, readSecret } from './credentials.ts'
import { UsageError, type CliIo } from './io.ts'

export const defaultBroker = 'http://127.0.0.1:9000'

/** Longest wait for one answer. Above the broker's own timeouts, so that its error arrives rather than ours. */
const ANSWER_TIMEOUT_MS = 60_000

/** A command's options are untyped texts until a reader has seen them. */
export type OptionTexts = Readonly<Record<string, unknown>>

/** Adds --broker, how to trust it, the key, and --json. They work before and after the command's name. */
export function addClientOptions(command: Command): Command {
  return addCredentialOptions(command)
    .addOption(
      new Option('--broker <url>', `broker to talk to (default: MILLRACE_BROKER, ES_BROKER or ${defaultBroker})`)
    )
    .addOption(new Option('--tls-ca <file>', 'PEM of who signed the certificate of an https broker, or that itself'))
    .addOption(new Option('--insecure', 'take any certificate of an https broker: for trials only'))
    .addOption(
      new Option('--json', 'print JSON, one object a line: answers as they came, or what a command makes of several')
    )
}

/** An option with a default, which --help shows as one would type it. */
export function optionWithDefault(flags: string, description: string, value: string): Option {
  return new Option(flags, description).default(value, value)
}

/** An option that may be given several times: its value is a list of texts. */
export function repeatableOption(flags: string, description: string): Option {
  return new Option(flags, `${description}; repeatable`).argParser((word: string, before: unknown): string[] => [
    ...wordsOf(before),
    word
  ])
}

/** The texts of such an option, none if it was not given. */
export function wordsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : []
}

/** Adds examples after the options in --help. */
export function addExamples(command: Command, examples: readonly string[]): Command {
  const lines = examples.map(example => `  $ ${example}`)
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`)
}

/** The options of a command and, where it has none of that name, of the commands above it. */
export function optionsOf(command: Command): OptionTexts {
  const chain: OptionTexts[] = []
  for (let current: Command | null = command; current !== null; current = current.parent) {
    chain.unshift(current.opts<OptionTexts>())
  }
  return Object.assign({}, ...chain) as OptionTexts
}

/** Which broker a command talks to, and as whom. */
export interface BrokerAccess {
  /** An http or https address; a slash at its end is possible. */
  readonly broker: string
  readonly secret: string | null
  readonly tls: ClientTls
}

/** What the options and the environment name: a flag wins over MILLRACE_…, that over ES_…. @throws UsageError */
export function accessOf(options: OptionTexts, io: CliIo): BrokerAccess {
  const written = textOf(options['broker']) || io.env['MILLRACE_BROKER'] || io.env['ES_BROKER'] || defaultBroker
  const broker = written.includes('://') ? written : `http://${written}`
  if (!URL.canParse(broker) || !/^https?:$/.test(new URL(broker).protocol)) {
    throw new UsageError(`--broker '${written}' is not an http address: write ${defaultBroker}`)
  }
  const secret = readSecret({ auth: textOf(options['auth']), authFile: textOf(options['authFile']) }, io)
  return { broker, secret, tls: trustIn(options) }
}

/** A client of that broker. @param waitMs that an answer may take on purpose. @throws UsageError */
export function openClient(options: OptionTexts, io: CliIo, waitMs = 0): HttpClient {
  return new HttpClient({ ...accessOf(options, io), timeoutMs: ANSWER_TIMEOUT_MS + waitMs })
}

/** How an https broker is trusted. @throws UsageError if the file cannot be read. */
function trustIn(options: OptionTexts): ClientTls {
  const insecure = options['insecure'] === true
  const path = textOf(options['tlsCa'])
  if (path === null) return { insecure }
  try {
    return { insecure, ca: readFileSync(path, 'utf8') }
  } catch (error) {
    throw new UsageError(`--tls-ca '${path}' cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** The text of an option, or null if it was not given. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/**
 * The text of an option that must be given. Checked here and not by commander, which would report a missing option
 * before a misspelt one. @throws UsageError
 */
export function requiredText(options: OptionTexts, name: string, flag: string): string {
  const text = textOf(options[name])
  if (text === null) throw new UsageError(`${flag} is missing`)
  if (text === '') throw new UsageError(`${flag} must not be empty`)
  return text
}

/** The one thing that a command is about: it may be named behind the command too. */
export interface NameFlags {
  readonly noun: string
  /** The first is shown; others are taken for it. */
  readonly flags: readonly [shown: string, ...others: string[]]
}

export const topicName: NameFlags = { noun: 'topic', flags: ['--name', '--topic'] }
export const groupName: NameFlags = { noun: 'group', flags: ['--name', '--group'] }
/** Of commands whose name does not say that they are about a topic. */
export const topicFlag: NameFlags = { noun: 'topic', flags: ['--topic'] }

/** Adds the argument and the flags. The command's action gets one argument more. */
export function addName(command: Command, { noun, flags: [shown, ...others] }: NameFlags, text: string): Command {
  command.argument(`[${noun}]`, `the ${noun}, if not given with ${shown}`).option(`${shown} <${noun}>`, text)
  for (const flag of others) command.addOption(new Option(`${flag} <${noun}>`, `the same as ${shown}`).hideHelp())
  return command
}

/** The name, however it was given; null: it was not. @throws UsageError for two names. */
export function nameOf(command: Command, { noun, flags }: NameFlags): string | null {
  const options = optionsOf(command)
  const texts = [command.args[0], ...flags.map(flag => options[flag.slice(2)])].map(textOf)
  const [name, second] = new Set(texts.filter(text => text !== null))
  if (second !== undefined) throw new UsageError(`two names are given: ${noun} '${name}', and '${second}'`)
  return name ?? null
}

/** The same of a name that must be given. @throws UsageError */
export function requiredName(command: Command, named: NameFlags): string {
  return requiredText({ name: nameOf(command, named) }, 'name', named.flags[0])
}

export interface WholeRange {
  readonly min: bigint
  readonly max: bigint
}

/** An unsigned 64-bit number, as the API takes it for offsets and sizes. */
export const u64: WholeRange = { min: 0n, max: 2n ** 64n - 1n }
/** Partition numbers and counts. */
export const u32: WholeRange = { min: 0n, max: 2n ** 32n - 1n }

/** A whole number, exact: bigint above 2^53. @returns null if the option was not given. @throws UsageError */
export function wholeOf(value: unknown, flag: string, range: WholeRange): Whole | null {
  const text = textOf(value)
  if (text === null) return null
  const whole = /^-?\d+$/.test(text) ? BigInt(text) : null
  if (whole === null || whole < range.min || whole > range.max) {
    throw new UsageError(`${flag} '${text}' is not a whole number from ${range.min} to ${range.max}`)
  }
  return whole > BigInt(Number.MAX_SAFE_INTEGER) ? whole : Number(whole)
}

/** The same for a number that is always small enough to be exact. */
export function smallWholeOf(value: unknown, flag: string, range: WholeRange): number | null {
  const whole = wholeOf(value, flag, range)
  return whole === null ? null : Number(whole)
}

/** `true` or `false`. @returns null if the option was not given. @throws UsageError */
export function switchOf(value: unknown, flag: string): boolean | null {
  const text = textOf(value)
  if (text === null) return null
  if (text === 'true' || text === 'false') return text === 'true'
  throw new UsageError(`${flag} '${text}' is neither true nor false`)
}

/** A whole number, or a size with a unit such as 64MiB. @throws UsageError */
export function sizeOf(value: unknown, flag: string, range: WholeRange): Whole | null {
  const text = textOf(value)
  if (text === null || /^-?\d+$/.test(text)) return wholeOf(value, flag, range)
  const reading = parseBytes(text)
  if (!reading.ok) throw new UsageError(`${flag} '${text}' ${reading.problem}`)
  return wholeOf(String(reading.value), flag, range)
}

/** Milliseconds, or a duration with units such as 7d. @throws UsageError */
export function durationOf(value: unknown, flag: string, range: WholeRange): Whole | null {
  const text = textOf(value)
  if (text === null || /^-?\d+$/.test(text)) return wholeOf(value, flag, range)
  const reading = parseDuration(text)
  if (!reading.ok) throw new UsageError(`${flag} '${text}' ${reading.problem}`)
  return wholeOf(String(reading.value), flag, range)
}

/** A limit that may be lifted: `never` and `unlimited` are the -1 of the API. */
export function orUnlimited(value: unknown): unknown {
  return value === 'never' || value === 'unlimited' ? '-1' : value
}

/** A time as the API takes it, before 1970 too. */
export const unixMs: WholeRange = { min: -(2n ** 63n), max: u64.max }
/** A date, or a date and a time with its zone: without one it would mean another moment on each machine. */
const isoTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/

/** An ISO 8601 time as Unix milliseconds. @returns null if it is none, or none that means one moment. */
export function isoMsOf(text: string): number | null {
  const day = text.slice(0, 10)
  const timeMs = isoTime.test(text) ? Date.parse(text) : Number.NaN
  // Date.parse takes February 31 for March 3.
  return !Number.isNaN(timeMs) && new Date(Date.parse(day)).toISOString().startsWith(day) ? timeMs : null
}

/** Unix milliseconds, or an ISO 8601 time. @returns null if the option was not given. @throws UsageError */
export function timeOf(value: unknown, flag: string): Whole | null {
  const text = textOf(value)
  if (text === null || /^-?\d+(ms)?$/.test(text)) return wholeOf(text?.replace('ms', ''), flag, unixMs)
  const timeMs = isoMsOf(text)
  if (timeMs !== null) return timeMs
  throw new UsageError(
    `${flag} '${text}' is neither Unix milliseconds nor a time such as 2026-01-31 (UTC) or 2026-01-31T08:30:00Z`
  )
}
