/**
 * pino behind the Logger of base/. Main thread; workers' lines reach it through their rings.
 * Lines go to stderr, synchronously, so that the last words before an exit are not lost: JSON, or readable text when
 * stderr is a terminal. stdout belongs to results. A secret is never written: known field names are censored.
 */
import { pino, stdSerializers, stdTimeFunctions, type DestinationStream } from 'pino'
import type { Logger } from '../base/logger.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface LoggerOptions {
  readonly level: LogLevel
  /** Readable lines instead of JSON. */
  readonly isPretty: boolean
  /** Where lines go; stderr if left out. */
  readonly destination?: DestinationStream
}

/** A logger whose least severe level can change. */
export interface LevelledLogger extends Logger {
  setLevel(level: LogLevel): void
}

/** Field names that hold secrets, at the top and up to two levels down. */
const secretFields = [
  'secret',
  'token',
  'password',
  'authorization',
  'Authorization',
  'raftSharedSecret',
  '["x-es-key"]',
  '["X-Es-Key"]'
]

function censoredPaths(): string[] {
  const under = (prefix: string, field: string) => (field.startsWith('[') ? `${prefix}${field}` : `${prefix}.${field}`)
  return secretFields.flatMap(field => [field, under('*', field), under('*.*', field)])
}

/** pino joins the message of an error to those of its causes: what it quotes of its cause is not said a second time. */
function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const shown = stdSerializers.err(error)
  if (error.cause instanceof Error && error.message.includes(error.cause.message)) shown.message = error.message
  return shown
}

/** Synchronous stderr. When its reader, a pipe's or a terminal, is gone the broker goes on without a log: records matter more. */
function openStderr(): DestinationStream {
  const stderr = pino.destination({ dest: 2, sync: true })
  stderr.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error
  })
  return stderr
}

/** Lines for a terminal. pino-pretty is loaded only here: it would cost every other start its load time. */
async function prettify(destination: DestinationStream): Promise<DestinationStream> {
  const { prettyFactory } = await import('pino-pretty')
  const isTerminal = process.stderr.isTTY
  const format = prettyFactory({ colorize: isTerminal, translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid,hostname' })
  return { write: line => destination.write(format(line)) }
}

/** Builds the logger of a process. @cost about 20 ms, the first time; about 20 more when pretty. */
export async function createLogger(options: LoggerOptions): Promise<LevelledLogger> {
  const plain = options.destination ?? openStderr()
  const destination = options.isPretty ? await prettify(plain) : plain
  const logger = pino(
    {
      level: options.level,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { err: serializeError, error: serializeError },
      redact: { paths: censoredPaths(), censor: '(secret)' }
    },
    destination
  )
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    setLevel: level => {
      logger.level = level
    }
  }
}
