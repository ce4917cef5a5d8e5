/**
 * Process entry: hands the real terminal and environment to the command line and exits with its code.
 * Main thread. A reader that goes away (`millrace consume | head`) ends the process quietly.
 */
import { runCli } from './cli/run.ts'

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

const exitCode = await runCli(process.argv.slice(2), process)

// What was printed must be out before the exit: a pipe may still hold some of it.
process.stdout.write('', () => process.exit(exitCode))
