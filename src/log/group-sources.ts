/**
 * The buffers in which the records of a group lie until it is encoded. Hot; shard thread only.
 * Borrowed from gather to encode; clear() lets go of all of them.
 */
export class GroupSources {
  readonly buffers: Buffer[] = []
  /** The same bytes: one load for a number, where a Buffer takes four. */
  readonly #views: DataView[] = []

  /** The place of a buffer in here; requests that come one after the other from one buffer share it. */
  indexOf(source: Buffer): number {
    const last = this.buffers.length - 1
    if (last >= 0 && this.buffers[last] === source) return last
    this.buffers.push(source)
    this.#views.push(new DataView(source.buffer, source.byteOffset, source.length))
    return last + 1
  }

  view(index: number): DataView {
    return this.#views[index] as DataView
  }

  clear(): void {
    this.buffers.length = 0
    this.#views.length = 0
  }
}
