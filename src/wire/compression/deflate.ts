/** Compresses records again that compaction took others from. Pure, any thread. */
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { codecs } from './inflate.ts'

/** The codec that records of a batch with that one are compressed with again: gzip, which every client reads, if it is not ours. */
export function deflateCodec(codec: number): number {
  return codec === codecs.zstd ? codec : codecs.gzip
}

/** @param codec of deflateCodec. @returns the same bytes each time. @cost a pass over the bytes, many times that of inflating. */
export function deflate(codec: number, bytes: Buffer): Buffer {
  return codec === codecs.zstd ? zstdCompressSync(bytes) : gzipSync(bytes)
}
