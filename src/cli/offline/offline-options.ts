/** What the offline commands share on the command line. Light: the code that reads files is loaded when one of them runs. */
import { Option, type Command } from 'commander'
import { envNameOf, schema } from '../../config/schema.ts'
import { configOption } from '../settings-options.ts'

/** What can be inspected. */
export type Inspection = 'groups' | 'batches' | 'records' | 'segments' | 'manifest' | 'topics'

/** Adds --data-dir and --config. @param text what the directory is. */
export function addDirectoryOptions(command: Command, text: string): Command {
  const otherwise = `${envNameOf('dataDir')}, data_dir of --config, or ${schema.dataDir.fallback}`
  return command
    .addOption(new Option('--data-dir <path>', `${text} (default: ${otherwise})`))
    .addOption(configOption("the broker's TOML file, of which data_dir alone is read"))
}

/** Adds --data-dir, --config and --json. */
export function addOfflineOptions(command: Command): Command {
  return addDirectoryOptions(command, 'data directory of a stopped broker').addOption(
    new Option('--json', 'print JSON')
  )
}
