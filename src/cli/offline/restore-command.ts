/** `millrace restore`: makes a data directory of an archive that `millrace dump` wrote. */
import { Option, type Command } from 'commander'
import { addExamples, optionsOf } from '../common-options.ts'
import type { CliIo, ExitCode } from '../io.ts'
import { addDirectoryOptions } from './offline-options.ts'

/** Adds the command to the program. @param finish hears the exit code. */
export function addRestoreCommand(program: Command, io: CliIo, finish: (code: ExitCode) => void): void {
  const command = program
    .command('restore')
    .description('make a data directory of an archive that dump wrote')
    .addOption(new Option('--input <file>', 'archive to read'))
    .addOption(new Option('--topics <names>', 'only these, separated by commas'))
    .addOption(new Option('--force', 'replace a directory that is not empty; it is kept under another name'))
    .addOption(new Option('--accept-damage', 'also restore what was damaged already when it was dumped'))
    .addOption(new Option('--json', 'print JSON'))
    .addHelpText(
      'after',
      '\nThe directory appears only when all of it is written, checked and synced. One that is in its way is never\n' +
        'removed: with --force it becomes <data-dir>.before-restore-<time>.'
    )
  addDirectoryOptions(command, 'directory to make')
  addExamples(command, [
    'millrace restore --input /backup/monday.tar.gz --data-dir /var/lib/millrace',
    'millrace restore --input orders.tar --data-dir ./data --topics orders --force'
  ])
  command.action(async (_, command: Command) => {
    const { runRestore } = await import('./restore-run.ts')
    finish(await runRestore(optionsOf(command), io))
  })
}
