/** `millrace inspect groups|batches|records|segments|manifest|topics`: what stands in a stopped broker's data directory, row by row. */
import type { Command } from 'commander'
import { addExamples, optionWithDefault, optionsOf } from '../common-options.ts'
import type { CliIo, ExitCode } from '../io.ts'
import { addOfflineOptions, type Inspection } from './offline-options.ts'

const LIMIT_DEFAULT = '100'

/** Adds the command group to the program. @param finish hears the exit code. */
export function addInspectCommands(program: Command, io: CliIo, finish: (code: ExitCode) => void): void {
  const inspect = program.command('inspect').description("look into a stopped broker's data directory")
  const add = (name: Inspection, description: string): Command => {
    const command = addOfflineOptions(inspect.command(name).description(description))
    command.addOption(optionWithDefault('--limit <number>', 'most rows to print', LIMIT_DEFAULT))
    return command.action(async (_, command: Command) => {
      const { runInspection } = await import('./inspect-run.ts')
      finish(await runInspection(name, optionsOf(command), io))
    })
  }
  const groups = add('groups', 'groups of the journals: what one write and one sync made durable')
    .option('--shard <number>', 'of this shard only')
    .option('--topic <topic>', 'only groups with records of this topic, with --partition')
    .option('--partition <number>', 'the partition, from 0')
    .option('--offset <number>', 'only from this offset of the partition on')
  addExamples(groups, [
    'millrace inspect groups --limit 10',
    'millrace inspect groups --shard 0 --topic orders --partition 2 --offset 5000 --json'
  ])
  const segments = add('segments', 'segments of settled data, and the files that they lie in')
    .option('--shard <number>', 'of this shard only')
    .option('--topic <topic>', 'of this topic only, with --partition')
    .option('--partition <number>', 'the partition, from 0')
    .option('--offset <number>', 'only those with this offset or later ones')
  addExamples(segments, [
    'millrace inspect segments',
    'millrace inspect segments --topic orders --partition 2 --offset 5000 --json'
  ])
  const manifest = add(
    'manifest',
    'what the manifest of each shard says: what is settled, and what waits to be removed'
  )
  addExamples(manifest.option('--shard <number>', 'of this shard only'), ['millrace inspect manifest --shard 0 --json'])
  const batches = addPartitionOptions(
    add('batches', 'batches of one partition, settled or in slots, and where they lie')
  )
  addExamples(batches, ['millrace inspect batches --topic orders --partition 0 --offset 5000'])
  const records = addPartitionOptions(add('records', 'records of one partition, settled or in slots'))
  records.addHelpText(
    'after',
    '\nA null key or value is left out; one that is not UTF-8 is shown as key_base64 or value_base64.'
  )
  addExamples(records, [
    'millrace inspect records --topic orders --partition 0',
    'millrace inspect records --topic orders --partition 0 --offset 5000 --limit 1000000 --json | jq -r .value'
  ])
  const topics = add('topics', 'topics of the store, the deleted ones it remembers included')
  addExamples(topics.option('--topic <topic>', 'this one only'), [
    'millrace inspect topics --data-dir /var/lib/millrace --json'
  ])
}

function addPartitionOptions(command: Command): Command {
  return command
    .option('--topic <topic>', 'the topic (required)')
    .option('--partition <number>', 'the partition, from 0 (required)')
    .addOption(optionWithDefault('--offset <number>', 'first offset', '0'))
}
