/** `millrace bench`: puts a running broker under load and says what it gave. This file reads the command line. */
import type { Command } from 'commander'
import { formatBytes } from '../base/amounts.ts'
import type { ClientOptions } from '../client/binary/index.ts'
import { parseAddress } from '../config/address.ts'
import { frameLengthMax, limits } from '../model/limits.ts'
import type { BenchOptions } from './bench-run.ts'
import {
  accessOf,
  addClientOptions,
  addExamples,
  openClient,
  optionWithDefault,
  optionsOf,
  sizeOf,
  smallWholeOf,
  textOf,
  type BrokerAccess,
  type OptionTexts
} from './common-options.ts'
import { print, UsageError, type CliIo, type ExitCode } from './io.ts'

/** Where a broker's binary listener is in the examples; there is no default one. */
const BINARY_PORT = 9001
const SECONDS_DEFAULT = 10
const SECONDS_MAX = 3600
/** The largest body of an HTTP request. */
const HTTP_REQUEST_BYTES_MAX = 2 ** 26
/** Of all requests that are under way at once: what this process has in memory. */
const LOAD_BYTES_MAX = 2 ** 30
/** What a record takes beside its value, about. */
const RECORD_BYTES = 100

/** Adds the command to the program. @param finish hears the exit code. */
export function addBenchCommand(program: Command, io: CliIo, finish: (code: ExitCode) => void): void {
  const command = program
    .command('bench')
    .description('put a running broker under load and print records/s, MiB/s and latencies')
    .option('--binary <host:port>', `its binary listener (default: host of --broker, port ${BINARY_PORT})`)
    .option('--http', 'produce and read JSON over HTTP instead')
    .option('--topic <topic>', 'write to this topic, which stays; made if there is none (default: one that is deleted)')
    .option('--keep', 'keep the topic that was made')
    .option('--records <number>', 'end after so many records; without --seconds only then')
    .option('--seconds <number>', `end after so many seconds (default: ${SECONDS_DEFAULT})`)
    .addOption(optionWithDefault('--bytes <size>', 'bytes of a value', '256'))
    .addOption(optionWithDefault('--batch <number>', 'records of a request', '100'))
    .addOption(optionWithDefault('--connections <number>', 'connections', '4'))
    .addOption(optionWithDefault('--in-flight <number>', 'requests under way on each connection', '4'))
    .addOption(optionWithDefault('--partitions <number>', 'partitions of a topic that is made', '12'))
    .option(
      '--gzip',
      'ask the binary listener for payloads in gzip; records are random text, which shrinks by a quarter'
    )
    .option('--keyed', 'give records keys and let these choose the partitions')
    .option('--consume', 'then read everything back')
    .addHelpText(
      'after',
      '\nA closed loop through the client library, on one thread: what one client process gets, not what a broker can give at most.' +
        "\nFailed requests are counted, not sent again. Ctrl-C ends it early: the figures are printed, the topic is deleted.\nExit code 1 if a request failed. The whole load generator is 'npm run bench' in a checkout."
    )
  addExamples(addClientOptions(command), [
    'millrace bench --binary 127.0.0.1:9001',
    'millrace bench --http --seconds 5 --bytes 1KiB --consume',
    'millrace bench --records 1000000 --batch 500 --partitions 100 --keyed --json'
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const wanted = readOptions(options, accessOf(options, io))
    const { runBench } = await import('./bench-run.ts')
    if (wanted.binary !== null && textOf(options['binary']) === null) {
      await print(
        io.stderr,
        `millrace: without --binary, the binary listener is looked for at ${wanted.binary.host}:${BINARY_PORT}\n`
      )
    }
    finish(await runBench(wanted, openClient(options, io), io))
  })
}

function readOptions(options: OptionTexts, access: BrokerAccess): BenchOptions {
  const whole = (name: string, flag: string, max: number): number | null =>
    smallWholeOf(options[name], flag, { min: 1n, max: BigInt(max) })
  const records = whole('records', '--records', Number.MAX_SAFE_INTEGER)
  const seconds = whole('seconds', '--seconds', SECONDS_MAX) ?? (records === null ? SECONDS_DEFAULT : SECONDS_MAX)
  const shape = {
    valueBytes: Number(sizeOf(options['bytes'], '--bytes', { min: 0n, max: BigInt(limits.recordBytesMax) })),
    batchRecords: whole('batch', '--batch', limits.requestRecordsMax) ?? 1,
    connections: whole('connections', '--connections', 1000) ?? 1,
    inFlight: whole('inFlight', '--in-flight', limits.connectionRequestsMax) ?? 1
  }
  const binary = readBinary(options, access)
  checkLoad(shape, binary === null ? HTTP_REQUEST_BYTES_MAX : frameLengthMax(limits.recordBytesMax))
  return {
    ...shape,
    binary,
    topic: textOf(options['topic']),
    keepsTopic: options['keep'] === true,
    recordsMax: records ?? Number.POSITIVE_INFINITY,
    seconds,
    partitions: whole('partitions', '--partitions', limits.partitionsMax) ?? 1,
    keyed: options['keyed'] === true,
    consumes: options['consume'] === true,
    isJson: options['json'] === true
  }
}

/** @throws UsageError for more than a process should have in memory, or than any broker takes at once. */
function checkLoad(
  shape: Pick<BenchOptions, 'valueBytes' | 'batchRecords' | 'connections' | 'inFlight'>,
  requestBytesMax: number
): void {
  const { valueBytes, batchRecords, connections, inFlight } = shape
  const bytes = (valueBytes + RECORD_BYTES) * batchRecords * connections * inFlight
  if (bytes > LOAD_BYTES_MAX) {
    const flags = '--bytes × --batch × --connections × --in-flight'
    throw new UsageError(
      `${flags} is ${formatBytes(bytes)} under way at once, above ${formatBytes(LOAD_BYTES_MAX)}: lower one`
    )
  }
  const requestBytes = valueBytes * batchRecords
  if (requestBytes <= requestBytesMax) return
  const most = `no broker takes more than ${formatBytes(requestBytesMax)}`
  throw new UsageError(`--bytes × --batch is a request of ${formatBytes(requestBytes)}, and ${most}: lower one`)
}

/** A broker with a certificate has it on both listeners. */
function readBinary(options: OptionTexts, { broker, secret, tls }: BrokerAccess): ClientOptions | null {
  const named = textOf(options['binary'])
  const gzip = options['gzip'] === true
  if (options['http'] === true) {
    const other = named !== null ? '--binary' : gzip ? '--gzip' : null
    if (other !== null) throw new UsageError(`--http and ${other} exclude each other`)
    return null
  }
  const { hostname, protocol } = new URL(broker)
  return {
    ...binaryAddress(named ?? `${hostname}:${BINARY_PORT}`),
    gzip,
    ...(secret === null ? {} : { token: secret }),
    ...(protocol === 'https:' ? { tls } : {})
  }
}

function binaryAddress(text: string): { readonly host: string; readonly port: number } {
  const reading = parseAddress(text)
  if (reading.ok) return reading.value
  throw new UsageError(`--binary '${text}' ${reading.problem}`)
}
