/** `millrace schema …`: register, get, list, latest, over the HTTP API. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { Answer } from '../client/http/http-client.ts'
import { latestSchema, listSchemas, registerSchema, schemaById } from '../client/http/schema-calls.ts'
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

const ids = { min: 1n, max: BigInt(Number.MAX_SAFE_INTEGER) }

/** Adds the command group to the program. */
export function addSchemaCommands(program: Command, io: CliIo): void {
  const schema = program.command('schema').description('register schemas, and look at them')
  addRegister(schema, io)
  addGet(schema, io)
  addList(schema, io)
  addLatest(schema, io)
}

function addRegister(schema: Command, io: CliIo): void {
  const command = schema
    .command('register')
    .description('add a version to a subject; it must suit the ones before')
    .option('--subject <subject>', 'whose schema it is, such as orders-value for the values of orders (required)')
    .addOption(optionWithDefault('--type <type>', `language of the schema: ${schemaTypes.join(', ')}`, schemaTypes[0]))
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
    .description('show the schema that has an id')
    .argument('[id]', 'the id, if not given with --id')
    .option('--id <id>', 'the id, as register shows it')
  addExamples(addClientOptions(command), ['millrace schema get 1', 'millrace schema get --id 1 --json | jq -r .schema'])
  command.action(async (word: string | undefined, _, command: Command) => {
    const options = optionsOf(command)
    if (word !== undefined && textOf(options['id']) !== null) throw new UsageError('the id is given twice')
    const text = requiredText(word === undefined ? options : { id: word }, 'id', '--id')
    const id = smallWholeOf(text, '--id', ids) ?? 0
    await printPretty(await schemaById(openClient(options, io), id), options, io)
  })
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
