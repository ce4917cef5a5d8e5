/**
 * Server-sent events as text: those of records, out of an answer in frames, and the few others. Pure; any thread. Every
 * event ends with its empty line, so whatever follows it is a new one.
 */
import type { ErrorCode } from '../../model/errors.ts'
import { RecordFrames } from './record-frames.ts'

/** What is written around the texts of records. */
export interface EventShape {
  /** Of the id, before and behind the next offset of the partition; null: events have no ids. */
  readonly id: readonly [string, string] | null
  /** Named in each record; null: it is not. */
  readonly topic: string | null
  readonly partition: number
}

/** A line that means nothing, between two events. */
export const FILLER = Buffer.from(':\n')
/** What keeps a silent connection open. */
export const HEARTBEAT = Buffer.from(': \n\n')

/**
 * The first text of a stream: it shows that it is open, says when to come again after its end, and where it begins, so that
 * one that breaks before its first event goes on from there. @param id null: it has none.
 */
export function openingText(retryMs: number, id: string | null): Buffer {
  return Buffer.from(id === null ? `retry: ${retryMs}\n\n` : `retry: ${retryMs}\nid: ${id}\n\n`)
}

const END = '\n\n'
const frames = new RecordFrames()

/** `{"partition":0,…}` or, with a topic, `{"topic":"t","partition":0,…}`: what stands before the rest of a record's text. */
function openingOf(topic: string | null): string {
  return topic === null ? '{' : `{"topic":${JSON.stringify(topic)},`
}

/**
 * The events of one answer: `skipped` if it passed something over, then one for each record.
 * @param answer whole, borrowed until return. @returns empty: there is nothing to tell.
 */
export function writeEvents(answer: Buffer, { id, topic, partition }: EventShape): Buffer {
  const opening = openingOf(topic)
  const [before, behind] = id ?? ['', '']
  const idOf = (next: number): string => (id === null ? '' : `id: ${before}${next}${behind}\n`)
  frames.open(answer)
  const heads: string[] = []
  let bytes = 0
  while (frames.next()) {
    const head = `${idOf(frames.offset + 1)}data: ${opening}`
    heads.push(head)
    bytes += Buffer.byteLength(head) + (frames.textEnd - frames.textStart - 1) + END.length
  }
  const skippedText = skippedEvent({ id, topic, partition }, frames)
  const text = Buffer.allocUnsafe(Buffer.byteLength(skippedText) + bytes)
  let at = text.write(skippedText)
  frames.open(answer)
  for (let i = 0; frames.next(); i++) {
    at += text.write(heads[i] ?? '', at)
    // Its opening brace is in the head.
    at += frames.bytes.copy(text, at, frames.textStart + 1, frames.textEnd)
    at += text.write(END, at)
  }
  return text
}

/** Its id is where the read went on, so that whoever comes again is not told again. Empty: nothing was passed over. */
function skippedEvent({ id, topic, partition }: EventShape, { skipped }: RecordFrames): string {
  if (skipped === null) return ''
  const { requested, earliest, latest } = skipped
  const idLine = id === null ? '' : `id: ${id[0]}${earliest}${id[1]}\n`
  const fields = `"partition":${partition},"requested":${requested},"earliest":${earliest},"latest":${latest}`
  return `event: skipped\n${idLine}data: ${openingOf(topic)}${fields}}${END}`
}

/** What partitions the member has from here on. @param assignment as one line of JSON. */
export function assignmentEvent(assignment: string): Buffer {
  return Buffer.from(`event: assignment\ndata: ${assignment}${END}`)
}

/** Why the stream ends. @param text of the error, as far as it may be told. */
export function endEvent({ code }: { readonly code: ErrorCode }, text: string): Buffer {
  return Buffer.from(`event: end\ndata: ${JSON.stringify({ code, error: text })}${END}`)
}
