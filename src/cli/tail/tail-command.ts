/**
 * `millrace tail`: follows a topic by its stream of server-sent events until Ctrl-C or --max. Records go to stdout; the
 * count, outages and what was passed over to stderr, so that a pipe gets records alone.
 */
import type { Command } from 'commander'
import {
  parseExact,
  type ConsumedRecord,
  type ConsumeAnswer,
  type DescribeAnswer
} from '../../client/http/http-client.ts'
import {
  accessOf,
  addClientOptions,
  addExamples,
  addName,
  nameOf,
  topicFlag,
  openClient,
  optionsOf,
  optionWithDefault,
  requiredText,
  smallWholeOf,
  textOf,
  u32,
  type OptionTexts
} from '../common-options.ts'
import { beyondEndText, formatSkipped } from '../format.ts'
import { listenForInterrupt, whenAborted, type Interrupt } from '../interrupt.ts'
import { print, UsageError, type CliIo } from '../io.ts'
import { placeOf, placeQuery, placeWords, type Place } from '../place.ts'
import {
  encodingOption,
  formatRecord,
  keyMatcher,
  recordJson,
  timestampsOption,
  wantedEncoding
} from '../record-text.ts'
import { follow } from './follow.ts'
import type { ServerEvent } from './server-events.ts'
import { openEvents } from './stream-source.ts'

/** Which records are shown, and how. */
interface Filter {
  readonly isWanted: (record: ConsumedRecord) => boolean
  readonly show: (record: ConsumedRecord) => string
  readonly max: number
}

/** Adds the command to the program. */
export function addTailCommand(program: Command, io: CliIo): void {
  const command = program
    .command('tail')
    .description('follow a topic: print its records as they come, until Ctrl-C')
    .option('--partition <number>', 'one partition; all if left out')
    .addOption(optionWithDefault('--from <place>', `where to begin: ${placeWords}`, 'latest'))
    .option('--key <key>', 'only records with this key')
    .option('--max <number>', 'end after so many records')
    .addOption(timestampsOption())
    .addOption(encodingOption())
    .addHelpText(
      'after',
      '\nAn offset needs --partition. A connection that breaks, or a broker that starts again, is waited for, and the\n' +
        'stream goes on behind the last record that was printed. With --json each record is one line; one that has\n' +
        'bytes which are no text is in base64, and says "encoding":"base64". The count at the end goes to stderr.'
    )
  addName(command, topicFlag, 'the topic (required)')
  addExamples(addClientOptions(command), [
    'millrace tail --topic orders',
    'millrace tail --topic orders --partition 0 --from 5000 --max 10',
    'millrace tail --topic orders --from 2026-01-31T08:30:00Z --key user-1 --json | jq -r .value'
  ])
  command.action(async (_topic, _, command: Command) => {
    const options: OptionTexts = { ...optionsOf(command), topic: nameOf(command, topicFlag) }
    const start = startOf(options)
    const filter = filterOf(options)
    const interrupt = listenForInterrupt(io)
    try {
      await tail(options, start, filter, interrupt, io)
    } finally {
      interrupt.forget()
    }
  })
}

interface Start {
  readonly topic: string
  /** null: all. */
  readonly partition: number | null
  readonly place: Place
  /** Of the stream. */
  readonly path: string
}

/** @throws UsageError */
function startOf(options: OptionTexts): Start {
  const topic = requiredText(options, 'topic', '--topic')
  const partition = smallWholeOf(options['partition'], '--partition', u32)
  const place = placeOf(requiredText(options, 'from', '--from'), '--from')
  if (partition === null && typeof place === 'object' && 'offset' in place) {
    throw new UsageError('--from with an offset needs --partition: each partition counts its own')
  }
  const query = [
    ...(partition === null ? [] : [`partition=${partition}`]),
    placeQuery(place),
    ...(isBase64(options) ? ['encoding=base64'] : [])
  ].join('&')
  return { topic, partition, place, path: `/topics/${encodeURIComponent(topic)}/stream?${query}` }
}

/** Bytes come exactly, unless that is not wanted. */
function isBase64(options: OptionTexts): boolean {
  return wantedEncoding(options) !== 'utf8'
}

/** @throws UsageError */
function filterOf(options: OptionTexts): Filter {
  const key = textOf(options['key'])
  const wanted = wantedEncoding(options)
  const form = { encoding: wanted, showsTime: options['timestamps'] === true }
  const isEncoded = isBase64(options)
  const max = smallWholeOf(options['max'], '--max', { min: 1n, max: BigInt(Number.MAX_SAFE_INTEGER) })
  return {
    isWanted: key === null ? () => true : keyMatcher(key, isEncoded),
    show:
      options['json'] === true
        ? record => recordJson(record, isEncoded, wanted)
        : record => `partition=${record.partition} ${formatRecord(record, isEncoded, form)}`,
    max: max ?? Number.POSITIVE_INFINITY
  }
}

async function tail(
  options: OptionTexts,
  { topic, partition, place, path }: Start,
  filter: Filter,
  { signal }: Interrupt,
  io: CliIo
): Promise<void> {
  const access = accessOf(options, io)
  const client = openClient(options, io)
  const stream = { method: 'GET', url: `${client.broker}${path}` }
  const notify = (text: string): Promise<void> => print(io.stderr, `millrace: ${text}\n`)
  // What no waiting helps, such as a wrong address, is told by this and not tried for ever.
  const found = await Promise.race([client.describeTopic(topic), whenAborted(signal)])
  const warning = found === undefined ? null : beyondEndOf(found.body, partition, place)
  if (warning !== null) await notify(warning)
  let count = 0
  const open = (lastId: string): Promise<AsyncIterable<string>> => openEvents(stream, access, lastId, signal)
  for await (const events of follow({ stream, open, signal, notify })) {
    for (const event of events.filter(({ type }) => type === 'skipped')) await notify(skippedText(event))
    const lines = linesOf(events, filter).slice(0, filter.max - count)
    count += lines.length
    if (lines.length > 0) await print(io.stdout, lines.map(line => `${line}\n`).join(''))
    if (count >= filter.max) break
  }
  await print(io.stderr, `-- ${count} record(s)\n`)
}

/** Only an offset can be: the rest is looked up. */
function beyondEndOf({ partitions }: DescribeAnswer, partition: number | null, place: Place): string | null {
  const end = partitions.find(({ id }) => id === partition)?.end_offset
  if (end === undefined || typeof place !== 'object' || !('offset' in place) || place.offset <= end) return null
  return beyondEndText(place.offset, partition ?? 0, end)
}

/** The shape of an event's data is the contract of the API. */
function linesOf(events: readonly ServerEvent[], { isWanted, show }: Filter): string[] {
  return events
    .filter(({ type }) => type === 'message')
    .map(({ data }) => parseExact(data) as ConsumedRecord)
    .filter(isWanted)
    .map(show)
}

function skippedText({ data }: ServerEvent): string {
  const skipped = parseExact(data) as NonNullable<ConsumeAnswer['skipped']> & { readonly partition: number }
  return `partition=${skipped.partition} ${formatSkipped({ skipped })}`
}
