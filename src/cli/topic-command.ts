/** `millrace topic …`: create, list, describe, delete, over the HTTP API. */
import type { Command } from 'commander'
import type { TopicConfigFields, Whole } from '../client/http/http-client.ts'
import {
  addClientOptions,
  addExamples,
  openClient,
  optionsOf,
  requiredText,
  sizeOf,
  smallWholeOf,
  textOf,
  u32,
  u64,
  wholeOf,
  type OptionTexts
} from './common-options.ts'
import { formatDescription } from './format.ts'
import { print, type CliIo } from './io.ts'

/** −1 clears a retention back to never. */
const u64OrNever = { min: -1n, max: u64.max }

/** Adds the command group to the program. */
export function addTopicCommands(program: Command, io: CliIo): void {
  const topic = program.command('topic').description('create, list, describe and delete topics')
  addCreate(topic, io)
  addList(topic, io)
  addDescribe(topic, io)
  addDelete(topic, io)
}

function addCreate(topic: Command, io: CliIo): void {
  const command = topic
    .command('create')
    .description('create a topic')
    .option('--name <topic>', 'name: letters, digits, dot, underscore, dash (required)')
    .option('--partitions <number>', 'number of partitions', '1')
    .option('--retention-ms <ms>', 'how long records are kept (default: for ever)')
    .option('--retention-bytes <bytes>', 'how much of a partition is kept (default: all)')
    .option('--cleanup-policy <policy>', 'delete, compact or compact,delete')
    .option('--segment-bytes <bytes>', 'size at which a segment ends')
    .option('--tombstone-retention-ms <ms>', 'how long compaction keeps a tombstone')
  addExamples(addClientOptions(command), [
    'millrace topic create --name orders --partitions 3',
    'millrace topic create --name prices --cleanup-policy compact --segment-bytes 16MiB'
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const name = requiredText(options, 'name', '--name')
    const partitions = smallWholeOf(options['partitions'], '--partitions', u32) ?? 1
    const answer = await openClient(options, io).createTopic(name, partitions, configOf(options))
    const { body } = answer
    const text = `created topic '${body.name}' with ${body.partitions} partition(s)`
    await print(io.stdout, `${options['json'] === true ? answer.text : text}\n`)
  })
}

function configOf(options: OptionTexts): TopicConfigFields {
  const fields: Readonly<Record<string, Whole | string | null>> = {
    retention_ms: wholeOf(options['retentionMs'], '--retention-ms', u64OrNever),
    retention_bytes: sizeOf(options['retentionBytes'], '--retention-bytes', u64OrNever),
    cleanup_policy: textOf(options['cleanupPolicy']),
    segment_bytes: sizeOf(options['segmentBytes'], '--segment-bytes', u64),
    tombstone_retention_ms: wholeOf(options['tombstoneRetentionMs'], '--tombstone-retention-ms', u64)
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}

function addList(topic: Command, io: CliIo): void {
  const command = topic.command('list').description('list the names of all topics')
  addExamples(addClientOptions(command), ['millrace topic list', 'millrace topic list --json'])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const answer = await openClient(options, io).listTopics()
    const names = answer.body.topics.length === 0 ? '(no topics)' : answer.body.topics.join('\n')
    await print(io.stdout, `${options['json'] === true ? answer.text : names}\n`)
  })
}

function addDescribe(topic: Command, io: CliIo): void {
  const command = topic
    .command('describe')
    .description('show the configuration and the partitions of a topic')
    .option('--name <topic>', 'the topic (required)')
  addExamples(addClientOptions(command), ['millrace topic describe --name orders'])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const answer = await openClient(options, io).describeTopic(requiredText(options, 'name', '--name'))
    const text = options['json'] === true ? answer.text : formatDescription(answer.body).join('\n')
    await print(io.stdout, `${text}\n`)
  })
}

function addDelete(topic: Command, io: CliIo): void {
  const command = topic
    .command('delete')
    .description('delete a topic and all of its records, for good')
    .option('--name <topic>', 'the topic (required)')
  addExamples(addClientOptions(command), ['millrace topic delete --name orders'])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const answer = await openClient(options, io).deleteTopic(requiredText(options, 'name', '--name'))
    const text = options['json'] === true ? answer.text : `deleted topic '${answer.body.name}'`
    await print(io.stdout, `${text}\n`)
  })
}
