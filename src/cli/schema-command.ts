/** `millrace schema …`: register, get, list, latest, over the HTTP API; schema-subject-commands.ts has the rest. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { Answer, HttpClient } from '../client/http/http-client.ts'
import {
  latestSchema,
  listSchemas,
  registerSchema,
  schemaById,
  type SchemaAnswer
} from '../client/http/schema-calls.ts'
import { schemaTypes } from '../model/schemas.ts'
import {
  addClientOptions,
  addExamples,
  openClient,
  optionsOf,
  optionWithDefault,
  requiredText,
  smallWholeOf,
  textOf,
  type OptionTexts
} from './common-options.ts'
import { print, UsageError, type CliIo } from './io.ts'
import { addSubjectCommands } from './schema-subject-commands.ts'

const ids = { min: 1n, max: BigInt(Number.MAX_SAFE_INTEGER) }

/** Adds the command group to the program. */
export function addSchemaCommands(program: Command, io: CliIo): void {
  const schema = program
    .command('schema')
    .description('register schemas, look at them, and choose what new versions must suit')
  addRegister(schema, io)
  addGet(schema, io)
  addList(schema, io)
  addLatest(schema, io)
  addSubjectCommands(schema, io)
}

function addRegister(schema: Command, io: CliIo): void {
  const command = schema
    .command('register')
    .description('add a version to a subject; it must suit the ones before')
    .option('--subject <subject>', 'whose schema it is, such as orders-value for the values of orders (required)')
    .addOption(optionWithDefault('--type <type>', 'language of the schema', schemaTypes[0]).choices(schemaTypes))
    .option('--schema <file or JSON>', 'a file, or the schema itself where it begins with { or [ (required)')
  addExamples(addClientOptions(command), [
    'millrace schema register --subject orders-value --schema order.json',
    'millrace schema register --subject orders-value --type protobuf --schema order.proto',
    `millrace schema register --subject orders-key --schema '{"type":"string"}'`
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const subject = requiredText(options, 'subject', '--subject')
    const request = { subject, type: requiredText(options, 'type', '--type'), schema: schemaOf(options) }
    const answer = await registerSchema(openClient(options, io), request)
    await print(io.stdout, `${options['json'] === true ? answer.text : `id: ${answer.body.id}`}\n`)
  })
}

/** @throws UsageError if the file cannot be read. */
function schemaOf(options: OptionTexts): string {
  const given = requiredText(options, 'schema', '--schema')
  if (/^\s*[{[]/.test(given)) return given
  try {
    return readFileSync(given, 'utf8')
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageError(`--schema '${given}' cannot be read: ${reason}`)
  }
}

function addGet(schema: Command, io: CliIo): void {
  const command = schema
    .command('get')
    .description('show the schema that has an id, or a version of a subject')
    .argument('[id]', 'the id, if not given with --id')
    .option('--id <id>', 'the id, as register shows it')
    .option('--subject <subject>', 'the subject, instead of an id')
    .option('--version <number>', 'its version; left out, the latest')
  addExamples(addClientOptions(command), [
    'millrace schema get 1',
    'millrace schema get --id 1 --json | jq -r .schema',
    'millrace schema get --subject orders-value --version 2'
  ])
  command.action(async (word: string | undefined, _, command: Command) => {
    const options = optionsOf(command)
    const subject = textOf(options['subject'])
    if (word !== undefined && textOf(options['id']) !== null) throw new UsageError('the id is given twice')
    if (subject === null && textOf(options['version']) !== null) throw new UsageError('--version needs --subject')
    if (subject !== null && (word !== undefined || textOf(options['id']) !== null)) {
      throw new UsageError('give an id or a --subject, not both')
    }
    const client = openClient(options, io)
    const answer = subject === null ? schemaById(client, idOf(word, options)) : versionOf(client, options)
    await printPretty(await answer, options, io)
  })
}

/** @throws UsageError */
function idOf(word: string | undefined, options: OptionTexts): number {
  const text = requiredText(word === undefined ? options : { id: word }, 'id', '--id')
  return smallWholeOf(text, '--id', ids) ?? 0
}

/** @throws UsageError */
function versionOf(client: HttpClient, options: OptionTexts): Promise<Answer<SchemaAnswer>> {
  const subject = requiredText(options, 'subject', '--subject')
  const version = smallWholeOf(options['version'], '--version', ids)
  if (version === null) return latestSchema(client, subject)
  return client.call('GET', `/subjects/${encodeURIComponent(subject)}/versions/${version}`)
}

function addList(schema: Command, io: CliIo): void {
  const command = schema.command('list').description('show all versions of all subjects that the key can read, by id')
  addExamples(addClientOptions(command), ['millrace schema list', 'millrace schema list --json'])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    await printPretty(await listSchemas(openClient(options, io)), options, io)
  })
}

function addLatest(schema: Command, io: CliIo): void {
  const command = schema
    .command('latest')
    .description('show the latest version of a subject')
    .option('--subject <subject>', 'the subject (required)')
  addExamples(addClientOptions(command), ['millrace schema latest --subject orders-value'])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const subject = requiredText(options, 'subject', '--subject')
    await printPretty(await latestSchema(openClient(options, io), subject), options, io)
  })
}

/** JSON for people; with --json the answer as it came. */
async function printPretty(answer: Answer<unknown>, options: OptionTexts, io: CliIo): Promise<void> {
  await print(io.stdout, `${options['json'] === true ? answer.text : JSON.stringify(answer.body, null, 2)}\n`)
}
