/**
 * The command line: builds the program, runs one command, turns what went wrong into one message and an exit code.
 * Main thread. Errors that are bugs pass through to the caller.
 */
import { Command, CommanderError } from 'commander'
import { HUNG_UP } from '../client/http/exchange.ts'
import { HttpClientError } from '../client/http/http-client.ts'
import { addBenchCommand } from './bench-command.ts'
import { addCommitCommands } from './commit-command.ts'
import { addClientOptions, optionsOf } from './common-options.ts'
import { addCompletionsCommand } from './completion/completions-command.ts'
import { addConfigCommands } from './config-command.ts'
import { addConsumeCommand } from './consume-command.ts'
import { addDoctorCommand } from './doctor-command.ts'
import { failureJson, KEY_HINT } from './failures.ts'
import { exitCodes, print, UsageError, type CliIo, type ExitCode } from './io.ts'
import { addDumpCommand } from './offline/dump-command.ts'
import { addInspectCommands } from './offline/inspect-command.ts'
import { addQuarantineCommands } from './offline/quarantine-command.ts'
import { addRestoreCommand } from './offline/restore-command.ts'
import { addVerifyCommand } from './offline/verify-command.ts'
import { addGroupCommands } from './group-command.ts'
import { addKeyCommands } from './key-command.ts'
import { optionHint } from './option-hints.ts'
import { addProduceCommand } from './produce-command.ts'
import { addProducerCommands } from './producer-command.ts'
import { addSchemaCommands } from './schema-command.ts'
import { addServeCommand } from './serve-command.ts'
import { addTailCommand } from './tail/tail-command.ts'
import { addTopCommand } from './top/top-command.ts'
import { addTieredCommands } from './tiered-command.ts'
import { addTopicCommands } from './topic-command.ts'
import { readVersion } from './version.ts'

const exitCodeHelp = `
Exit codes:
  0  done
  1  the broker refused the request, or serving failed; verify, inspect, quarantine: damage was found;
     dump, restore: refused; the output could not be written, as on a full disk
  2  wrong use of a command, or a fault in the configuration
  3  no broker could be reached, or none answered in time; offline commands: the directory cannot be opened`

/** Runs the command that `words` (without node and script) name. @returns the exit code of the process. */
export async function runCli(words: readonly string[], io: CliIo): Promise<ExitCode> {
  let exitCode: ExitCode = exitCodes.ok
  let isJson = false
  const program = buildProgram(io, code => {
    exitCode = code
  })
  program.hook('preAction', (_, command) => {
    isJson = optionsOf(command)['json'] === true
  })
  try {
    await program.parseAsync(words, { from: 'user' })
    return exitCode
  } catch (error) {
    return await report(error, isJson, io)
  }
}

/** The whole command line. @param finish hears the exit code of commands that have one of their own. */
export function buildProgram(io: CliIo, finish: (code: ExitCode) => void): Command {
  const program = new Command('millrace')
    .description('Millrace, a durable event broker: runs it and talks to it.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help; also after a command')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: text => io.stdout.write(text),
      writeErr: text => io.stderr.write(text)
    })
  addClientOptions(program)
  program.addHelpText('afterAll', exitCodeHelp)
  addServeCommand(program, io, finish)
  addConfigCommands(program, io)
  addTopicCommands(program, io)
  addProduceCommand(program, io)
  addConsumeCommand(program, io)
  addTailCommand(program, io)
  addCommitCommands(program, io)
  addGroupCommands(program, io)
  addProducerCommands(program, io)
  addKeyCommands(program, io, finish)
  addSchemaCommands(program, io)
  addTieredCommands(program, io)
  addTopCommand(program, io)
  addVerifyCommand(program, io, finish)
  addInspectCommands(program, io, finish)
  addQuarantineCommands(program, io, finish)
  addDumpCommand(program, io, finish)
  addRestoreCommand(program, io, finish)
  addDoctorCommand(program, io, finish)
  addBenchCommand(program, io, finish)
  addCompletionsCommand(program, io)
  tellErrorsInOneLine(program)
  return program
}

/** What is wrong with the words of a command, and of those below it. @param path its words behind the program's name. */
function tellErrorsInOneLine(command: Command, path: readonly string[] = []): void {
  command.configureOutput({ outputError: (text, write) => write(`${oneLine(text, path.join(' '))}\n`) })
  for (const child of command.commands) tellErrorsInOneLine(child, [...path, child.name()])
}

/** `error: unknown option '--x'\n(Did you mean --y?)` → one line under our name, with the hint that there is for it. */
function oneLine(text: string, command: string): string {
  const line = text.trim().replace(/^error: /, 'millrace: ')
  const option = /unknown option '(--[a-z-]+)/.exec(line)?.[1]
  const hint = option === undefined ? null : optionHint(command, option)
  if (hint !== null) return `${line.split('\n', 1)[0]}: ${hint}`
  return line.replace(/\s*\n\s*\(Did you mean (.+)\?\)$/, ': did you mean $1?')
}

/** Commander has printed its own errors; the rest is printed here. With --json a failure of a request is JSON too. */
async function report(error: unknown, isJson: boolean, io: CliIo): Promise<ExitCode> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof UsageError) {
    await print(io.stderr, `millrace: ${error.message}\n`)
    return exitCodes.usage
  }
  if (!(error instanceof HttpClientError)) throw error
  return await reportRequest(inPlainWords(error), isJson, io)
}

async function reportRequest(error: HttpClientError, isJson: boolean, io: CliIo): Promise<ExitCode> {
  const isReached = error.kind === 'refused' || error.kind === 'foreign'
  const exitCode = isReached ? exitCodes.refused : exitCodes.unreachable
  await print(io.stderr, isJson ? failureJson(error, exitCode) : `millrace: ${explainFailure(error)}\n`)
  return exitCode
}

/** Some reasons of the HTTP client are about its own insides. */
function inPlainWords(error: HttpClientError): HttpClientError {
  const { host } = new URL(error.url)
  return /does not match the HTTP|HPE_|Parse Error/.test(error.reason)
    ? error.withReason(`what listens at ${host} does not speak HTTP; a broker's binary listener is no --broker`)
    : error
}

/** What a missing answer leaves open, and the most likely cause of a connection that a broker closed. */
function unansweredHints({ method, url, reason }: HttpClientError): string {
  const isPlain = url.startsWith('http:') && reason === HUNG_UP
  return [
    method === 'GET' ? '' : '. A write may or may not have happened',
    isPlain ? '. A broker with a certificate is named with https:// (--broker); its Kafka listener is no --broker' : ''
  ].join('')
}

function explainFailure(error: HttpClientError): string {
  switch (error.kind) {
    case 'unreachable':
      return (
        `cannot reach a broker at ${new URL(error.url).origin}: ${error.reason}. ` +
        "Start one with 'millrace serve', or name another with --broker"
      )
    case 'untrusted':
      return (
        `the certificate of ${new URL(error.url).origin} is not trusted: ${error.reason}. ` +
        (error.reason.startsWith('Hostname/IP does not match')
          ? 'Name the broker in --broker as its certificate does; --insecure skips the check'
          : 'Name who signed it, or the certificate itself, with --tls-ca; --insecure skips the check')
      )
    case 'unanswered':
      return `${error.method} ${error.url} got no answer: ${error.reason}${unansweredHints(error)}`
    case 'refused':
    case 'foreign':
      return `${error.method} ${error.url} answered ${error.status}: ${error.reason}${error.status === 401 ? KEY_HINT : ''}`
  }
}
