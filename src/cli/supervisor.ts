/**
 * Tells the supervisor of this process how far it is: systemd, which waits for the words at the socket that it names in
 * NOTIFY_SOCKET. Node.js cannot send to a unix datagram socket, so its own tool `systemd-notify` does. Main thread.
 * It must never stop the broker, nor delay it for long: a word that does not arrive is a line in the log. One that is still
 * under way when the next is due is given up: only the last says how things are, and it must not wait for the others.
 */
import { execFile, type ExecFileException } from 'node:child_process'
import type { Logger } from '../base/logger.ts'

/**
 * Assignments of sd_notify(3), such as READY=1. @param timeoutMs how long they may take.
 * @returns when they were taken or given up; never rejects.
 */
export type TellSupervisor = (words: readonly string[], timeoutMs: number) => Promise<void>

/** For a process without such a supervisor: says nothing to nobody. */
export function createTellSupervisor(
  env: Readonly<Record<string, string | undefined>>,
  logger: Logger
): TellSupervisor {
  if ((env['NOTIFY_SOCKET'] ?? '') === '') return () => Promise.resolve()
  let last = Promise.resolve()
  let cut = new AbortController()
  return (words, timeoutMs) => {
    cut.abort()
    cut = new AbortController()
    const { signal } = cut
    // One after the other: READY=1 that came in after STOPPING=1 would be the last word.
    last = last.then(() => runNotify(words, env, logger, { signal, timeout: timeoutMs }))
    return last
  }
}

/** systemd-notify waits until systemd has taken the words, so that it is known whose they are. */
function runNotify(
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  logger: Logger,
  bounds: { readonly signal: AbortSignal; readonly timeout: number }
): Promise<void> {
  return new Promise(resolve => {
    execFile('systemd-notify', words, { env, ...bounds }, (error, _, stderr) => {
      // One that was given up for the next is no news: most likely it arrived, and only its receipt was to come.
      if (error !== null && !bounds.signal.aborted) {
        logger.warn({ words, reason: reasonOf(error, stderr) }, 'the supervisor could not be told')
      }
      resolve()
    })
  })
}

function reasonOf(error: ExecFileException, stderr: string): string {
  if (error.killed === true) return 'nobody took it in time'
  if (error.code === 'ENOENT') return 'there is no systemd-notify: install it, or unset NOTIFY_SOCKET'
  return stderr.trim() || error.message
}
