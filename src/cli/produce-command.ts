/** `millrace produce`: one value, or one record per line of a file, over the HTTP API. Requests go one after the other. */
import { createReadStream, statSync } from 'node:fs'
import { Option, type Command } from 'commander'
import type { HttpClient, ProduceRecord } from '../client/http/http-client.ts'
import { HttpClientError } from '../client/http/http-client.ts'
import {
  addClientOptions,
  addExamples,
  openClient,
  optionsOf,
  requiredText,
  smallWholeOf,
  textOf,
  u32
} from './common-options.ts'
import { formatResult } from './format.ts'
import { print, UsageError, type CliIo } from './io.ts'
import { readLineBatches, type LineBatch } from './lines.ts'
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
  readonly shared: Omit<ProduceRecord, 'value'>
  readonly isJson: boolean
}

/** Adds the command to the program. */
export function addProduceCommand(program: Command, io: CliIo): void {
  const command = program
    .command('produce')
    .description('write records to a topic')
    .option('--topic <topic>', 'the topic (required)')
    .option('--key <key>', 'key of the record, or of every record; decides the partition')
    .option('--partition <number>', 'partition, instead of the one the key decides')
    .addOption(new Option('--value <text>', 'value of one record').conflicts('fromFile'))
    .option('--from-file <path>', 'one record per non-empty line of this file; - reads stdin')
  addExamples(addClientOptions(command), [
    'millrace produce --topic orders --key user-1 --value \'{"total":12}\'',
    'millrace produce --topic orders --partition 0 --from-file orders.jsonl',
    'tail -f app.log | millrace produce --topic logs --from-file -'
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const key = textOf(options['key'])
    const partition = smallWholeOf(options['partition'], '--partition', u32)
    const job: ProduceJob = {
      client: openClient(options, io),
      topic: requiredText(options, 'topic', '--topic'),
      shared: { ...(key === null ? {} : { key }), ...(partition === null ? {} : { partition }) },
      isJson: options['json'] === true
    }
    const value = textOf(options['value'])
    const file = textOf(options['fromFile'])
    if (value !== null) await produceValue(job, value, io)
    else if (file !== null) await produceFile(job, file, io)
    else throw new UsageError('nothing to produce: give --value or --from-file')
  })
}

/** @returns the partitions and offsets written, as a tally. */
async function produceLines(job: ProduceJob, lines: readonly string[], io: CliIo, isShown: boolean): Promise<number> {
  const answer = await job.client.produce(
    job.topic,
    lines.map(value => ({ ...job.shared, value }))
  )
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
    await produceLines(job, [value], io, true)
  } catch (error) {
    if (!(error instanceof HttpClientError) || error.kind !== 'refused') throw error
    // Some texts of the broker say it themselves.
    const isSaid = error.written === 'no' && error.reason.includes(fates.no)
    const fate = error.written === 'unknown' ? 'the record may have been written' : fates[error.written]
    throw isSaid ? error : error.withReason(`${error.reason}; ${fate}`)
  }
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
      batchLimits
    )) {
      recordCount += await produceBatch(job, batch, io, isShown)
      progress?.update(batch.inputBytes, recordCount)
    }
  } catch (error) {
    throw explainStop(error, recordCount, progress)
  }
  progress?.close()
  if (!isShown) await print(io.stdout, `produced ${recordCount} record(s) to topic '${job.topic}'\n`)
}

async function produceBatch(job: ProduceJob, batch: LineBatch, io: CliIo, isShown: boolean): Promise<number> {
  try {
    return await produceLines(job, batch.lines, io, isShown)
  } catch (error) {
    if (!(error instanceof HttpClientError)) throw error
    throw error.withReason(`${error.reason}; of lines ${batch.firstLine} to ${batch.lastLine} ${fates[error.written]}`)
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
