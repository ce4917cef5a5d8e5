/** `millrace quarantine list|skip`: what is damaged, and an operator's word on what keeps a shard from starting. */
import type { Command } from 'commander'
import { addExamples, optionsOf } from '../common-options.ts'
import type { CliIo, ExitCode } from '../io.ts'
import { addOfflineOptions } from './offline-options.ts'

/** Adds the command group to the program. @param finish hears the exit code. */
export function addQuarantineCommands(program: Command, io: CliIo, finish: (code: ExitCode) => void): void {
  const quarantine = program
    .command('quarantine')
    .description("list what is damaged in a stopped broker's data directory, and give up what keeps it from starting")
  const list = addOfflineOptions(
    quarantine.command('list').description('every damaged range that is known, and what an operator must decide')
  )
  list.addHelpText(
    'after',
    "\nIt does not read all data: 'millrace verify' finds what nobody has met yet.\n" +
      "What keeps a shard from starting is 'undecided', and has an id for 'millrace quarantine skip'."
  )
  addExamples(list, ['millrace quarantine list', 'millrace quarantine list --data-dir /var/lib/millrace --json'])
  list.action(async (_, command: Command) => {
    const { runQuarantineList } = await import('./quarantine-run.ts')
    finish(await runQuarantineList(optionsOf(command), io))
  })
  const skip = addOfflineOptions(
    quarantine
      .command('skip')
      .description('give up groups or slots that nothing can read any more, so that their shard starts')
      .argument('<id...>', "what to give up: ids of 'millrace quarantine list'")
      .option('--yes', 'do it; without this it only prints what would be given up')
  )
  skip.addHelpText(
    'after',
    '\nIts records are lost: reads pass over them and say so, and all partitions of the shard begin a new leader epoch.\n' +
      'The bytes are kept: in the folder quarantine, or in the slot file itself. Try a backup of the file first.'
  )
  addExamples(skip, ['millrace quarantine skip 0/0003.slot/12288', 'millrace quarantine skip 0/0003.slot/12288 --yes'])
  skip.action(async (ids: readonly string[], _, command: Command) => {
    const { runQuarantineSkip } = await import('./quarantine-run.ts')
    finish(await runQuarantineSkip(ids, optionsOf(command), io))
  })
}
