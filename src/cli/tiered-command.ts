/** `millrace tiered …`: what of a partition lies in cold storage, over the HTTP API. */
import type { Command } from 'commander'
import {
  addClientOptions,
  addExamples,
  openClient,
  optionsOf,
  requiredText,
  smallWholeOf,
  u32
} from './common-options.ts'
import { print, type CliIo } from './io.ts'

/** Adds the command group to the program. */
export function addTieredCommands(program: Command, io: CliIo): void {
  const tiered = program.command('tiered').description('show what lies in cold storage')
  const command = tiered
    .command('list')
    .description('list the segments of a partition in cold storage, by the offset that each begins at')
    .option('--topic <topic>', 'the topic (required)')
    .option('--partition <number>', 'the partition (required)')
  addExamples(addClientOptions(command), ['millrace tiered list --topic orders --partition 0'])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const topic = requiredText(options, 'topic', '--topic')
    const partition = smallWholeOf(requiredText(options, 'partition', '--partition'), '--partition', u32) ?? 0
    const answer = await openClient(options, io).coldSegments(topic, partition)
    const { segments } = answer.body
    const text = segments.length === 0 ? '(no segments in cold storage)' : segments.join('\n')
    await print(io.stdout, `${options['json'] === true ? answer.text : text}\n`)
  })
}
