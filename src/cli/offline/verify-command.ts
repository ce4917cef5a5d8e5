/** `millrace verify`: checks every byte of a stopped broker's data directory; changes none but with --repair. */
import type { Command } from 'commander'
import { addExamples, optionsOf } from '../common-options.ts'
import type { CliIo, ExitCode } from '../io.ts'
import { addOfflineOptions } from './offline-options.ts'

/** Adds the command to the program. @param finish hears the exit code. */
export function addVerifyCommand(program: Command, io: CliIo, finish: (code: ExitCode) => void): void {
  const command = program
    .command('verify')
    .description("check every checksum, batch and record of a stopped broker's data directory, and the store")
    .addHelpText(
      'after',
      '\nChanges nothing without --repair: it prints each damaged range and what that means for readers.\n' +
        'What a kill or a power cut may leave, and the next start puts right, is a note and no damage.'
    )
  addOfflineOptions(command).option(
    '--repair',
    'write anew what can be made from the log: .blocks, .index and .timeindex files that are missing or wrong'
  )
  addExamples(command, [
    'millrace verify',
    'millrace verify --data-dir /var/lib/millrace',
    'millrace verify --data-dir /backup/millrace --json | jq ".damage[]"',
    'millrace verify --repair'
  ])
  command.action(async (_, command: Command) => {
    const { runVerify } = await import('./verify-run.ts')
    finish(await runVerify(optionsOf(command), io))
  })
}
