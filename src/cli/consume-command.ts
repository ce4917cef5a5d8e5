/**
 * `millrace consume`: reads a partition from a place, or from where a group is, over the HTTP API, until --max or the end
 * of the log; with --wait-ms it waits there for more.
 */
import { Option, type Command } from 'commander'
import type { Answer, ConsumeAnswer, HttpClient } from '../client/http/http-client.ts'
import {
  addClientOptions,
  addExamples,
  openClient,
  optionWithDefault,
  optionsOf,
  requiredText,
  smallWholeOf,
  textOf,
  u32,
  wholeOf,
  type OptionTexts
} from './common-options.ts'
import { formatPosition, formatSkipped } from './format.ts'
import { print, type CliIo } from './io.ts'
import { placeOf, placeQuery, placeWords, type Place } from './place.ts'
import { encodingOption, formatRecord, wantedEncoding, type WantedEncoding } from './record-text.ts'

/** Records asked for at once; the broker may give fewer, and the loop goes on. */
const REQUEST_RECORDS_MAX = 1_000

/** The broker waits no longer for one read. */
const WAIT_MS_MAX = 60_000n

/** An answer, and how its fields are written. */
type Body = ConsumeAnswer & { readonly encoding?: string }

interface Reading {
  readonly topic: string
  readonly partition: number
  /** The most records to read. */
  readonly max: number
  readonly waitMs: number
  readonly encoding: WantedEncoding
  readonly isJson: boolean
}

/** Adds the command to the program. */
export function addConsumeCommand(program: Command, io: CliIo): void {
  const command = program
    .command('consume')
    .description('read records of one partition')
    .option('--topic <topic>', 'the topic (required)')
    .option('--partition <number>', 'the partition, from 0 (required)')
    .addOption(optionWithDefault('--offset <place>', `first record to read: ${placeWords}`, '0'))
    .addOption(new Option('--group <group>', 'read from where this group is; commits nothing').conflicts('offset'))
    .addOption(optionWithDefault('--max <number>', 'most records to read', '100'))
    .addOption(optionWithDefault('--wait-ms <ms>', 'at the end of the log, wait so long for more', '0'))
    .addOption(encodingOption())
    .addHelpText(
      'after',
      '\nControl characters are shown as \\n, \\r or \\xNN, and bytes that are no text in base64, as value_base64=…\n' +
        '--json prints the answers as they came: with --encoding base64 exactly, else with U+FFFD for what is no text.'
    )
  addExamples(addClientOptions(command), [
    'millrace consume --topic orders --partition 0',
    'millrace consume --topic orders --partition 0 --group analytics',
    'millrace consume --topic orders --partition 0 --offset 2026-01-31T08:30:00Z --max 10',
    'millrace consume --topic orders --partition 0 --offset latest --wait-ms 30000',
    'millrace consume --topic orders --partition 2 --offset 5000 --max 1000000 --json | jq -c ".records[]"'
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const group = textOf(options['group'])
    const reading = readingOf(options)
    const offset = requiredText(options, 'offset', '--offset')
    const place = group === null ? placeOf(offset, '--offset') : { group }
    await consume(openClient(options, io, reading.waitMs), reading, place, io)
  })
}

/** @throws UsageError */
function readingOf(options: OptionTexts): Reading {
  return {
    topic: requiredText(options, 'topic', '--topic'),
    partition: Number(wholeOf(requiredText(options, 'partition', '--partition'), '--partition', u32)),
    max: smallWholeOf(options['max'], '--max', { min: 1n, max: BigInt(Number.MAX_SAFE_INTEGER) }) ?? 1,
    waitMs: smallWholeOf(options['waitMs'], '--wait-ms', { min: 0n, max: WAIT_MS_MAX }) ?? 0,
    encoding: wantedEncoding(options),
    isJson: options['json'] === true
  }
}

/** What follows the first answer is read by offset: of a group too, since nothing is committed in between. */
async function consume(
  client: HttpClient,
  reading: Reading,
  start: Place | { readonly group: string },
  io: CliIo
): Promise<void> {
  let place = start
  let count = 0
  for (;;) {
    const { body, text } = await readOnce(client, reading, place, reading.max - count)
    count += body.records.length
    await print(io.stdout, reading.isJson ? `${text}\n` : linesOf(body, reading.encoding))
    if (count >= reading.max || isAtEnd(body, place, reading.waitMs)) {
      if (!reading.isJson) await print(io.stdout, `${formatPosition(body, count)}\n`)
      return
    }
    place = { offset: body.next_offset }
  }
}

function readOnce(
  client: HttpClient,
  { topic, partition, waitMs, encoding, isJson }: Reading,
  place: Place | { readonly group: string },
  leftCount: number
): Promise<Answer<Body>> {
  const isOfGroup = typeof place === 'object' && 'group' in place
  // For people bytes come exactly, and are shown as text where they are text.
  const asked = encoding ?? (isJson ? 'utf8' : 'base64')
  const query = [
    ...(isOfGroup ? [`topic=${encodeURIComponent(topic)}`] : []),
    `partition=${partition}`,
    ...(isOfGroup ? [] : [placeQuery(place)]),
    `max_records=${Math.min(leftCount, REQUEST_RECORDS_MAX)}`,
    ...(asked === 'utf8' ? [] : [`encoding=${asked}`]),
    ...(waitMs === 0 ? [] : [`max_wait_ms=${waitMs}`])
  ].join('&')
  const path = isOfGroup ? `/groups/${encodeURIComponent(place.group)}` : `/topics/${encodeURIComponent(topic)}`
  return client.call('GET', `${path}/consume?${query}`)
}

function linesOf(answer: Body, encoding: WantedEncoding): string {
  const skipped = formatSkipped(answer)
  const isBase64 = answer.encoding === 'base64'
  const lines = answer.records.map(record => formatRecord(record, isBase64, encoding))
  return (skipped === null ? lines : [skipped, ...lines]).map(line => `${line}\n`).join('')
}

/**
 * The end is the high watermark of the answer, or a next offset that does not move: then asking again cannot help. Who
 * waits is at the end when a whole wait has brought nothing.
 */
function isAtEnd(answer: Body, asked: Place | { readonly group: string }, waitMs: number): boolean {
  const isBehind = answer.next_offset < answer.high_watermark
  if (typeof asked !== 'object' || !('offset' in asked))
    return !isBehind && (waitMs === 0 || answer.records.length === 0)
  const isStuck = answer.next_offset <= asked.offset
  return isStuck || (waitMs === 0 && !isBehind)
}
