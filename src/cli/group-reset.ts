/**
 * `millrace group reset`: commits another place in a topic for a group, or with --dry-run says what that would change.
 * Members that run do not hear of it and go on from where they are: the API allows it, and a person is warned.
 */
import type { Command } from 'commander'
import { commitOffset, describeGroup, groupOffsets, listGroups, resetGroup } from '../client/http/group-calls.ts'
import {
  HttpClientError,
  writeExact,
  type HttpClient,
  type OffsetsAnswer,
  type Whole
} from '../client/http/http-client.ts'
import { requiredText, smallWholeOf, u32, type OptionTexts } from './common-options.ts'
import { showText } from './format.ts'
import { formatOffsets } from './format-group.ts'
import { UsageError } from './io.ts'
import { placeOf, placeWords, type Place } from './place.ts'
import { formatTable } from './table.ts'

/** What a command prints: on stdout for machines and for people, and on stderr. */
export interface Printed {
  readonly json: readonly string[]
  readonly lines: readonly string[]
  /** Left out: there is none. */
  readonly warning?: string
}

interface Change {
  readonly partition: number
  /** null: nothing was committed. */
  readonly before: Whole | null
  readonly after: Whole
}

/** Describes the command; its --name and its action are the caller's. */
export function describeReset(command: Command): Command {
  return command
    .description('commit another place in a topic for a group')
    .option('--topic <topic>', 'the topic (required)')
    .option('--partition <number>', 'one partition; all if left out')
    .option('--to <place>', `${placeWords} (required)`)
    .option('--dry-run', 'change nothing, and show what would change')
    .addHelpText(
      'after',
      '\nConsumers that run go on from where they are: stop them first. An offset must be one that the partition has,\n' +
        'or its end; where it must be another, use millrace commit.'
    )
}

export const resetExamples = [
  'millrace group reset --name analytics --topic orders --to earliest --dry-run',
  'millrace group reset --name analytics --topic orders --partition 0 --to 57',
  'millrace group reset --name analytics --topic orders --to 2026-01-31T08:30:00Z'
]

/** Carries it out. @throws UsageError for an offset outside of a partition; HttpClientError */
export async function resetOffsetsOf(client: HttpClient, name: string, options: OptionTexts): Promise<Printed> {
  const topic = requiredText(options, 'topic', '--topic')
  const partition = smallWholeOf(options['partition'], '--partition', u32)
  const place = placeOf(requiredText(options, 'to', '--to'), '--to')
  const memberCount = await membersOf(client, name)
  const warning =
    memberCount === 0
      ? {}
      : { warning: `group '${name}' has ${memberCount} member(s): those that run go on from where they are` }
  if (options['dryRun'] === true) {
    const changes = await changesOf(client, { name, topic, partition }, place)
    return {
      json: changes.map(change => writeExact({ group: name, topic, ...change })),
      lines: linesOf(changes),
      ...warning
    }
  }
  if (typeof place === 'string' || 'timestampMs' in place) {
    const to = typeof place === 'string' ? place : { timestamp_ms: place.timestampMs }
    const { body, text } = await resetGroup(client, name, { topic, partition, to })
    return { json: [text], lines: formatOffsets(body), ...warning }
  }
  for (const change of await changesOf(client, { name, topic, partition }, place)) {
    await commitOffset(client, name, { topic, partition: change.partition, offset: change.after })
  }
  const { body, text } = await groupOffsets(client, name)
  return { json: [text], lines: formatOffsets(body), ...warning }
}

/** What `reset-offsets` of a topic would change: in every group of the key that has committed there. */
export async function plannedResets(client: HttpClient, topic: string): Promise<Printed> {
  const begins = new Map(
    (await client.topicOffsets(topic, null)).body.partitions.map(({ partition, earliest }) => [partition, earliest])
  )
  const changes: (Change & { readonly group: string })[] = []
  for (const { group } of (await listGroups(client)).body.groups) {
    const committed = Object.entries((await groupOffsets(client, group)).body.offsets[topic] ?? {})
    for (const [number, before] of committed) {
      const partition = Number(number)
      changes.push({ group, partition, before, after: begins.get(partition) ?? 0 })
    }
  }
  const columns = [{ head: 'GROUP' }, ...changeColumns]
  const rows = changes.map(change => [showText(change.group), ...cellsOf(change)])
  return {
    json: changes.map(({ group, ...change }) => writeExact({ group, topic, ...change })),
    lines: [...(rows.length === 0 ? ['(no offsets)'] : formatTable(columns, rows)), NOTHING_CHANGED]
  }
}

/** A group that there is not yet has none. */
async function membersOf(client: HttpClient, name: string): Promise<number> {
  try {
    return (await describeGroup(client, name)).body.members.length
  } catch (error) {
    if (error instanceof HttpClientError && error.code === 'GROUP_NOT_FOUND') return 0
    throw error
  }
}

async function changesOf(
  client: HttpClient,
  { name, topic, partition }: { readonly name: string; readonly topic: string; readonly partition: number | null },
  place: Place
): Promise<Change[]> {
  const timeMs = typeof place === 'object' && 'timestampMs' in place ? place.timestampMs : null
  const entries =
    partition === null
      ? (await client.topicOffsets(topic, timeMs)).body.partitions
      : [(await client.partitionOffsets(topic, partition, timeMs)).body]
  const committed = (await groupOffsets(client, name)).body.offsets[topic] ?? {}
  return entries.map(entry => {
    return { partition: entry.partition, before: committed[entry.partition] ?? null, after: targetOf(entry, place) }
  })
}

function targetOf({ partition, earliest, latest, offset }: OffsetsAnswer, place: Place): Whole {
  if (place === 'earliest') return earliest
  if (place === 'latest') return latest
  if ('timestampMs' in place) return offset ?? latest
  if (place.offset >= earliest && place.offset <= latest) return place.offset
  throw new UsageError(
    `--to ${place.offset} is no offset of partition ${partition}, which has ${earliest} to ${latest}; ` +
      'a time is written 1700000000000ms or as ISO 8601'
  )
}

const NOTHING_CHANGED = '(dry run: nothing was changed)'
const changeColumns = ['PARTITION', 'BEFORE', 'AFTER', 'CHANGE'].map(head => ({ head, isNumber: true }))

function cellsOf({ partition, before, after }: Change): string[] {
  const step = BigInt(after) - BigInt(before ?? 0)
  const change = before === null ? 'new' : `${step > 0n ? '+' : ''}${step}`
  return [String(partition), String(before ?? '-'), String(after), change]
}

function linesOf(changes: readonly Change[]): string[] {
  return [...formatTable(changeColumns, changes.map(cellsOf)), NOTHING_CHANGED]
}
