/** One record as JSON, into the buffer of an answer. Shard thread only; no object per record. */
import { isAscii, isUtf8 } from 'node:buffer'
import { HeaderCursor } from '../../src/wire/batch/headers.ts'
import type { AnswerBuffer, AnsweredRecord } from './answer-buffer.ts'

/** Most that JSON makes of one byte of text: \u00XX. What is no UTF-8 becomes U+FFFD, three bytes for each at most. */
const JSON_GROWTH = 6
/** U+FFFD. */
const REPLACED_BYTES = 3
/** A record's JSON beside key, value and headers: names, punctuation, three numbers. */
const JSON_RECORD_BYTES = 180
/** The JSON of one header beside name and value. */
const JSON_HEADER_BYTES = 12

const headers = new HeaderCursor()

/** Writes `{"partition":…}`. @param isBase64 of key, value and the values of headers; names of headers stay text. */
export function writeJsonRecord(out: AnswerBuffer, record: AnsweredRecord, isBase64: boolean): void {
  const aroundBytes = JSON_RECORD_BYTES + record.headerCount * JSON_HEADER_BYTES
  // Six times a large record is not taken without need: what it really becomes is counted first.
  if (!out.hasRoom(aroundBytes + (record.payloadBytes + record.headerBytes) * JSON_GROWTH))
    out.reserve(aroundBytes + contentTextBytes(record, isBase64))
  const { partition, offset, timestampMs, bytes } = record
  out.text(`{"partition":${partition},"offset":${offset},"timestamp_ms":${timestampMs},"key":`)
  if (record.keyLength < 0) out.text('null')
  else writeString(out, bytes, record.keyStart, record.keyLength, isBase64)
  out.text(',"value":')
  writeString(out, bytes, record.valueStart, Math.max(0, record.valueLength), isBase64)
  if (record.headerCount > 0) writeHeaders(out, record, isBase64)
  out.byte(0x7d)
}

/** What key, value and headers become as text, at most. */
function contentTextBytes(record: AnsweredRecord, isBase64: boolean): number {
  const { bytes, keyStart, keyLength, valueStart, valueLength } = record
  let total = textBytes(bytes, keyStart, keyLength, isBase64) + textBytes(bytes, valueStart, valueLength, isBase64)
  headers.open(bytes, record.headersStart, record.headersEnd, record.headerCount)
  while (headers.next()) {
    total += textBytes(bytes, headers.nameStart, headers.nameLength, false)
    total += textBytes(bytes, headers.valueStart, headers.valueLength, isBase64)
  }
  return total
}

/** @param length −1: null. */
function textBytes(bytes: Buffer, start: number, length: number, isBase64: boolean): number {
  if (length <= 0) return 0
  if (isBase64) return Math.ceil(length / 3) * 4
  const end = start + length
  let total = isText(bytes.subarray(start, end)) ? length : length * REPLACED_BYTES
  for (let i = start; i < end; i++) total += escapeGrowth[bytes[i] as number] as number
  return total
}

function isText(bytes: Buffer): boolean {
  return isAscii(bytes) || isUtf8(bytes)
}

function writeHeaders(out: AnswerBuffer, record: AnsweredRecord, isBase64: boolean): void {
  out.text(',"headers":[')
  headers.open(record.bytes, record.headersStart, record.headersEnd, record.headerCount)
  for (let separator = '['; headers.next(); separator = ',[') {
    out.text(separator)
    writeString(out, record.bytes, headers.nameStart, headers.nameLength, false)
    out.byte(0x2c)
    if (headers.valueLength < 0) out.text('null')
    else writeString(out, record.bytes, headers.valueStart, headers.valueLength, isBase64)
    out.byte(0x5d)
  }
  out.byte(0x5d)
}

function writeString(out: AnswerBuffer, bytes: Buffer, start: number, length: number, isBase64: boolean): void {
  out.byte(0x22)
  if (isBase64) out.text(bytes.toString('base64', start, start + length))
  else writeUtf8(out, bytes, start, start + length)
  out.byte(0x22)
}

/** Text as it is where it needs no escape; invalid UTF-8 becomes U+FFFD (spec 5). */
function writeUtf8(out: AnswerBuffer, bytes: Buffer, start: number, end: number): void {
  const text = bytes.subarray(start, end)
  if (isText(text)) {
    writeEscaped(out, bytes, start, end)
    return
  }
  const replaced = Buffer.from(text.toString('utf8'), 'utf8')
  writeEscaped(out, replaced, 0, replaced.length)
}

/** Copies runs that need no escape, escapes the bytes between them. */
function writeEscaped(out: AnswerBuffer, bytes: Buffer, start: number, end: number): void {
  let from = start
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number
    if (byte >= 0x20 && byte !== 0x22 && byte !== 0x5c) continue
    if (i > from) out.copy(bytes, from, i)
    out.bytesOf(escapes[byte] as Uint8Array)
    from = i + 1
  }
  if (end > from) out.copy(bytes, from, end)
}

/** JSON escape of each byte that needs one. */
const escapes: readonly (Uint8Array | undefined)[] = Array.from({ length: 0x100 }, (_, byte) =>
  byte < 0x20 || byte === 0x22 || byte === 0x5c
    ? Buffer.from(JSON.stringify(String.fromCharCode(byte)).slice(1, -1))
    : undefined
)
/** What it has more than that byte. */
const escapeGrowth = Uint8Array.from(escapes, escape => (escape?.length ?? 1) - 1)
