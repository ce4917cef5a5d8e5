/**
 * Process entry: hands the real terminal and environment to the command line and exits with its code.
 * Main thread. A reader that goes away (`millrace consume | head`) ends the process quietly; an output that fails in another
 * way, as on a full disk, ends it with one line and exit code 1. A stderr that fails changes nothing: there is nowhere
 * to tell it, and the exit code still says how it went.
 */
import { exitCodes } from './cli/io.ts'
import { runCli } from './cli/run.ts'

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(exitCodes.ok)
  // At once: the command may be about to end as if all went well.
  process.stderr.write(`millrace: the output cannot be written: ${error.message}\n`)
  process.exit(exitCodes.refused)
})
process.stderr.on('error', () => {
  // What failed to be told cannot be told.
})

const exitCode = await runCli(process.argv.slice(2), process)

// What was printed must be out before the exit: a pipe may still hold some of it. That it failed is heard a turn later.
process.stdout.write('', () => setImmediate(() => process.exit(exitCode)))
