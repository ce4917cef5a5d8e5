/**
 * The reference of commands as docs/cli.md has it, made from the program. Run by itself it puts it there:
 * `node test/support/command-rows.ts`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command, type Option } from 'commander'
import { addClientOptions } from '../../src/cli/common-options.ts'
import { buildProgram } from '../../src/cli/run.ts'
import { schema, settingFields } from '../../src/config/schema.ts'
import { repository } from './repository.ts'

const start = '<!-- commands: made by test/support/command-rows.ts -->'
const end = '<!-- end of commands -->'

const clientFlags = addClientOptions(new Command()).options.map(({ flags }) => flags)
const settingFlags = new Set<string>(settingFields.map(field => schema[field].flag))

/** A cell of a table. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('<', '&lt;')
}

function flagRow(option: Option): string {
  const choices = option.argChoices === undefined ? '' : ` One of ${option.argChoices.join(', ')}.`
  const fallback = option.defaultValue === undefined ? '' : ` Default: \`${String(option.defaultValue)}\`.`
  return `| \`${option.flags.replaceAll('|', '\\|')}\` | ${cell(option.description)}.${choices}${fallback} |`
}

function sectionOf(command: Command, path: string): string[] {
  const words = command.registeredArguments.map(argument => {
    return argument.required ? ` <${argument.name()}>` : ` [${argument.name()}]`
  })
  const isClient = clientFlags.every(flag => command.options.some(({ flags }) => flags === flag))
  const isSettings = [...settingFlags].every(flag => command.options.some(({ long }) => long === flag))
  const own = command.options.filter(({ flags, long, hidden }) => {
    return !hidden && !(isClient && clientFlags.includes(flags)) && !(isSettings && settingFlags.has(long ?? ''))
  })
  const notes = [
    ...(isClient ? ['Takes the flags of [all client commands](#all-client-commands).'] : []),
    ...(isSettings ? ['Takes every setting of [configuration](configuration.md) as a flag.'] : [])
  ]
  const table = own.length === 0 ? [] : ['| flag | what it says |', '|---|---|', ...own.map(flagRow), '']
  return [
    `### ${path}${words.join('').replaceAll('<', '&lt;')}`,
    '',
    `${[cell(command.description()), ...notes].join('. ').replace(/\.$/, '')}.`,
    '',
    ...table
  ]
}

function sectionsOf(command: Command, path: string): string[] {
  const children = command.commands.filter(child => child.name() !== 'help')
  if (children.length === 0) return sectionOf(command, path)
  return children.flatMap(child => sectionsOf(child, `${path} ${child.name()}`))
}

/** The reference, with its marks. */
export function commandReference(): string {
  const io = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: {} }
  const program = buildProgram(io, () => undefined)
  const shared = [
    '### all client commands',
    '',
    'They may stand before the command too.',
    '',
    '| flag | what it says |',
    '|---|---|',
    ...addClientOptions(new Command()).options.map(flagRow),
    ''
  ]
  return [start, '', ...shared, ...sectionsOf(program, 'millrace'), end].join('\n')
}

/** The reference that a document has. */
export function referenceIn(document: string): string {
  return document.slice(document.indexOf(start), document.indexOf(end) + end.length)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = join(repository, 'docs/cli.md')
  const document = readFileSync(path, 'utf8')
  writeFileSync(
    path,
    document.replace(referenceIn(document), () => commandReference())
  )
}
