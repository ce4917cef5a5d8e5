/** `millrace commit` and `millrace reset-offsets`: what groups have committed, over the HTTP API. */
import type { Command } from 'commander'
import { commitOffset, resetOffsets, type CommitFields } from '../client/http/group-calls.ts'
import { HttpClientError, type HttpClient } from '../client/http/http-client.ts'
import {
  addClientOptions,
  addExamples,
  openClient,
  optionsOf,
  requiredText,
  textOf,
  u32,
  u64,
  wholeOf,
  type OptionTexts
} from './common-options.ts'
import { beyondEndText } from './format.ts'
import { plannedResets } from './group-reset.ts'
import { print, type CliIo } from './io.ts'

/** Adds both commands to the program. */
export function addCommitCommands(program: Command, io: CliIo): void {
  addCommit(program, io)
  addResetOffsets(program, io)
}

function addCommit(program: Command, io: CliIo): void {
  const command = program
    .command('commit')
    .description('note for a consumer group the next offset to read')
    .option('--group <group>', 'the group; made if there is none (required)')
    .option('--topic <topic>', 'the topic (required)')
    .option('--partition <number>', 'the partition, from 0 (required)')
    .option('--offset <number>', 'the next offset to read (required)')
    .option('--member-id <id>', 'commit as this member: refused if it is none any more; with --generation')
    .option('--generation <number>', 'of its assignment: refused if the group was assigned anew since')
    .addHelpText(
      'after',
      '\nAny offset is taken: of one that the partition does not have, a line on stderr says so.\n' +
        'The answer has no body: --json prints nothing.'
    )
  addExamples(addClientOptions(command), [
    'millrace commit --group analytics --topic orders --partition 0 --offset 143',
    'millrace commit --group analytics --topic orders --partition 0 --offset 143 --member-id m_0 --generation 3'
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const client = openClient(options, io)
    const group = requiredText(options, 'group', '--group')
    const topic = requiredText(options, 'topic', '--topic')
    const partition = Number(wholeOf(requiredText(options, 'partition', '--partition'), '--partition', u32))
    const offset = wholeOf(requiredText(options, 'offset', '--offset'), '--offset', u64) ?? 0
    await commitOffset(client, group, { topic, partition, offset, ...memberOf(options) })
    if (options['json'] !== true) await print(io.stdout, 'committed\n')
    const warning = await outsideWarning(client, { topic, partition, offset })
    if (warning !== null) await print(io.stderr, `millrace: ${warning}\n`)
  })
}

/**
 * What is odd about an offset that is committed already: the API takes any. Asked afterwards, so that nothing of this can
 * keep a commit from happening, or make one that happened look refused. @returns null if the partition has the offset.
 */
async function outsideWarning(
  client: HttpClient,
  { topic, partition, offset }: Pick<CommitFields, 'topic' | 'partition' | 'offset'>
): Promise<string | null> {
  try {
    const { earliest, latest } = (await client.partitionOffsets(topic, partition, null)).body
    if (offset > latest) return beyondEndText(offset, partition, latest)
    if (offset >= earliest) return null
    return `offset ${offset} is before the beginning of partition ${partition}, which is ${earliest}`
  } catch (error) {
    if (!(error instanceof HttpClientError)) throw error
    return `it is not known whether partition ${partition} has offset ${offset}: ${error.reason}`
  }
}

/** Who commits, if that is said. @throws what requiredText throws if half of it is. */
function memberOf(options: OptionTexts): Pick<CommitFields, 'member_id' | 'generation'> {
  if (textOf(options['memberId']) === null && textOf(options['generation']) === null) return {}
  const memberId = requiredText(options, 'memberId', '--member-id')
  const generation = wholeOf(requiredText(options, 'generation', '--generation'), '--generation', u64) ?? 0
  return { member_id: memberId, generation }
}

function addResetOffsets(program: Command, io: CliIo): void {
  const command = program
    .command('reset-offsets')
    .description('move every consumer group on a topic back to its first offset')
    .option('--topic <topic>', 'the topic (required)')
    .option('--dry-run', 'change nothing, and show what would change')
    .addHelpText('after', "\nOne group alone, or another place: 'millrace group reset'.")
  addExamples(addClientOptions(command), [
    'millrace reset-offsets --topic orders --dry-run',
    'millrace reset-offsets --topic orders'
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const client = openClient(options, io)
    const topic = requiredText(options, 'topic', '--topic')
    if (options['dryRun'] === true) {
      const { json, lines } = await plannedResets(client, topic)
      const text = (options['json'] === true ? json : lines).map(line => `${line}\n`).join('')
      if (text !== '') await print(io.stdout, text)
      return
    }
    const { body, text } = await resetOffsets(client, topic)
    const words = `reset ${body.entries_reset} entries across ${body.groups_affected} group(s)`
    await print(io.stdout, `${options['json'] === true ? text : words}\n`)
  })
}
