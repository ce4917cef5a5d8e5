/** `millrace produce`: one value, or one record per line of a file, over the HTTP API. Requests go one after the other. */
import { createReadStream, statSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { HttpClientError, type HttpClient } from '../client/http/http-client.ts'
import {
  addClientOptions,
  addExamples,
  addName,
  nameOf,
  topicFlag,
  type OptionTexts,
  openClient,
  optionsOf,
  optionWithDefault,
  repeatableOption,
  requiredText,
  smallWholeOf,
  textOf,
  u32,
  wordsOf
} from './common-options.ts'
import { formatResult } from './format.ts'
import { print, UsageError, type CliIo } from './io.ts'
import { readLineBatches, type LineBatch } from './lines.ts'
import { NUMBERED_RECORDS_MAX, numberingOf, sequenceAt, type Numbering } from './numbering.ts'
import { headersOf, produceRecords, type RecordEncoding, type SharedFields } from './produce-request.ts'
import { openProgress, type Progress } from './progress.ts'

/**
 * 1,000 lines or 1 MiB per request: large enough that a sync is shared, and even if every byte needs a JSON escape of
 * six it stays below the default body limit of 10 MiB. A line above 64 MiB can be no record under any setting.
 */
const batchLimits = { linesMax: 1_000, bytesTarget: 1024 * 1024, lineBytesMax: 64 * 1024 * 1024 }

/** A shorter file is sent before anyone looks. */
const PROGRESS_FILE_BYTES = 1024 * 1024

/** What the user may conclude about records that were refused, or got no answer. */
const fates = { no: 'nothing was written', unknown: 'any may have been written', yes: 'all were written' } as const

interface ProduceJob {
  readonly client: HttpClient
  readonly topic: string
  readonly shared: SharedFields
  readonly encoding: RecordEncoding
  /** null: records are not numbered, and sent twice they are written twice. */
  readonly numbering: Numbering | null
  readonly isJson: boolean
}

/** Adds the command to the program. */
export function addProduceCommand(program: Command, io: CliIo): void {
  const command = program
    .command('produce')
    .description('write records to a topic')
    .option('--key <key>', 'key of the record, or of every record; decides the partition')
    .option('--partition <number>', 'partition, instead of the one the key decides')
    .addOption(repeatableOption('--header <name=value>', 'header of every record; without = it has no value'))
    .addOption(new Option('--value <text>', 'value of one record').conflicts('fromFile'))
    .option('--from-file <path>', 'one record per non-empty line of this file; - reads stdin')
    .addOption(
      optionWithDefault('--encoding <encoding>', 'how key, values and values of headers are written', 'utf8').choices([
        'utf8',
        'base64'
      ])
    )
    .option('--producer-id <id>', 'write each record once, however often it is sent; needs --sequence')
    .option('--sequence <number>', 'number of the record, or of the first line; it counts up per line')
    .addHelpText(
      'after',
      '\nA producer numbers its records in each partition, each one more than the last: with --producer-id give\n' +
        '--partition, or a --key, so that all go to one. A record sent again is answered as (duplicate).'
    )
  addName(command, topicFlag, 'the topic (required)')
  addExamples(addClientOptions(command), [
    'millrace produce --topic orders --key user-1 --value \'{"total":12}\'',
    'millrace produce --topic orders --value checkout --header trace=af01 --header source=shop',
    'millrace produce --topic images --encoding base64 --value "$(base64 -w0 photo.png)"',
    'millrace produce --topic orders --partition 0 --from-file orders.jsonl',
    'millrace produce --topic orders --partition 0 --producer-id shop-1 --sequence 0 --from-file orders.jsonl',
    'tail -f app.log | millrace produce --topic logs --from-file -'
  ])
  command.action(async (_topic, _, command: Command) => {
    const options: OptionTexts = { ...optionsOf(command), topic: nameOf(command, topicFlag) }
    const key = textOf(options['key'])
    const partition = smallWholeOf(options['partition'], '--partition', u32)
    const headers = headersOf(wordsOf(options['header']))
    const job: ProduceJob = {
      client: openClient(options, io),
      topic: requiredText(options, 'topic', '--topic'),
      shared: {
        ...(key === null ? {} : { key }),
        ...(partition === null ? {} : { partition }),
        ...(headers.length === 0 ? {} : { headers })
      },
      encoding: options['encoding'] === 'base64' ? 'base64' : 'utf8',
      numbering: numberingOf(options),
      isJson: options['json'] === true
    }
    const value = textOf(options['value'])
    const file = textOf(options['fromFile'])
    if (value !== null) await produceValue(job, value, io)
    else if (file !== null) await produceFile(job, file, io)
    else throw new UsageError('nothing to produce: give --value or --from-file')
  })
}

/** @param sentCount records before these, for their sequences. @returns how many were written. */
async function produceLines(
  job: ProduceJob,
  lines: readonly string[],
  sentCount: number,
  io: CliIo,
  isShown: boolean
): Promise<number> {
  const { client, topic, shared, encoding, numbering } = job
  const records = lines.map((value, i) => ({
    ...shared,
    value,
    ...(numbering === null ? {} : { sequence: sequenceAt(numbering, sentCount + i) })
  }))
  const answer = await produceRecords(client, topic, { records, encoding, producerId: numbering?.producerId ?? null })
  const { results } = answer.body
  if (isShown)
    await print(
      io.stdout,
      job.isJson ? `${answer.text}\n` : results.map(result => `${formatResult(result)}\n`).join('')
    )
  return results.length
}

async function produceValue(job: ProduceJob, value: string, io: CliIo): Promise<void> {
  try {
    await produceLines(job, [value], 0, io, true)
  } catch (error) {
    if (!(error instanceof HttpClientError)) throw error
    throw error.withReason(`${error.reason}${fateOfValue(error)}${adviceForValue(job, error)}`)
  }
}

/** What became of one value, where the broker spoke; some of its texts say it themselves. */
function fateOfValue({ kind, written, reason }: HttpClientError): string {
  if (kind !== 'refused' || (written === 'no' && reason.includes(fates.no))) return ''
  return `; ${written === 'unknown' ? 'the record may have been written' : fates[written]}`
}

function adviceForValue(job: ProduceJob, error: HttpClientError): string {
  const isOpen = error.written === 'unknown' && canSendAgain(job, error)
  return isOpen ? '; sent again with the same --sequence it is written once' : ''
}

/** Whether the same records may be sent again: they must meet themselves in one partition, and a wrong sequence stays wrong. */
function canSendAgain({ numbering, shared }: ProduceJob, { code }: HttpClientError): boolean {
  const isPinned = shared.partition !== undefined || shared.key !== undefined
  return numbering !== null && isPinned && !(code ?? '').startsWith('SEQUENCE_')
}

async function produceFile(job: ProduceJob, file: string, io: CliIo): Promise<void> {
  const sizeBytes = file === '-' ? 0 : sizeOfFile(file)
  const input = file === '-' ? io.stdin : createReadStream(file, { highWaterMark: 256 * 1024 })
  const isLong = sizeBytes >= PROGRESS_FILE_BYTES && io.stderr.isTTY === true
  const progress = isLong ? await openProgress(io.stderr, sizeBytes) : null
  // A bar and a line per record on one terminal destroy each other: then the tally at the end is the result.
  const isShown = progress === null || job.isJson || io.stdout.isTTY !== true
  let recordCount = 0
  try {
    for await (const batch of readLineBatches(
      input as AsyncIterable<Uint8Array>,
      file === '-' ? 'stdin' : file,
      job.numbering === null ? batchLimits : { ...batchLimits, linesMax: NUMBERED_RECORDS_MAX }
    )) {
      recordCount += await produceBatch(job, batch, recordCount, io, isShown)
      progress?.update(batch.inputBytes, recordCount)
    }
  } catch (error) {
    throw explainStop(error, recordCount, progress)
  }
  progress?.close()
  if (!isShown) await print(io.stdout, `produced ${recordCount} record(s) to topic '${job.topic}'\n`)
}

async function produceBatch(
  job: ProduceJob,
  batch: LineBatch,
  sentCount: number,
  io: CliIo,
  isShown: boolean
): Promise<number> {
  try {
    return await produceLines(job, batch.lines, sentCount, io, isShown)
  } catch (error) {
    if (!(error instanceof HttpClientError)) throw error
    const { firstLine, lastLine } = batch
    const fate = `of lines ${firstLine} to ${lastLine} ${fates[error.written]}`
    const goOn =
      job.numbering !== null && canSendAgain(job, error)
        ? `; go on from line ${firstLine} with --sequence ${sequenceAt(job.numbering, sentCount)}`
        : ''
    throw error.withReason(`${error.reason}; ${fate}${goOn}`)
  }
}

/** Whatever ended the reading, the user must know how far it came. */
function explainStop(error: unknown, recordCount: number, progress: Progress | null): unknown {
  progress?.close()
  const before = `${recordCount} record(s) before that were written`
  if (error instanceof HttpClientError) {
    return error.withReason(`${error.reason}; ${before}`)
  }
  if (error instanceof UsageError) return new UsageError(`${error.message}; ${before}`)
  const isFromDisk = error instanceof Error && 'syscall' in error
  return isFromDisk ? new UsageError(`cannot read --from-file: ${error.message}; ${before}`) : error
}

function sizeOfFile(file: string): number {
  try {
    const stats = statSync(file)
    if (stats.isDirectory()) throw new UsageError(`--from-file ${file} is a directory`)
    return stats.size
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`cannot read --from-file ${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
