/** `millrace serve`: runs the broker. This file resolves the settings and loads the rest; serve.ts has the life of it. */
import { closeSync, openSync } from 'node:fs'
import type { Command } from 'commander'
import { addExamples } from './common-options.ts'
import { exitCodes, print, type CliIo, type ExitCode } from './io.ts'
import { judgePlatform } from './platform.ts'
import { addSettingsOptions, resolveCommandLine, sourcesHelp } from './settings-options.ts'
import { createTellSupervisor } from './supervisor.ts'

/** Adds the command to the program. @param finish hears the exit code once the broker has stopped. */
export function addServeCommand(program: Command, io: CliIo, finish: (code: ExitCode) => void): void {
  const command = program.command('serve').description('run the broker until SIGINT or SIGTERM')
  addSettingsOptions(command).addHelpText('after', sourcesHelp())
  addExamples(command, [
    'millrace serve',
    'millrace serve --data-dir /var/lib/millrace --bind-binary 127.0.0.1:9001',
    'millrace serve --config config/millrace.toml --log-level debug'
  ])
  command.action(async (_, command: Command) => {
    const verdict = judgePlatform(process.platform)
    if (verdict.kind === 'unfit') {
      await print(io.stderr, `millrace: ${verdict.reason}\n`)
      return finish(exitCodes.refused)
    }
    const { settings } = resolveCommandLine(command, io)
    // Loaded only here: the other commands start without the broker's code.
    const [{ createLogger }, { serve }, { startServer }] = await Promise.all([
      import('../observe/logger.ts'),
      import('./serve.ts'),
      import('../server.ts')
    ])
    const logger = await createLogger({ level: settings.logLevel, isPretty: io.stderr.isTTY === true })
    if (verdict.kind === 'untried') logger.warn({ platform: process.platform }, verdict.warning)
    finish(
      await serve({
        settings,
        logger,
        readSettings: () => resolveCommandLine(command, io).settings,
        setLogLevel: level => logger.setLevel(level),
        startServer,
        tellSupervisor: createTellSupervisor(io.env, logger),
        stderr: io.stderr,
        signals: process,
        hasLostTerminal: () => io.stderr.isTTY === true && !hasTerminal(),
        exit: code => process.exit(code),
        monotonicMs: () => performance.now()
      })
    )
  })
}

/** Whether the session of this process has a terminal. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch (error) {
    // ENXIO: it was closed.
    if (error instanceof Error) return false
    throw error
  }
}
