/**
 * What a command gets from its process, so that tests can stand in for the terminal; the exit codes; errors of use.
 * Results go to stdout, everything else to stderr. Main thread.
 */
/** What an exit code means; --help lists them. */
export const exitCodes = {
  ok: 0,
  /** The broker refused the request, or serving failed. */
  refused: 1,
  /** Wrong use of a command, or a fault in the configuration. */
  usage: 2,
  /** No broker could be reached, or none answered. */
  unreachable: 3
} as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

export type TextOutput = NodeJS.WritableStream & { readonly isTTY?: boolean }

/** The part of a process that delivers signals. */
export interface SignalSource {
  on(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP', listener: () => void): unknown
  off(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP', listener: () => void): unknown
}

export interface CliIo {
  readonly stdin: NodeJS.ReadableStream
  readonly stdout: TextOutput
  readonly stderr: TextOutput
  readonly env: Readonly<Record<string, string | undefined>>
  /** Left out: this process. */
  readonly signals?: SignalSource
}

/** Wrong use: `message` is the whole text for the user, one line per fault. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/**
 * Writes text and waits while the reader is behind, so that long output does not pile up in memory. That the output failed
 * is told to nobody here: whoever has the process hears it from the stream, and knows what it means (main.ts).
 */
export async function print(output: TextOutput, text: string): Promise<void> {
  if (output.write(text)) return
  const { promise, resolve } = Promise.withResolvers<void>()
  output.once('drain', resolve).once('error', resolve)
  await promise
  output.off('drain', resolve).off('error', resolve)
}
