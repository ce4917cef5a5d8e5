/**
 * Content of one file of the simulated disk: 4 KiB pages, made when something other than zero is written to them.
 * A slot of 64 MiB of zeros costs nothing. Test code in src because the disk contract lives here; any thread.
 *
 * Invariant: an absent page reads as zeros, and so does everything in a present page behind `sizeBytes`.
 */
const PAGE_BYTES = 4096
const zeroPage = new Uint8Array(PAGE_BYTES)

export class PageMap {
  readonly #pages: Map<number, Uint8Array> = new Map()
  sizeBytes = 0

  /** Pages held in memory, for tests of the cost. */
  get pageCount(): number {
    return this.#pages.size
  }

  copy(): PageMap {
    const result = new PageMap()
    result.sizeBytes = this.sizeBytes
    for (const [index, page] of this.#pages) result.#pages.set(index, page.slice())
    return result
  }

  /** @returns bytes read; fewer than `length` only at the end of the file. */
  read(target: Uint8Array, targetStart: number, length: number, position: number): number {
    const count = Math.max(0, Math.min(length, this.sizeBytes - position))
    for (let done = 0; done < count;) {
      const { index, within, bytes } = pieceAt(position + done, count - done)
      const page = this.#pages.get(index) ?? zeroPage
      target.set(page.subarray(within, within + bytes), targetStart + done)
      done += bytes
    }
    return count
  }

  /** Writes source[start, end) at `position`; the file grows as far as needed. */
  write(source: Uint8Array, start: number, end: number, position: number): void {
    for (let at = start; at < end;) {
      const { index, within, bytes } = pieceAt(position + at - start, end - at)
      this.#writePiece(index, within, source.subarray(at, at + bytes))
      at += bytes
    }
    this.sizeBytes = Math.max(this.sizeBytes, position + end - start)
  }

  /** Writes `length` zeros at `position`. @cost the pages that hold something there. */
  writeZeros(position: number, length: number): void {
    this.#clear(position, position + length)
    this.sizeBytes = Math.max(this.sizeBytes, position + length)
  }

  truncate(sizeBytes: number): void {
    if (sizeBytes < this.sizeBytes) this.#clear(sizeBytes, this.sizeBytes)
    this.sizeBytes = sizeBytes
  }

  #writePiece(index: number, within: number, piece: Uint8Array): void {
    const page = this.#pages.get(index)
    if (page !== undefined) {
      page.set(piece, within)
    } else if (!isZero(piece)) {
      const fresh = new Uint8Array(PAGE_BYTES)
      fresh.set(piece, within)
      this.#pages.set(index, fresh)
    }
  }

  #clear(start: number, end: number): void {
    const lastIndex = Math.ceil(end / PAGE_BYTES)
    const isSparse = this.#pages.size < lastIndex - Math.floor(start / PAGE_BYTES)
    const indexes = isSparse ? [...this.#pages.keys()] : pageIndexes(start, end)
    for (const index of indexes) {
      const pageStart = index * PAGE_BYTES
      const from = Math.max(start, pageStart)
      const to = Math.min(end, pageStart + PAGE_BYTES)
      if (to - from === PAGE_BYTES) this.#pages.delete(index)
      else if (from < to) this.#pages.get(index)?.fill(0, from - pageStart, to - pageStart)
    }
  }
}

/** True if all bytes are zero. */
export function isZero(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at += PAGE_BYTES) {
    const piece = bytes.subarray(at, at + PAGE_BYTES)
    if (Buffer.compare(piece, zeroPage.subarray(0, piece.length)) !== 0) return false
  }
  return true
}

function pieceAt(position: number, bytesLeft: number): { index: number; within: number; bytes: number } {
  const index = Math.floor(position / PAGE_BYTES)
  const within = position - index * PAGE_BYTES
  return { index, within, bytes: Math.min(bytesLeft, PAGE_BYTES - within) }
}

function pageIndexes(start: number, end: number): number[] {
  const first = Math.floor(start / PAGE_BYTES)
  return Array.from({ length: Math.max(0, Math.ceil(end / PAGE_BYTES) - first) }, (_, i) => first + i)
}
