/** What the offline commands share on the command line. Light: the code that reads files is loaded when one of them runs. */
import { Option, type Command } from 'commander'
import { envNameOf, schema } from '../../config/schema.ts'

/** What can be inspected. */
export type Inspection = 'groups' | 'batches' | 'records' | 'segments' | 'manifest' | 'topics'

/** Adds --data-dir and --json. */
export function addOfflineOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--data-dir <path>',
        `data directory of a stopped broker (default: ${envNameOf('dataDir')} or ${schema.dataDir.fallback})`
      )
    )
    .addOption(new Option('--json', 'print JSON'))
}
