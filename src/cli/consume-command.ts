/**
 * `millrace consume`: reads a partition from an offset, or from where a group is, over the HTTP API, until --max or the end
 * of the log.
 */
import { Option, type Command } from 'commander'
import { consumeGroup } from '../client/http/group-calls.ts'
import type { Answer, ConsumeAnswer, HttpClient, Whole } from '../client/http/http-client.ts'
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
  u64,
  wholeOf
} from './common-options.ts'
import { formatPosition, formatRecord, formatSkipped } from './format.ts'
import { print, type CliIo } from './io.ts'

/** Records asked for at once; the broker may give fewer, and the loop goes on. */
const REQUEST_RECORDS_MAX = 1_000

/** Adds the command to the program. */
export function addConsumeCommand(program: Command, io: CliIo): void {
  const command = program
    .command('consume')
    .description('read records of one partition')
    .option('--topic <topic>', 'the topic (required)')
    .option('--partition <number>', 'the partition, from 0 (required)')
    .addOption(optionWithDefault('--offset <number>', 'first offset to read', '0'))
    .addOption(new Option('--group <group>', 'read from where this group is; commits nothing').conflicts('offset'))
    .addOption(optionWithDefault('--max <number>', 'most records to read', '100'))
    .addHelpText(
      'after',
      '\nControl characters of keys and values are shown as \\n, \\r or \\xNN; --json has them as they are, and headers. In both,' +
        '\nbytes that are no text are U+FFFD: the HTTP API gives them exactly, with encoding=base64.'
    )
  addExamples(addClientOptions(command), [
    'millrace consume --topic orders --partition 0',
    'millrace consume --topic orders --partition 0 --group analytics',
    'millrace consume --topic orders --partition 2 --offset 5000 --max 1000000 --json | jq -c ".records[]"'
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const client = openClient(options, io)
    const topic = requiredText(options, 'topic', '--topic')
    const partition = Number(wholeOf(requiredText(options, 'partition', '--partition'), '--partition', u32))
    const max = smallWholeOf(options['max'], '--max', { min: 1n, max: BigInt(Number.MAX_SAFE_INTEGER) }) ?? 1
    const group = textOf(options['group'])
    // null: where the group is. What follows is read by offset: nothing is committed in between.
    let offset: Whole | null = group === null ? (wholeOf(options['offset'], '--offset', u64) ?? 0) : null
    let count = 0
    for (;;) {
      const place = { topic, partition, maxRecords: Math.min(max - count, REQUEST_RECORDS_MAX) }
      const answer = await readOnce(client, place, group, offset)
      const { body } = answer
      count += body.records.length
      await print(io.stdout, options['json'] === true ? `${answer.text}\n` : linesOf(body))
      if (count >= max || isAtEnd(body, offset)) {
        if (options['json'] !== true) await print(io.stdout, `${formatPosition(body, count)}\n`)
        return
      }
      offset = body.next_offset
    }
  })
}

function readOnce(
  client: HttpClient,
  place: { readonly topic: string; readonly partition: number; readonly maxRecords: number },
  group: string | null,
  offset: Whole | null
): Promise<Answer<ConsumeAnswer>> {
  if (group !== null && offset === null) return consumeGroup(client, group, place)
  return client.consume(place.topic, { ...place, offset: offset ?? 0 })
}

function linesOf(answer: ConsumeAnswer): string {
  const skipped = formatSkipped(answer)
  const lines = answer.records.map(formatRecord)
  return (skipped === null ? lines : [skipped, ...lines]).map(line => `${line}\n`).join('')
}

/** The end is the high watermark of the answer, or a next offset that does not move: then asking again cannot help. */
function isAtEnd(answer: ConsumeAnswer, askedOffset: Whole | null): boolean {
  const isStuck = askedOffset !== null && answer.next_offset <= askedOffset
  return answer.next_offset >= answer.high_watermark || isStuck
}
