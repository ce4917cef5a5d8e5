/** `millrace schema …` of subjects: subjects, versions, compatibility, over the HTTP API. */
import { Option, type Command } from 'commander'
import type { HttpClient } from '../client/http/http-client.ts'
import { compatibilityModes } from '../model/schemas.ts'
import { addClientOptions, addExamples, openClient, optionsOf, requiredText, textOf } from './common-options.ts'
import { print, type CliIo } from './io.ts'

/** A mode as the API tells of it; null: none was chosen. */
interface ModeAnswer {
  readonly compatibility: string | null
}

/** Says that no mode is chosen any more. */
const INHERIT = 'inherit'

/** Adds the three commands to `millrace schema`. */
export function addSubjectCommands(schema: Command, io: CliIo): void {
  addSubjects(schema, io)
  addVersions(schema, io)
  addCompatibility(schema, io)
}

function addSubjects(schema: Command, io: CliIo): void {
  const command = schema.command('subjects').description('list the names of the subjects that the key can read')
  addExamples(addClientOptions(command), ['millrace schema subjects'])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const answer = await openClient(options, io).call<{ readonly subjects: readonly string[] }>('GET', '/subjects')
    const text = answer.body.subjects.join('\n') || '(no subjects)'
    await print(io.stdout, `${options['json'] === true ? answer.text : text}\n`)
  })
}

function addVersions(schema: Command, io: CliIo): void {
  const command = schema
    .command('versions')
    .description('list the versions of a subject; schema get --subject --version shows one')
    .option('--subject <subject>', 'the subject (required)')
  addExamples(addClientOptions(command), ['millrace schema versions --subject orders-value'])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const path = `${subjectPath(requiredText(options, 'subject', '--subject'))}/versions`
    const answer = await openClient(options, io).call<{ readonly versions: readonly number[] }>('GET', path)
    await print(io.stdout, `${options['json'] === true ? answer.text : answer.body.versions.join('\n')}\n`)
  })
}

function addCompatibility(schema: Command, io: CliIo): void {
  const modes = [...compatibilityModes, INHERIT]
  const command = schema
    .command('compatibility')
    .description('show or choose what a new version must suit')
    .option('--subject <subject>', 'of this subject; left out, the general mode')
    .addOption(new Option('--set <mode>', `choose it; ${INHERIT}: none of its own any more`).choices(modes))
  addExamples(addClientOptions(command), [
    'millrace schema compatibility --subject orders-value',
    'millrace schema compatibility --subject orders-value --set backward',
    'millrace schema compatibility --set full'
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const subject = textOf(options['subject']) === null ? null : requiredText(options, 'subject', '--subject')
    const answer = await modeOf(openClient(options, io), subject, textOf(options['set']))
    const shown = answer.body.compatibility ?? (subject === null ? 'default' : `${INHERIT} (the general mode counts)`)
    await print(io.stdout, `${options['json'] === true ? answer.text : `compatibility: ${shown}`}\n`)
  })
}

/** Shows it, or sets it and shows what it is then. */
function modeOf(client: HttpClient, subject: string | null, mode: string | null) {
  const path = subject === null ? '/admin/schemas/config' : `${subjectPath(subject)}/config`
  if (mode === null) return client.call<ModeAnswer>('GET', path)
  return client.call<ModeAnswer>('PUT', path, JSON.stringify({ compatibility: mode === INHERIT ? null : mode }))
}

function subjectPath(subject: string): string {
  return `/subjects/${encodeURIComponent(subject)}`
}
