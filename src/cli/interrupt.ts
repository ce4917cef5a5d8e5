/**
 * Ctrl-C of commands that run until they are told to stop, and the end of their terminal (SIGHUP): the first one ends them
 * in order. It may arrive twice, from the terminal and from npm or the launcher, so for half a second more of them count as
 * the same; after that one ends the process as it would without us. Main thread.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CliIo } from './io.ts'

/** The same signal again within this time is an echo of the first. */
const ECHO_MS = 500

export interface Interrupt {
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP. */
  readonly signal: AbortSignal
  /** Signals are the process's own again, once echoes of the first have passed. */
  forget(): void
}

export function listenForInterrupt({ signals = process }: Pick<CliIo, 'signals'>): Interrupt {
  const controller = new AbortController()
  const remove = (): void => {
    signals.off('SIGINT', stop)
    signals.off('SIGTERM', stop)
    signals.off('SIGHUP', stop)
  }
  const stop = (): void => {
    if (controller.signal.aborted) return
    setTimeout(remove, ECHO_MS).unref()
    controller.abort()
  }
  signals.on('SIGINT', stop)
  signals.on('SIGTERM', stop)
  signals.on('SIGHUP', stop)
  return {
    signal: controller.signal,
    forget: () => {
      if (!controller.signal.aborted) remove()
    }
  }
}

/** Resolves when it is, or was. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** A wait that the signal ends early. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
