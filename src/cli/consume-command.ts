/** `millrace consume`: reads the command line. What it does is in consume-run.ts. */
import { Option, type Command } from 'commander'
import {
  addClientOptions,
  addExamples,
  addName,
  nameOf,
  topicFlag,
  openClient,
  optionWithDefault,
  optionsOf,
  requiredText,
  smallWholeOf,
  textOf,
  u32,
  type OptionTexts
} from './common-options.ts'
import { consume, type Reading } from './consume-run.ts'
import { UsageError, type CliIo } from './io.ts'
import { placeOf, placeWords } from './place.ts'
import { encodingOption, timestampsOption, wantedEncoding } from './record-text.ts'

/** The broker waits no longer for one read. */
const WAIT_MS_MAX = 60_000n

/** Adds the command to the program. */
export function addConsumeCommand(program: Command, io: CliIo): void {
  const command = program
    .command('consume')
    .description('read records of a topic, a partition at a time')
    .option('--partition <number>', 'one partition, from 0; left out, all, one after the other')
    .addOption(optionWithDefault('--offset <place>', `first record to read: ${placeWords}`, '0'))
    .addOption(new Option('--group <group>', 'read from where this group is; commits nothing').conflicts('offset'))
    .addOption(optionWithDefault('--max <number>', 'most records to read', '100'))
    .addOption(optionWithDefault('--wait-ms <ms>', 'at the end of the log, wait so long for more', '0'))
    .addOption(timestampsOption())
    .addOption(encodingOption())
    .addHelpText(
      'after',
      '\nControl characters are shown as \\n, \\r or \\xNN, and bytes that are no text in base64, as value_base64=…\n' +
        '--json prints the answers as they came: with --encoding base64 exactly, else with U+FFFD for what is no text.'
    )
  addName(command, topicFlag, 'the topic (required)')
  addExamples(addClientOptions(command), [
    'millrace consume --topic orders',
    'millrace consume --topic orders --partition 0 --timestamps',
    'millrace consume --topic orders --partition 0 --group analytics',
    'millrace consume --topic orders --partition 0 --offset 2026-01-31T08:30:00Z --max 10',
    'millrace consume --topic orders --partition 0 --offset latest --wait-ms 30000',
    'millrace consume --topic orders --partition 2 --offset 5000 --max 1000000 --json | jq -c ".records[]"'
  ])
  command.action(async (_topic, _, command: Command) => {
    const options: OptionTexts = { ...optionsOf(command), topic: nameOf(command, topicFlag) }
    const reading = readingOf(options)
    await consume(openClient(options, io, reading.waitMs), reading, io)
  })
}

/** @throws UsageError */
function readingOf(options: OptionTexts): Reading {
  const group = textOf(options['group'])
  const reading: Reading = {
    topic: requiredText(options, 'topic', '--topic'),
    partition: smallWholeOf(options['partition'], '--partition', u32),
    start: group === null ? placeOf(requiredText(options, 'offset', '--offset'), '--offset') : { group },
    max: smallWholeOf(options['max'], '--max', { min: 1n, max: BigInt(Number.MAX_SAFE_INTEGER) }) ?? 1,
    waitMs: smallWholeOf(options['waitMs'], '--wait-ms', { min: 0n, max: WAIT_MS_MAX }) ?? 0,
    encoding: wantedEncoding(options),
    showsTime: options['timestamps'] === true,
    isJson: options['json'] === true
  }
  const { partition, start, waitMs } = reading
  if (partition === null && waitMs > 0) {
    throw new UsageError("--wait-ms needs --partition: 'millrace tail' waits on all of a topic")
  }
  // Offset 0 is the default, and a beginning that all have.
  if (partition === null && typeof start === 'object' && 'offset' in start && start.offset !== 0) {
    throw new UsageError('--offset with an offset needs --partition: each partition counts its own')
  }
  return reading
}
