/** `millrace group …`: list, show, lag, join, heartbeat, leave, assignment, reset, delete, over the HTTP API. */
import type { Command } from 'commander'
import {
  describeGroup,
  groupAssignment,
  groupOffsets,
  heartbeatGroup,
  joinGroup,
  leaveGroup,
  listGroups,
  removeGroup
} from '../client/http/group-calls.ts'
import type { HttpClient } from '../client/http/http-client.ts'
import {
  addClientOptions,
  addExamples,
  addName,
  groupName,
  openClient,
  optionsOf,
  requiredName,
  requiredText,
  repeatableOption,
  textOf,
  u64,
  wholeOf,
  wordsOf,
  type OptionTexts
} from './common-options.ts'
import { formatAssignment, formatGroups, formatHeartbeat, formatMembers, formatOffsets } from './format-group.ts'
import { addGroupLag } from './group-lag.ts'
import { describeReset, resetExamples, resetOffsetsOf, type Printed } from './group-reset.ts'
import { print, UsageError, type CliIo } from './io.ts'

type Act = (client: HttpClient, name: string, options: OptionTexts) => Promise<Printed>

/** Adds the command group to the program. */
export function addGroupCommands(program: Command, io: CliIo): void {
  const group = program
    .command('group')
    .description('list, show, reset and delete consumer groups, see their lag, join and leave them')
  addList(group, io)
  addShow(group, io)
  addGroupLag(group, io)
  addJoin(group, io)
  addHeartbeat(group, io)
  addLeave(group, io)
  addAssignment(group, io)
  addReset(group, io)
  addDelete(group, io)
}

/** What all of them have but list: a name, an action, and how its answer is printed. */
function finish(command: Command, examples: readonly string[], io: CliIo, act: Act): void {
  addName(command, groupName, 'the group (required)')
  addExamples(addClientOptions(command), examples)
  command.action(async (_name, _, command: Command) => {
    const options = optionsOf(command)
    const name = requiredName(command, groupName)
    const { json, lines, warning } = await act(openClient(options, io), name, options)
    const text = (options['json'] === true ? json : lines).map(line => `${line}\n`).join('')
    if (text !== '') await print(io.stdout, text)
    if (warning !== undefined) await print(io.stderr, `millrace: ${warning}\n`)
  })
}

function addList(group: Command, io: CliIo): void {
  const command = group.command('list').description('list the groups of the key, with members, generation and lag')
  addExamples(addClientOptions(command), ['millrace group list', 'millrace group list --json'])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const answer = await listGroups(openClient(options, io))
    const text = formatGroups(answer.body.groups).join('\n') || '(no groups)'
    await print(io.stdout, `${options['json'] === true ? answer.text : text}\n`)
  })
}

function addShow(group: Command, io: CliIo): void {
  const command = group.command('show').description('show the members, the lag and the committed offsets of a group')
  finish(
    command,
    ['millrace group show analytics', 'millrace group show --name analytics'],
    io,
    async (client, name) => {
      const described = await describeGroup(client, name)
      const offsets = await groupOffsets(client, name)
      return {
        json: [described.text, offsets.text],
        lines: [...formatGroups([described.body]), ...formatMembers(described.body), ...formatOffsets(offsets.body)]
      }
    }
  )
}

function addJoin(group: Command, io: CliIo): void {
  const command = group
    .command('join')
    .description('join a group, and print the member id, the generation and the partitions')
    .addOption(repeatableOption('--topic <topic>', 'a topic to consume (required)'))
    .option('--member-id <id>', 'the id to have; left out, the broker picks one')
    .addHelpText('after', '\nA member that sends no heartbeat is removed after --coord-member-timeout of the broker.')
  finish(command, ['millrace group join --name analytics --topic orders'], io, async (client, name, options) => {
    const wanted = wordsOf(options['topic'])
    if (wanted.length === 0) throw new UsageError('--topic is missing')
    const { body, text } = await joinGroup(client, name, wanted, textOf(options['memberId']))
    const head = `member_id=${body.member_id} generation=${body.generation}`
    return { json: [text], lines: [head, ...formatAssignment(body)] }
  })
}

function addHeartbeat(group: Command, io: CliIo): void {
  const command = addMember(
    group.command('heartbeat').description('say that a member lives, and hear of rebalances')
  ).option('--generation <number>', 'the generation that the member knows (required)')
  const example = 'millrace group heartbeat --name analytics --member-id m_0 --generation 3'
  finish(command, [example], io, async (client, name, options) => {
    const generation = wholeOf(requiredText(options, 'generation', '--generation'), '--generation', u64) ?? 0
    const { body, text } = await heartbeatGroup(client, name, memberOf(options), generation)
    return { json: [text], lines: [formatHeartbeat(body)] }
  })
}

function addLeave(group: Command, io: CliIo): void {
  const command = addMember(group.command('leave').description('leave a group: its other members get the partitions'))
  command.addHelpText('after', noBody)
  finish(command, ['millrace group leave --name analytics --member-id m_0'], io, async (client, name, options) => {
    await leaveGroup(client, name, memberOf(options))
    return { json: [], lines: [`left group '${name}'`] }
  })
}

function addAssignment(group: Command, io: CliIo): void {
  const command = addMember(group.command('assignment').description('print the partitions of a member'))
  const example = 'millrace group assignment --name analytics --member-id m_0'
  finish(command, [example], io, async (client, name, options) => {
    const { body, text } = await groupAssignment(client, name, memberOf(options))
    return { json: [text], lines: [`generation=${body.generation}`, ...formatAssignment(body)] }
  })
}

function addReset(group: Command, io: CliIo): void {
  finish(describeReset(group.command('reset')), resetExamples, io, resetOffsetsOf)
}

function addDelete(group: Command, io: CliIo): void {
  const command = group.command('delete').description('forget a group and its offsets; it must have no members')
  command.addHelpText('after', noBody)
  finish(command, ['millrace group delete --name analytics'], io, async (client, name) => {
    await removeGroup(client, name)
    return { json: [], lines: [`deleted group '${name}'`] }
  })
}

const noBody = '\nThe answer has no body: --json prints nothing.'

function addMember(command: Command): Command {
  return command.option('--member-id <id>', 'the member (required)')
}

/** @throws UsageError */
function memberOf(options: OptionTexts): string {
  return requiredText(options, 'memberId', '--member-id')
}
