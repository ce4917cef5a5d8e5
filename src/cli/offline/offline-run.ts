/** The life of an offline command: opens the directory, runs, closes it, and says in one line what refused. */
import { envNameOf, schema } from '../../config/schema.ts'
import { DiskError } from '../../disk/disk.ts'
import { StoreOpenError } from '../../store/store-open-error.ts'
import { textOf, type OptionTexts } from '../common-options.ts'
import { exitCodes, print, UsageError, type CliIo, type ExitCode } from '../io.ts'
import { openDataDirectory, type DataDirectory } from './data-directory.ts'

/**
 * Opens the directory that the options name, runs `action` over it, closes it, and turns what the directory or the disk
 * refuses into one line and exit code 3. @param isWritable the command changes files. @throws UsageError and whatever is a bug.
 */
export async function withDataDirectory(
  options: OptionTexts,
  io: CliIo,
  action: (directory: DataDirectory) => Promise<ExitCode>,
  isWritable = false
): Promise<ExitCode> {
  const named = textOf(options['dataDir'])
  if (named === '') throw new UsageError('--data-dir must not be empty')
  const dataDir = named ?? (io.env[envNameOf('dataDir')] || schema.dataDir.fallback)
  try {
    const directory = openDataDirectory(dataDir, isWritable)
    try {
      return await action(directory)
    } finally {
      directory.close()
    }
  } catch (error) {
    if (!(error instanceof StoreOpenError) && !(error instanceof DiskError)) throw error
    await print(io.stderr, `millrace: ${error.message.replaceAll('\n', ' ')}\n`)
    return exitCodes.unreachable
  }
}
