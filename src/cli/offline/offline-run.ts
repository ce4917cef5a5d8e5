/** The life of an offline command: opens the directory, runs, closes it, and says in one line what refused. */
import { DiskError } from '../../disk/disk.ts'
import { StoreOpenError } from '../../store/store-open-error.ts'
import type { OptionTexts } from '../common-options.ts'
import { exitCodes, print, type CliIo, type ExitCode } from '../io.ts'
import { openDataDirectory, type DataDirectory } from './data-directory.ts'
import { namedDirectory } from './named-directory.ts'

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
  const dataDir = namedDirectory(options, io)
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
