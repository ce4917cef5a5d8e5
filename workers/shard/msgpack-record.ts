/**
 * One record as MessagePack, into the buffer of an answer: the fields of its JSON, in that order. Shard thread only.
 * Written by hand rather than with msgpackr: it needs no object per record, key and value go over in one copy, and what
 * a record made of the answer is known at once, which is how an answer is kept below max_bytes.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { HeaderCursor } from '../../src/wire/batch/headers.ts'
import {
  MARK_BYTES_MAX,
  MSGPACK_ARRAY,
  MSGPACK_MAP,
  MSGPACK_NIL,
  writeMsgpackArray,
  writeMsgpackBin,
  writeMsgpackInt,
  writeMsgpackStr
} from '../../src/wire/primitives/msgpack-marks.ts'
import type { AnswerBuffer, AnsweredRecord } from './answer-buffer.ts'

/** A record beside key, value and headers: names, and the heads of up to six values. */
const RECORD_BYTES = 128
/** A header beside name and value. */
const HEADER_BYTES = 1 + 2 * MARK_BYTES_MAX
/** Most that U+FFFD makes of one byte that is no UTF-8. */
const TEXT_GROWTH = 3
const RECORD_FIELDS = 5

const headers = new HeaderCursor()

/** Writes a record: key nil or bin, value bin, headers, if it has any, pairs of str and bin or nil. */
export function writeMsgpackRecord(out: AnswerBuffer, record: AnsweredRecord): void {
  out.reserve(RECORD_BYTES + record.payloadBytes + record.headerBytes * TEXT_GROWTH + record.headerCount * HEADER_BYTES)
  out.byte(MSGPACK_MAP | (record.headerCount > 0 ? RECORD_FIELDS + 1 : RECORD_FIELDS))
  writeIntField(out, 'partition', record.partition)
  writeIntField(out, 'offset', record.offset)
  writeIntField(out, 'timestamp_ms', record.timestampMs)
  writeMsgpackName(out, 'key')
  writeBin(out, record.bytes, record.keyStart, record.keyLength)
  writeMsgpackName(out, 'value')
  writeBin(out, record.bytes, record.valueStart, Math.max(0, record.valueLength))
  if (record.headerCount > 0) writeHeaders(out, record)
}

/** The name of a field: up to 31 ASCII characters. */
export function writeMsgpackName(out: AnswerBuffer, name: string): void {
  out.length = writeMsgpackStr(out.bytes, out.length, name.length)
  out.text(name)
}

/** A field whose value is an exact integer. */
export function writeIntField(out: AnswerBuffer, name: string, value: number): void {
  writeMsgpackName(out, name)
  out.length = writeMsgpackInt(out.bytes, out.length, value)
}

function writeHeaders(out: AnswerBuffer, record: AnsweredRecord): void {
  writeMsgpackName(out, 'headers')
  out.length = writeMsgpackArray(out.bytes, out.length, record.headerCount)
  headers.open(record.bytes, record.headersStart, record.headersEnd, record.headerCount)
  while (headers.next()) {
    out.byte(MSGPACK_ARRAY | 2)
    writeText(out, record.bytes, headers.nameStart, headers.nameStart + headers.nameLength)
    writeBin(out, record.bytes, headers.valueStart, headers.valueLength)
  }
}

/** @param length −1: nil. */
function writeBin(out: AnswerBuffer, bytes: Buffer, start: number, length: number): void {
  if (length < 0) {
    out.byte(MSGPACK_NIL)
    return
  }
  out.length = writeMsgpackBin(out.bytes, out.length, length)
  out.copy(bytes, start, start + length)
}

/** A str must be UTF-8: what is none becomes U+FFFD, as in JSON. */
function writeText(out: AnswerBuffer, bytes: Buffer, start: number, end: number): void {
  const text = bytes.subarray(start, end)
  const valid = isAscii(text) || isUtf8(text) ? text : Buffer.from(text.toString('utf8'), 'utf8')
  out.length = writeMsgpackStr(out.bytes, out.length, valid.length)
  out.copy(valid, 0, valid.length)
}
