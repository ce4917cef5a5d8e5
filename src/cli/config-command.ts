/** `millrace config explain`: what the broker would run with, where each value comes from, and the memory it may take. */
import type { Command } from 'commander'
import { explain, formatExplanation } from '../config/explain.ts'
import { addExamples, optionsOf } from './common-options.ts'
import { print, type CliIo } from './io.ts'
import { addSettingsOptions, resolveCommandLine, sourcesHelp } from './settings-options.ts'

/** Adds the command group to the program. */
export function addConfigCommands(program: Command, io: CliIo): void {
  const config = program.command('config').description('look at the configuration of the broker')
  const command = config
    .command('explain')
    .description('print each effective setting with its source, and the memory budget; takes the flags of serve')
    .option('--json', 'print one JSON object')
  addSettingsOptions(command).addHelpText('after', sourcesHelp())
  addExamples(command, [
    'millrace config explain --config config/millrace.toml',
    'MILLRACE_SHARDS=3 millrace config explain --json'
  ])
  command.action(async (_, command: Command) => {
    const { settings, sources } = resolveCommandLine(command, io)
    const isJson = optionsOf(command)['json'] === true
    const text = isJson ? `${JSON.stringify(explain(settings, sources))}\n` : formatExplanation(settings, sources)
    await print(io.stdout, text)
  })
}
