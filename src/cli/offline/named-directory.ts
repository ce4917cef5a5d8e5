/** Which data directory a command is for that works without a broker: that of the broker with the same words. */
import { resolveSetting } from '../../config/resolve.ts'
import { textOf, type OptionTexts } from '../common-options.ts'
import { UsageError, type CliIo } from '../io.ts'
import { configFileOf } from '../settings-options.ts'

/** --data-dir, else MILLRACE_DATA_DIR, else data_dir of the file, else the default; not absolute. @throws UsageError */
export function namedDirectory(options: OptionTexts, io: CliIo): string {
  const named = textOf(options['dataDir'])
  if (named === '') throw new UsageError('--data-dir must not be empty')
  const flags: Record<string, string> = named === null ? {} : { '--data-dir': named }
  const file = configFileOf(options, io)
  const resolution = resolveSetting('dataDir', { flags, unknownFlags: [], env: io.env, file })
  if (!resolution.ok) throw new UsageError(resolution.faults.join('\n'))
  return resolution.value
}
