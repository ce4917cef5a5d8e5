/** `millrace producer …`: the ids of idempotent producers: list, revoke, over the HTTP API. */
import type { Command } from 'commander'
import { addClientOptions, addExamples, openClient, optionsOf, requiredText, textOf } from './common-options.ts'
import { formatProducers } from './format.ts'
import { print, UsageError, type CliIo } from './io.ts'

/** Adds the command group to the program. */
export function addProducerCommands(program: Command, io: CliIo): void {
  const producer = program.command('producer').description('list and revoke the ids of idempotent producers')
  addList(producer, io)
  addRevoke(producer, io)
}

function addList(producer: Command, io: CliIo): void {
  const command = producer
    .command('list')
    .description('list producer ids, with the last sequence and offset of each in every partition')
  addExamples(addClientOptions(command), ['millrace producer list', 'millrace producer list --json'])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const answer = await openClient(options, io).listProducers()
    const lines = formatProducers(answer.body.producers)
    const text = lines.length === 0 ? '(no producers)' : lines.join('\n')
    await print(io.stdout, `${options['json'] === true ? answer.text : text}\n`)
  })
}

function addRevoke(producer: Command, io: CliIo): void {
  const command = producer
    .command('revoke')
    .description('forget a producer id: its next use starts afresh, with any sequence')
    .argument('[id]', 'the producer id, if not given with --id')
    .option('--id <id>', 'the producer id')
    .addHelpText(
      'after',
      '\nRecords stay as they are. What the producer sends again after this is written again. The answer has no body:\n' +
        '--json prints nothing.'
    )
  addExamples(addClientOptions(command), ['millrace producer revoke shop-1', 'millrace producer revoke --id shop-1'])
  command.action(async (word: string | undefined, _, command: Command) => {
    const options = optionsOf(command)
    if (word !== undefined && textOf(options['id']) !== null) throw new UsageError('the id is given twice')
    const id = requiredText(word === undefined ? options : { id: word }, 'id', '--id')
    await openClient(options, io).forgetProducer(id)
    if (options['json'] !== true) await print(io.stdout, `revoked producer '${id}'\n`)
  })
}
