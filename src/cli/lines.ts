/**
 * A stream of bytes as batches of lines, for `produce --from-file`. A line ends with LF, the last one may end with the
 * file; all else is the line's, a CR too. Empty lines are skipped. Memory: one batch and one line.
 */
import { UsageError } from './io.ts'

export interface LineBatch {
  readonly lines: readonly string[]
  /** Number of the first and the last line in the input, from 1. Skipped lines count. */
  readonly firstLine: number
  readonly lastLine: number
  /** Bytes of the input read up to and with the last line. */
  readonly inputBytes: number
}

export interface BatchLimits {
  readonly linesMax: number
  /** A batch is closed once it has this many bytes; one line is never split. */
  readonly bytesTarget: number
  /** A line above this ends the reading: nothing that long can be a record. */
  readonly lineBytesMax: number
}

const LF = 0x0a

/** @param name of the input, for errors. @throws UsageError for a line that is not UTF-8 or too long. */
export async function* readLineBatches(
  input: AsyncIterable<Uint8Array | string>,
  name: string,
  limits: BatchLimits
): AsyncGenerator<LineBatch> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let lines: string[] = []
  let linesBytes = 0
  let firstLine = 0
  let lastLine = 0
  let lineNumber = 0
  let inputBytes = 0

  const take = (line: Uint8Array) => {
    lineNumber++
    if (line.length === 0) return
    if (line.length > limits.lineBytesMax)
      throw new UsageError(`${name}, line ${lineNumber}: longer than ${limits.lineBytesMax} bytes`)
    if (lines.length === 0) firstLine = lineNumber
    lines.push(decodeLine(decoder, line, `${name}, line ${lineNumber}`))
    linesBytes += line.length
    lastLine = lineNumber
  }
  const close = (): LineBatch => {
    const batch = { lines, firstLine, lastLine, inputBytes }
    lines = []
    linesBytes = 0
    return batch
  }

  for await (const piece of splitLines(input, limits.lineBytesMax)) {
    inputBytes += piece.inputBytes
    take(piece.line)
    if (lines.length >= limits.linesMax || linesBytes >= limits.bytesTarget) yield close()
  }
  if (lines.length > 0) yield close()
}

function decodeLine(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array, place: string): string {
  try {
    return decoder.decode(bytes)
  } catch (error) {
    // TextDecoder throws only this, and only for bytes that are no UTF-8.
    if (!(error instanceof TypeError)) throw error
    throw new UsageError(`${place}: not UTF-8 text; write bytes in base64, with --encoding base64`)
  }
}

/** Lines without their LF. A line that grows beyond `lineBytesMax` is given as it is so far; the caller refuses it. */
async function* splitLines(
  input: AsyncIterable<Uint8Array | string>,
  lineBytesMax: number
): AsyncGenerator<{ line: Uint8Array; inputBytes: number }> {
  let rest: Buffer[] = []
  let restBytes = 0
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk)
    let start = 0
    for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, start)) {
      const line = restBytes === 0 ? bytes.subarray(start, end) : Buffer.concat([...rest, bytes.subarray(start, end)])
      rest = []
      restBytes = 0
      yield { line, inputBytes: line.length + 1 }
      start = end + 1
    }
    if (start < bytes.length) {
      rest.push(bytes.subarray(start))
      restBytes += bytes.length - start
    }
    if (restBytes > lineBytesMax) break
  }
  if (restBytes > 0) yield { line: Buffer.concat(rest), inputBytes: restBytes }
}
