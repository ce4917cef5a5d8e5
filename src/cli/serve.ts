/**
 * The life of a serving process: start, say so, wait for a signal, stop in time. Main thread.
 * The first SIGINT or SIGTERM asks the broker to stop; a second one ends the process at once. A terminal and npm each
 * deliver one Ctrl-C, so the same signal within half a second is the same key press. SIGHUP reloads, SIGUSR2 logs a
 * state dump; one that comes during the start is heeded when the broker runs. A SIGHUP that tells of a closed terminal
 * stops the broker: whoever closes the window of a trial means to end it.
 * A supervisor hears when everything is served, and that it stops.
 */
import { formatBytes } from '../base/amounts.ts'
import type { Logger } from '../base/logger.ts'
import type { Settings } from '../config/settings.ts'
import { formatBanner } from './banner.ts'
import { exitCodes, print, type ExitCode, type TextOutput } from './io.ts'
import type { RunningServer } from './running-server.ts'
import { logState, reloadSettings, type ReloadParts } from './running-signals.ts'
import type { TellSupervisor } from './supervisor.ts'
import { readVersion } from './version.ts'

type StopSignal = 'SIGINT' | 'SIGTERM'
type RunningSignal = 'SIGHUP' | 'SIGUSR2'

/** The part of `process` that delivers signals. */
export interface SignalSource {
  on(signal: StopSignal | RunningSignal, listener: () => void): unknown
  off(signal: StopSignal | RunningSignal, listener: () => void): unknown
}

export interface ServeParts extends ReloadParts {
  readonly settings: Settings
  /** Rejects with an error whose message is one clear line. */
  startServer(settings: Settings, logger: Logger): Promise<RunningServer>
  readonly tellSupervisor: TellSupervisor
  readonly stderr: TextOutput
  readonly signals: SignalSource
  /** True if it was started at a terminal that is not there any more. */
  hasLostTerminal(): boolean
  /** Ends the process at once. */
  exit(code: number): void
  monotonicMs(): number
}

/** The same signal again within this time is an echo of the first. */
const ECHO_MS = 500
/** For a supervisor to take a word while the broker serves, which nothing waits for. */
const READY_TELL_MS = 5_000
/** And while it stops: a supervisor that reads nothing must not delay the end. */
const STOPPING_TELL_MS = 1_000

/** Runs the broker until it is told to stop. Never rejects for what a user or a disk caused. */
export async function serve(parts: ServeParts): Promise<ExitCode> {
  const stopping = watchSignals(parts)
  const running = watchRunningSignals(parts, () => stopping.hear('SIGTERM'))
  try {
    let server: RunningServer
    try {
      server = await parts.startServer(parts.settings, parts.logger)
    } catch (error) {
      await reportStartFailure(parts, error)
      return exitCodes.refused
    }
    const announced = announce(parts, server)
    running.serve(server)
    await announced
    const signal = await stopping.first
    const timeoutMs = running.settings().shutdownTimeoutMs
    parts.logger.info({ signal, timeoutMs }, 'stopping')
    const told = parts.tellSupervisor(['STOPPING=1', 'STATUS=stopping'], STOPPING_TELL_MS)
    const code = await stopInTime(parts, server, timeoutMs)
    await told
    return code
  } finally {
    stopping.forget()
    running.forget()
  }
}

interface RunningSignals {
  /** From now on signals reach this server. */
  serve(server: RunningServer): void
  /** What is in effect. */
  settings(): Settings
  forget(): void
}

function watchRunningSignals(parts: ServeParts, stop: () => void): RunningSignals {
  let { settings } = parts
  let server: RunningServer | null = null
  const early = new Set<() => void>()
  const reload = (): void => {
    if (parts.hasLostTerminal()) stop()
    else if (server === null) early.add(reload)
    else settings = reloadSettings(parts, server, settings)
  }
  const dump = (): void => {
    if (server === null) early.add(dump)
    else void logState(parts.logger, server)
  }
  parts.signals.on('SIGHUP', reload)
  parts.signals.on('SIGUSR2', dump)
  return {
    serve(started) {
      server = started
      for (const act of early) act()
      early.clear()
    },
    settings: () => settings,
    forget() {
      parts.signals.off('SIGHUP', reload)
      parts.signals.off('SIGUSR2', dump)
    }
  }
}

interface StopSignals {
  readonly first: Promise<StopSignal>
  hear(signal: StopSignal): void
  forget(): void
}

function watchSignals(parts: ServeParts): StopSignals {
  let firstSignal: StopSignal | null = null
  let firstMs = 0
  const { promise, resolve } = Promise.withResolvers<StopSignal>()
  const hear = (signal: StopSignal) => {
    if (firstSignal === null) {
      firstSignal = signal
      firstMs = parts.monotonicMs()
      resolve(signal)
      return
    }
    if (signal === firstSignal && parts.monotonicMs() - firstMs < ECHO_MS) return
    parts.logger.warn({ signal }, 'second signal: ending at once')
    parts.exit(exitCodes.refused)
  }
  const hearInterrupt = () => hear('SIGINT')
  const hearTerminate = () => hear('SIGTERM')
  parts.signals.on('SIGINT', hearInterrupt)
  parts.signals.on('SIGTERM', hearTerminate)
  return {
    first: promise,
    hear,
    forget: () => {
      parts.signals.off('SIGINT', hearInterrupt)
      parts.signals.off('SIGTERM', hearTerminate)
    }
  }
}

/** One line for machines in the log, always; a word for the supervisor; a banner at a terminal and at the first start. */
async function announce(parts: ServeParts, server: RunningServer): Promise<void> {
  const { httpAddress, binaryAddress, kafkaAddresses, dataDir, durability, shards, engine, firstStart } = server
  parts.logger.info(
    { httpAddress, binaryAddress, kafkaAddresses, dataDir, durability, shards, engine, firstStart },
    'ready'
  )
  const status = `STATUS=serving ${[httpAddress, binaryAddress ?? [], kafkaAddresses].flat().join(' and ')}`
  void parts.tellSupervisor(['READY=1', status], READY_TELL_MS)
  if (parts.stderr.isTTY !== true && !firstStart) return
  await print(parts.stderr, formatBanner(server, parts.settings, readVersion()))
}

async function stopInTime(parts: ServeParts, server: RunningServer, timeoutMs: number): Promise<ExitCode> {
  const { promise: timeout, resolve } = Promise.withResolvers<'late'>()
  const timer = setTimeout(() => resolve('late'), timeoutMs)
  try {
    const outcome = await Promise.race([server.stop(), timeout])
    if (outcome !== 'late') {
      logStopped(parts, outcome)
      return exitCodes.ok
    }
    parts.logger.error({ timeoutMs }, 'not stopped within --shutdown-timeout: ending anyway')
    return exitCodes.refused
  } catch (error) {
    parts.logger.error({ error }, 'stopping failed')
    return exitCodes.refused
  } finally {
    clearTimeout(timer)
  }
}

/** All counters for machines; a person at a terminal gets one line, and the rest with --log-level debug. */
function logStopped({ logger, stderr }: ServeParts, counters: Readonly<Record<string, number>>): void {
  if (stderr.isTTY !== true) return logger.info(counters, 'stopped')
  const { records = 0, syncs = 0, journalBytes = 0 } = counters
  logger.debug(counters, 'counters')
  logger.info({}, `stopped: ${records} record(s) written, ${syncs} sync(s), ${formatBytes(journalBytes)} of journal`)
}

/** One line for the user. What is not one of the expected errors is a bug: its stack goes to the log as well. */
async function reportStartFailure(parts: ServeParts, error: unknown): Promise<void> {
  const isBug =
    !(error instanceof Error) || ['BugError', 'TypeError', 'ReferenceError', 'RangeError'].includes(error.name)
  if (isBug) parts.logger.error({ error }, 'start failed')
  const reason = error instanceof Error ? error.message : String(error)
  await print(parts.stderr, `millrace: cannot start: ${reason.replaceAll('\n', ' ')}\n`)
}
