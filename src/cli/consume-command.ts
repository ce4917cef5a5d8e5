/** `millrace consume`: reads a partition from an offset on, over the HTTP API, until --max or the end of the log. */
import type { Command } from 'commander'
import type { ConsumeAnswer, Whole } from '../client/http/http-client.ts'
import {
  addClientOptions,
  addExamples,
  openClient,
  optionWithDefault,
  optionsOf,
  requiredText,
  smallWholeOf,
  u32,
  u64,
  wholeOf
} from './common-options.ts'
import { formatPosition, formatRecord } from './format.ts'
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
    .addOption(optionWithDefault('--max <number>', 'most records to read', '100'))
    .addHelpText(
      'after',
      '\nControl characters of keys and values are shown as \\n, \\r or \\xNN; --json has every record exactly.'
    )
  addExamples(addClientOptions(command), [
    'millrace consume --topic orders --partition 0',
    'millrace consume --topic orders --partition 2 --offset 5000 --max 1000000 --json | jq -c ".records[]"'
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const client = openClient(options, io)
    const topic = requiredText(options, 'topic', '--topic')
    const partition = Number(wholeOf(requiredText(options, 'partition', '--partition'), '--partition', u32))
    const max = smallWholeOf(options['max'], '--max', { min: 1n, max: BigInt(Number.MAX_SAFE_INTEGER) }) ?? 1
    let offset: Whole = wholeOf(options['offset'], '--offset', u64) ?? 0
    let count = 0
    for (;;) {
      const answer = await client.consume(topic, {
        partition,
        offset,
        maxRecords: Math.min(max - count, REQUEST_RECORDS_MAX)
      })
      const { body } = answer
      count += body.records.length
      const lines = body.records.map(record => `${formatRecord(record)}\n`).join('')
      await print(io.stdout, options['json'] === true ? `${answer.text}\n` : lines)
      if (count >= max || isAtEnd(body, offset)) {
        if (options['json'] !== true) await print(io.stdout, `${formatPosition(body, count)}\n`)
        return
      }
      offset = body.next_offset
    }
  })
}

/** The end is the high watermark of the answer, or a next offset that does not move: then asking again cannot help. */
function isAtEnd(answer: ConsumeAnswer, askedOffset: Whole): boolean {
  return answer.next_offset >= answer.high_watermark || answer.next_offset <= askedOffset
}
