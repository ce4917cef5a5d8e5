/**
 * One file of the simulated disk: what is on the platter, and what was written since the last sync.
 * Any thread. Invariant: `current` = `durable` with `unsynced` applied in order, always (but for changes a failed sync
 * has lost).
 */
import { isZero, PageMap } from './page-map.ts'

/** Disks write whole sectors: a torn write keeps or loses each of them. */
export const SECTOR_BYTES = 512

/** `bytes` null stands for `length` zeros: a slot filled with zeros must be cheap. */
type FileChange =
  | { readonly kind: 'write'; readonly position: number; readonly length: number; readonly bytes: Uint8Array | null }
  | { readonly kind: 'truncate'; readonly sizeBytes: number }

export class SimulatedFileContent {
  readonly current: PageMap
  #durable: PageMap
  #unsynced: FileChange[] = []
  /** Changes before this index were lost by a failed sync: the kernel holds them for clean and writes them no more. */
  #lostCount = 0

  constructor(durable: PageMap = new PageMap()) {
    this.#durable = durable
    this.current = durable.copy()
  }

  write(source: Uint8Array, start: number, end: number, position: number): void {
    if (start === end) return
    // A copy: `slice` of a Buffer would be a view of memory that its owner uses again.
    const bytes = Uint8Array.prototype.slice.call(source, start, end)
    const isAllZero = isZero(bytes)
    this.#unsynced.push({ kind: 'write', position, length: end - start, bytes: isAllZero ? null : bytes })
    if (isAllZero) this.current.writeZeros(position, end - start)
    else this.current.write(bytes, 0, bytes.length, position)
  }

  truncate(sizeBytes: number): void {
    this.#unsynced.push({ kind: 'truncate', sizeBytes })
    this.current.truncate(sizeBytes)
  }

  sync(): void {
    for (const change of this.#unsynced.slice(this.#lostCount)) applyWhole(this.#durable, change)
    this.#unsynced = []
    this.#lostCount = 0
  }

  /** What Linux does when a sync fails: a later one succeeds without having written these changes. */
  failSync(): void {
    this.#lostCount = this.#unsynced.length
  }

  /** The file after a power cut: of each unsynced change an arbitrary part. */
  afterPowerCut(random: () => number): SimulatedFileContent {
    const survived = this.#durable.copy()
    for (const change of this.#unsynced) applyTorn(survived, change, random)
    return new SimulatedFileContent(survived)
  }
}

function applyWhole(pages: PageMap, change: FileChange): void {
  if (change.kind === 'truncate') pages.truncate(change.sizeBytes)
  else if (change.bytes === null) pages.writeZeros(change.position, change.length)
  else pages.write(change.bytes, 0, change.length, change.position)
}

/**
 * A third of the writes is lost whole and a third kept whole, so that both clean outcomes stay likely for long writes;
 * the rest is torn sector by sector.
 */
function applyTorn(pages: PageMap, change: FileChange, random: () => number): void {
  const dice = random()
  if (dice < 1 / 3) return
  if (change.kind === 'truncate' || dice < 2 / 3) return applyWhole(pages, change)
  const end = change.position + change.length
  let start = change.position
  while (start < end) {
    const sectorEnd = Math.min(end, (Math.floor(start / SECTOR_BYTES) + 1) * SECTOR_BYTES)
    if (random() < 0.5) {
      if (change.bytes === null) pages.writeZeros(start, sectorEnd - start)
      else pages.write(change.bytes, start - change.position, sectorEnd - change.position, start)
    }
    start = sectorEnd
  }
}
