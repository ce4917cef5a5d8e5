/**
 * `millrace group lag`: how far groups are behind, partition by partition. Ends and committed offsets are two answers, so
 * a partition that is written to meanwhile shows the lag of one moment or the next. The API tells the age of what is not
 * read for a group as a whole only.
 */
import type { Command } from 'commander'
import { describeGroup, groupOffsets, listGroups, type GroupAnswer } from '../client/http/group-calls.ts'
import { writeExact, type HttpClient, type OffsetsAnswer, type Whole } from '../client/http/http-client.ts'
import { paintFor, type Paint } from './colours.ts'
import {
  addClientOptions,
  addExamples,
  addName,
  groupName,
  nameOf,
  openClient,
  optionsOf,
  textOf
} from './common-options.ts'
import { formatGroup } from './format-group.ts'
import { print, type CliIo } from './io.ts'
import { formatTable, type Cell } from './table.ts'

/** A partition of a topic that a group has committed on. */
interface PartitionLag {
  readonly topic: string
  readonly partition: number
  /** null: nothing is committed here. */
  readonly committed: Whole | null
  readonly end: Whole
  /** null where nothing is committed. */
  readonly lag: Whole | null
}

/** Where the partitions of a topic end, asked for once. */
type Ends = Map<string, Promise<readonly OffsetsAnswer[]>>

/** Adds the command to `millrace group`. */
export function addGroupLag(group: Command, io: CliIo): void {
  const command = group.command('lag').description('show how far groups are behind, by partition')
  addName(command, groupName, 'the group; all of the key if left out')
  command
    .option('--topic <topic>', 'this topic alone')
    .addHelpText(
      'after',
      '\nA partition on which nothing is committed has no lag, and shows -. lag_seconds is the age of the oldest record\n' +
        'that the group has not read. --json prints a line for each group.'
    )
  addExamples(addClientOptions(command), ['millrace group lag', 'millrace group lag --name analytics --topic orders'])
  command.action(async (_name, _, command: Command) => {
    const options = optionsOf(command)
    const client = openClient(options, io)
    const name = nameOf(command, groupName)
    const groups = name === null ? (await listGroups(client)).body.groups : [(await describeGroup(client, name)).body]
    const ends: Ends = new Map()
    const blocks: string[] = []
    for (const answer of groups.toSorted((a, b) => (a.group < b.group ? -1 : 1))) {
      const lags = await lagsOf(client, answer.group, textOf(options['topic']), ends)
      blocks.push(options['json'] === true ? lagJson(answer, lags) : lagText(answer, lags, paintFor(io)))
    }
    const isEmpty = blocks.length === 0 && options['json'] !== true
    const text = isEmpty ? '(no groups)\n' : blocks.join(options['json'] === true ? '' : '\n')
    if (text !== '') await print(io.stdout, text)
  })
}

async function lagsOf(
  client: HttpClient,
  group: string,
  onlyTopic: string | null,
  ends: Ends
): Promise<PartitionLag[]> {
  const { offsets } = (await groupOffsets(client, group)).body
  const topics = Object.keys(offsets).filter(topic => onlyTopic === null || topic === onlyTopic)
  const lags: PartitionLag[] = []
  for (const topic of topics.sort()) {
    const asked = ends.get(topic) ?? client.topicOffsets(topic, null).then(({ body }) => body.partitions)
    ends.set(topic, asked)
    for (const { partition, latest: end } of await asked) {
      const committed = offsets[topic]?.[partition] ?? null
      lags.push({ topic, partition, committed, end, lag: committed === null ? null : lagOf(committed, end) })
    }
  }
  return lags
}

/** Records from an offset to the end; an offset beyond it is behind by none. */
export function lagOf(committed: Whole, end: Whole): Whole {
  const lag = BigInt(end) - BigInt(committed)
  if (lag <= 0n) return 0
  return lag > BigInt(Number.MAX_SAFE_INTEGER) ? lag : Number(lag)
}

function lagJson(answer: GroupAnswer, lags: readonly PartitionLag[]): string {
  const { group, generation, members, lag_records, lag_seconds } = answer
  const head = writeExact({ group, generation, members: members.length, lag_records, lag_seconds })
  return `${head.slice(0, -1)},"partitions":[${lags.map(lag => writeExact({ ...lag })).join(',')}]}\n`
}

function lagText(answer: GroupAnswer, lags: readonly PartitionLag[], paint: Paint): string {
  const columns = [
    { head: 'TOPIC' },
    { head: 'PARTITION', isNumber: true },
    { head: 'COMMITTED', isNumber: true },
    { head: 'END', isNumber: true },
    { head: 'LAG', isNumber: true }
  ]
  const rows = lags.map(({ topic, partition, committed, end, lag }): (Cell | string)[] => [
    topic,
    String(partition),
    String(committed ?? '-'),
    String(end),
    { text: String(lag ?? '-'), paint: text => paint(lag === null ? 'dim' : lag === 0 ? 'green' : 'yellow', text) }
  ])
  const table = rows.length === 0 ? ['(no offsets)'] : formatTable(columns, rows, head => paint('bold', head))
  return [formatGroup(answer).join(' '), ...table].map(line => `${line}\n`).join('')
}
