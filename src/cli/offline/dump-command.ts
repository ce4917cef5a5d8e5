/** `millrace dump`: writes what a stopped broker has into one archive. */
import { Option, type Command } from 'commander'
import { addExamples, optionsOf } from '../common-options.ts'
import type { CliIo, ExitCode } from '../io.ts'
import { addOfflineOptions } from './offline-options.ts'

/** Adds the command to the program. @param finish hears the exit code. */
export function addDumpCommand(program: Command, io: CliIo, finish: (code: ExitCode) => void): void {
  const command = program
    .command('dump')
    .description("write a stopped broker's topics and records into one archive")
    .addOption(new Option('--output <file>', 'archive to write: .tar, or .tar.gz or .tgz to compress it'))
    .addOption(new Option('--topics <names>', 'only these, separated by commas; no byte of another is in the archive'))
    .addOption(
      new Option('--include-keys', 'also API keys: names, rules, and the hashes that are kept of their secrets')
    )
    .addOption(new Option('--verify', 'check everything first, and dump nothing if damage is found'))
    .addOption(new Option('--force', 'replace the archive if it is there already'))
    .addHelpText(
      'after',
      '\nFirst moves what still lies in the journal to segment files, as the broker would; else the directory stays as it\n' +
        "is. The archive's first file, dump.json, lists the rest with sizes and checksums. 'millrace restore' reads it."
    )
  addOfflineOptions(command)
  addExamples(command, [
    'millrace dump --data-dir /var/lib/millrace --output /backup/monday.tar.gz',
    'millrace dump --output orders.tar --topics orders,payments'
  ])
  command.action(async (_, command: Command) => {
    const { runDump } = await import('./dump-run.ts')
    finish(await runDump(optionsOf(command), io))
  })
}
