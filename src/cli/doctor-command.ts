/**
 * `millrace doctor`: says what of this machine, this directory and this configuration does not suit a broker. This file
 * reads the command line; offline/doctor has the rest, loaded when it runs.
 */
import type { Command } from 'commander'
import { resolveSettings } from '../config/resolve.ts'
import { settingFields } from '../config/schema.ts'
import type { Settings } from '../config/settings.ts'
import { addExamples, optionsOf, textOf } from './common-options.ts'
import { UsageError, type CliIo, type ExitCode } from './io.ts'
import type { ConfigurationFacts } from './offline/doctor/facts.ts'
import { addSettingsOptions, resolveCommandLine, sourcesHelp } from './settings-options.ts'

/** Adds the command to the program. @param finish hears the exit code. */
export function addDoctorCommand(program: Command, io: CliIo, finish: (code: ExitCode) => void): void {
  const command = program
    .command('doctor')
    .description('check disk, limits, clock, ports, data directory and configuration; takes the flags of serve')
    .option('--json', 'print one JSON object')
    .option('--force', 'put the disk to work also while a broker runs on the directory')
  addSettingsOptions(command).addHelpText(
    'after',
    `${sourcesHelp()}\n\nWrites one temporary file of 64 MiB at most into the data directory, for some seconds.\n` +
      'Exit code 1 if something is bad; what is only a warning, or unknown, leaves it at 0.'
  )
  addExamples(command, [
    'millrace doctor',
    'millrace doctor --config config/millrace.toml',
    'millrace doctor --data-dir /var/lib/millrace --json | jq \'.findings[] | select(.level != "ok")\''
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const configuration = readConfiguration(command, io)
    const { runDoctor } = await import('./offline/doctor/doctor-run.ts')
    const flags = { isJson: options['json'] === true, isForced: options['force'] === true }
    finish(await runDoctor({ configuration, ...flags }, io))
  })
}

/** Faults are a finding among others: the rest is looked at all the same, with the directory that was named. */
function readConfiguration(command: Command, io: CliIo): ConfigurationFacts {
  try {
    const { settings, sources } = resolveCommandLine(command, io)
    const changed = settingFields.filter(field => sources[field].kind !== 'default').length
    return { settings, faults: [], changed }
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    const settings = defaultSettings(textOf(optionsOf(command)['dataDir']))
    // Several faults come as a list under a line that counts them.
    const faults = error.message.split(/\n\s*/)
    return { settings, faults: faults.length > 1 ? faults.slice(1) : faults, changed: 0 }
  }
}

function defaultSettings(dataDir: string | null): Settings {
  const flags = dataDir === null || dataDir === '' ? {} : { '--data-dir': dataDir }
  const resolution = resolveSettings({ flags, unknownFlags: [], env: {}, file: null })
  if (!resolution.ok) throw new UsageError(resolution.faults.join('\n'))
  return resolution.settings
}
