/** `millrace topic …`: create, alter, add-partitions, list, describe, offsets, show-config, delete-records, delete, over the HTTP API. */
import type { Command } from 'commander'
import type { Answer, TopicConfigFields, Whole } from '../client/http/http-client.ts'
import {
  addClientOptions,
  addExamples,
  addName,
  durationOf,
  openClient,
  orUnlimited,
  optionWithDefault,
  optionsOf,
  requiredName,
  requiredText,
  sizeOf,
  smallWholeOf,
  switchOf,
  textOf,
  timeOf,
  topicName,
  u32,
  u64,
  wholeOf,
  type OptionTexts
} from './common-options.ts'
import { formatConfig, formatDescription, formatOffsets } from './format.ts'
import { print, UsageError, type CliIo } from './io.ts'

/** −1 clears a retention back to never, and what a topic has of its own to what the broker has. */
const u64OrNever = { min: -1n, max: u64.max }

/** Adds the command group to the program. */
export function addTopicCommands(program: Command, io: CliIo): void {
  const topic = program
    .command('topic')
    .description('create, alter, list, describe and delete topics, add partitions, look up offsets, delete records')
  addCreate(topic, io)
  addAlter(topic, io)
  addPartitions(topic, io)
  addList(topic, io)
  addDescribe(topic, io)
  addOffsets(topic, io)
  addShowConfig(topic, io)
  addDeleteRecords(topic, io)
  addDelete(topic, io)
}

function addCreate(topic: Command, io: CliIo): void {
  const command = addName(
    topic
      .command('create')
      .description('create a topic')
      .addOption(optionWithDefault('--partitions <number>', 'number of partitions', '1')),
    topicName,
    'name: letters, digits, dot, underscore, dash (required)'
  )
  addExamples(addClientOptions(addConfigOptions(command)), [
    'millrace topic create orders --partitions 3',
    'millrace topic create --name prices --cleanup-policy compact --segment-bytes 16MiB',
    'millrace topic create --name payments --validate-schema true'
  ])
  command.action(async (_name, _, command: Command) => {
    const options = optionsOf(command)
    const name = requiredName(command, topicName)
    const partitions = smallWholeOf(options['partitions'], '--partitions', u32) ?? 1
    const answer = await openClient(options, io).createTopic(name, partitions, configOf(options))
    const { body } = answer
    const text = `created topic '${body.name}' with ${body.partitions} partition(s)`
    await print(io.stdout, `${options['json'] === true ? answer.text : text}\n`)
  })
}

/** The fields of a topic's configuration, one option each. */
function addConfigOptions(command: Command): Command {
  return command
    .option(
      '--retention-ms <ms>',
      'how long records are kept, in ms or as 7d; -1 or never: for ever, as in a new topic'
    )
    .option(
      '--retention-bytes <bytes>',
      'how much of a partition is kept, such as 10GiB; -1 or never: all, as in a new topic'
    )
    .option('--cleanup-policy <policy>', 'delete, compact or compact,delete')
    .option('--segment-bytes <bytes>', 'size at which a segment ends')
    .option('--tombstone-retention-ms <ms>', 'how long compaction keeps a tombstone, in ms or as 1d')
    .option('--validate-schema <true|false>', "whether records must match the latest schema of '<topic>-value'")
    .option('--message-timestamp-type <type>', "times of Kafka's clients: CreateTime, their own, or LogAppendTime")
    .option('--max-message-bytes <bytes>', "largest batch of Kafka's clients, and record of others; -1: the broker's")
    .option('--segment-ms <ms>', "age at which a segment ends, in ms or as 1h; -1: the broker's")
    .option(
      '--partitioner <fnv1a|murmur2>',
      'where keys go: murmur2 as in Kafka; changes only while the topic is empty'
    )
}

function addAlter(topic: Command, io: CliIo): void {
  const command = addName(
    topic.command('alter').description('change the configuration of a topic; what is not named keeps its value'),
    topicName,
    'the topic (required)'
  )
  addExamples(addClientOptions(addConfigOptions(command)), [
    'millrace topic alter --name orders --retention-ms 7d',
    'millrace topic alter --name orders --retention-ms -1 --segment-bytes 16MiB'
  ])
  command.action(async (_name, _, command: Command) => {
    const options = optionsOf(command)
    const name = requiredName(command, topicName)
    const fields = configOf(options)
    if (Object.keys(fields).length === 0) throw new UsageError('nothing to change: name a field, as --retention-ms')
    await printConfig(await openClient(options, io).changeTopicConfig(name, fields), options, io)
  })
}

function addPartitions(topic: Command, io: CliIo): void {
  const command = addName(
    topic
      .command('add-partitions')
      .description('give a topic more partitions; a key may go to another one from then on')
      .option('--partitions <number>', 'how many it is to have, more than it has (required)'),
    topicName,
    'the topic (required)'
  )
  addExamples(addClientOptions(command), ['millrace topic add-partitions --name orders --partitions 6'])
  command.action(async (_name, _, command: Command) => {
    const options = optionsOf(command)
    const name = requiredName(command, topicName)
    const wanted = smallWholeOf(requiredText(options, 'partitions', '--partitions'), '--partitions', u32) ?? 0
    const answer = await openClient(options, io).addPartitions(name, wanted)
    const text = `topic '${answer.body.name}' has ${answer.body.partitions} partition(s)`
    await print(io.stdout, `${options['json'] === true ? answer.text : text}\n`)
  })
}

function addShowConfig(topic: Command, io: CliIo): void {
  const command = addName(
    topic.command('show-config').description('show the configuration of a topic, a field per line'),
    topicName,
    'the topic (required)'
  )
  addExamples(addClientOptions(command), ['millrace topic show-config --name orders'])
  command.action(async (_name, _, command: Command) => {
    const options = optionsOf(command)
    const name = requiredName(command, topicName)
    await printConfig(await openClient(options, io).topicConfig(name), options, io)
  })
}

async function printConfig(answer: Answer<TopicConfigFields>, options: OptionTexts, io: CliIo): Promise<void> {
  const text = options['json'] === true ? answer.text : formatConfig(answer.body).join('\n')
  await print(io.stdout, `${text}\n`)
}

function configOf(options: OptionTexts): TopicConfigFields {
  const fields: Readonly<Record<string, Whole | string | boolean | null>> = {
    retention_ms: durationOf(orUnlimited(options['retentionMs']), '--retention-ms', u64OrNever),
    retention_bytes: sizeOf(orUnlimited(options['retentionBytes']), '--retention-bytes', u64OrNever),
    cleanup_policy: textOf(options['cleanupPolicy']),
    segment_bytes: sizeOf(options['segmentBytes'], '--segment-bytes', u64),
    tombstone_retention_ms: durationOf(options['tombstoneRetentionMs'], '--tombstone-retention-ms', u64),
    validate_schema: switchOf(options['validateSchema'], '--validate-schema'),
    message_timestamp_type: textOf(options['messageTimestampType']),
    max_message_bytes: sizeOf(options['maxMessageBytes'], '--max-message-bytes', u64OrNever),
    segment_ms: durationOf(options['segmentMs'], '--segment-ms', u64OrNever),
    partitioner: textOf(options['partitioner'])
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
  const command = addName(
    topic.command('describe').description('show the configuration and the partitions of a topic'),
    topicName,
    'the topic (required)'
  )
  addExamples(addClientOptions(command), ['millrace topic describe orders', 'millrace topic describe --name orders'])
  command.action(async (_name, _, command: Command) => {
    const options = optionsOf(command)
    const answer = await openClient(options, io).describeTopic(requiredName(command, topicName))
    const text = options['json'] === true ? answer.text : formatDescription(answer.body).join('\n')
    await print(io.stdout, `${text}\n`)
  })
}

function addOffsets(topic: Command, io: CliIo): void {
  const command = addName(
    topic
      .command('offsets')
      .description('show where partitions begin and end, and the first record at or after a time')
      .option('--partition <number>', 'one partition; all if left out')
      .option('--time <time>', 'Unix milliseconds, or ISO 8601 such as 2026-01-31T08:30:00Z'),
    topicName,
    'the topic (required)'
  )
  addExamples(addClientOptions(command), [
    'millrace topic offsets --name orders',
    'millrace topic offsets --name orders --partition 0 --time 2026-01-31T08:30:00Z'
  ])
  command.action(async (_name, _, command: Command) => {
    const options = optionsOf(command)
    const name = requiredName(command, topicName)
    const partition = smallWholeOf(options['partition'], '--partition', u32)
    const timeMs = timeOf(options['time'], '--time')
    const client = openClient(options, io)
    const answer =
      partition === null
        ? await client.topicOffsets(name, timeMs)
        : await client.partitionOffsets(name, partition, timeMs)
    const entries = 'partitions' in answer.body ? answer.body.partitions : [answer.body]
    await print(io.stdout, `${options['json'] === true ? answer.text : formatOffsets(entries).join('\n')}\n`)
  })
}

function addDeleteRecords(topic: Command, io: CliIo): void {
  const command = addName(
    topic
      .command('delete-records')
      .description('delete the records of a partition below an offset, for good')
      .option('--partition <number>', 'the partition (required)')
      .option('--offset <offset>', 'the first record to keep; the end of the partition: keep none (required)'),
    topicName,
    'the topic (required)'
  )
  addExamples(addClientOptions(command), ['millrace topic delete-records --name orders --partition 0 --offset 57'])
  command.action(async (_name, _, command: Command) => {
    const options = optionsOf(command)
    const name = requiredName(command, topicName)
    const partition = smallWholeOf(requiredText(options, 'partition', '--partition'), '--partition', u32) ?? 0
    const offset = wholeOf(requiredText(options, 'offset', '--offset'), '--offset', u64) ?? 0
    const answer = await openClient(options, io).deleteRecords(name, partition, offset)
    const text = `partition=${answer.body.partition} start_offset=${answer.body.start_offset}`
    await print(io.stdout, `${options['json'] === true ? answer.text : text}\n`)
  })
}

function addDelete(topic: Command, io: CliIo): void {
  const command = addName(
    topic.command('delete').description('delete a topic and all of its records, for good'),
    topicName,
    'the topic (required)'
  )
  addExamples(addClientOptions(command), ['millrace topic delete orders'])
  command.action(async (_name, _, command: Command) => {
    const options = optionsOf(command)
    const answer = await openClient(options, io).deleteTopic(requiredName(command, topicName))
    const text = options['json'] === true ? answer.text : `deleted topic '${answer.body.name}'`
    await print(io.stdout, `${text}\n`)
  })
}
