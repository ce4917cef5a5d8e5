/**
 * Tells the supervisor of this process how far it is: systemd, which waits for the words at the socket that it names in
 * NOTIFY_SOCKET. Node.js cannot send to a unix datagram socket, so its own tool `systemd-notify` does. Main thread.
 * It must never stop or delay the broker: a word that does not arrive is a line in the log.
 */
import { execFile } from 'node:child_process'
import type { Logger } from '../base/logger.ts'

/** Assignments of sd_notify(3), such as READY=1. @returns when they were taken or given up; never rejects. */
export type TellSupervisor = (words: readonly string[]) => Promise<void>

/** systemd-notify waits until systemd has taken the words, so that it is known whose they are. */
const TELL_TIMEOUT_MS = 5_000

/** For a process without such a supervisor: says nothing to nobody. */
export function createTellSupervisor(
  env: Readonly<Record<string, string | undefined>>,
  logger: Logger
): TellSupervisor {
  if ((env['NOTIFY_SOCKET'] ?? '') === '') return () => Promise.resolve()
  // One after the other: READY=1 that came in after STOPPING=1 would be the last word.
  let last = Promise.resolve()
  return words => (last = last.then(() => runNotify(words, env, logger)))
}

function runNotify(words: readonly string[], env: NodeJS.ProcessEnv, logger: Logger): Promise<void> {
  return new Promise(resolve => {
    execFile('systemd-notify', words, { env, timeout: TELL_TIMEOUT_MS }, (error, _, stderr) => {
      if (error !== null) {
        const reason = stderr.trim() || error.message
        logger.warn({ words, reason }, 'the supervisor could not be told: is systemd-notify installed?')
      }
      resolve()
    })
  })
}
