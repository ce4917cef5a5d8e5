/** The records of compressed batches: one door to all codecs. Pure, any thread; from bytes that nobody vouches for. */
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { inflateLz4 } from './lz4.ts'
import { inflateSnappy } from './snappy.ts'

/** By their number in the attributes of a batch. */
export const codecs = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 } as const

/**
 * Inflates bytes[start, end).
 *
 * @param codec of the attributes, not 0. @param limitBytes of what comes out.
 * @returns memory of its own; null: the bytes cannot be decoded, or there would be more than the limit.
 * @cost a pass over what comes out, or as much as the limit, whichever is less.
 */
export function inflate(codec: number, bytes: Buffer, start: number, end: number, limitBytes: number): Buffer | null {
  if (codec === codecs.snappy) return inflateSnappy(bytes, start, end, limitBytes)
  if (codec === codecs.lz4) return inflateLz4(bytes, start, end, limitBytes)
  if (codec !== codecs.gzip && codec !== codecs.zstd) return null
  // A copy: zlib takes no memory that is shared between threads.
  const source = Buffer.from(bytes.subarray(start, end))
  const options = { maxOutputLength: limitBytes }
  try {
    return codec === codecs.gzip ? gunzipSync(source, options) : zstdDecompressSync(source, options)
  } catch (error) {
    if (isRefusal(error)) return null
    throw error
  }
}

/** ERR_BUFFER_TOO_LARGE for the limit; ZSTD_… and Z_… for what the decoders make of bad bytes. Lack of memory is a bug of ours. */
function isRefusal(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return code === 'ERR_BUFFER_TOO_LARGE' || /^(Z_(?!MEM)|ZSTD_(?!error_memory))/.test(code)
}
