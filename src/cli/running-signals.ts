/**
 * What a running broker does on SIGHUP and SIGUSR2. Main thread. Neither ever stops it: a fault in the configuration is a
 * line in the log, and what was in effect stays.
 */
import type { Logger } from '../base/logger.ts'
import { planReload } from '../config/reload.ts'
import type { Settings } from '../config/settings.ts'
import { UsageError } from './io.ts'
import type { RunningServer } from './running-server.ts'

export interface ReloadParts {
  readonly logger: Logger
  /** The settings as all sources say now. @throws UsageError */
  readSettings(): Settings
  setLogLevel(level: Settings['logLevel']): void
}

/**
 * Reads all sources again and takes what can change while the broker runs (config/reload.ts).
 * @param before what is in effect. @returns what is in effect now.
 */
export function reloadSettings(parts: ReloadParts, server: RunningServer, before: Settings): Settings {
  const { logger } = parts
  let wanted: Settings
  try {
    wanted = parts.readSettings()
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    logger.error({ faults: error.message }, 'nothing is reloaded: the configuration has faults')
    return before
  }
  const { settings, changed, needRestart } = planReload(before, wanted)
  parts.setLogLevel(settings.logLevel)
  const problem = server.reload(settings)
  const certificate = server.tls === null ? 'none' : (problem ?? 'read anew')
  logger.info({ changed, certificate }, 'reloaded')
  if (needRestart.length > 0) logger.warn({ needRestart }, 'these settings have changed and need a restart')
  return settings
}

/** One line of what the broker is doing. */
export async function logState(logger: Logger, server: RunningServer): Promise<void> {
  try {
    logger.info({ state: await server.describeState() }, 'state')
  } catch (error) {
    logger.error({ error }, 'the state could not be told')
  }
}
