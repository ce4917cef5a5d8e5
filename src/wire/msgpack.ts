/**
 * msgpackr behind two functions, for what is not hot: control-lane messages, details of errors, events.
 * The `pack` build reaches no native addon.
 */
import { Packr } from 'msgpackr/pack'

const packr = new Packr({ useRecords: false, int64AsType: 'auto', mapsAsObjects: true })

/** Bytes of a plain value; a fresh buffer, the caller's. */
export function packMessage(value: unknown): Buffer {
  return packr.pack(value)
}

/** The plain value of bytes[start, end), which may lie in shared memory. Throws on malformed bytes. */
export function unpackMessage(bytes: Buffer, start: number, end: number): unknown {
  // Copied out of the ring first: msgpackr decodes strings with calls that refuse shared memory.
  return packr.unpack(Buffer.from(bytes.subarray(start, end)))
}
