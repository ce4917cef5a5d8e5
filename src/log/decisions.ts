/**
 * What an operator decided to give up where recovery refuses to go on: groups that nothing can name any more, slots that
 * are missing, slot files whose header is gone. In `decisions.json` beside the slots; written by `millrace quarantine
 * skip` while no broker runs, read by every start and by the settler. It stays: a decision about slots that are settled
 * has no effect any more.
 *
 *   { "version": 1, "crc32c": <of the JSON text of decisions>, "decisions": [ … ] }
 *
 * Decisions remove nothing and name no records. They let offsets be missing: where the next run of a partition does not
 * begin at its next offset, what lies between is damaged (LossWatch).
 */
import { crc32c } from '../base/crc32c.ts'
import type { Disk } from '../disk/disk.ts'
import { replaceFile, unfinishedPath } from '../disk/replace-file.ts'
import { BrokerError } from '../model/errors.ts'
import { manifestPoints } from './manifest-file.ts'

const NAME = 'decisions.json'
const VERSION = 1

/** Files of a journal that are about decisions. */
export const decisionFileNames: readonly string[] = [NAME, unfinishedPath(NAME)]

interface Decided {
  /** The newest slot of the shard when it was decided, those given up included. */
  readonly newestSlot: number
  /** Unix ms. */
  readonly decidedMs: number
}

export type Decision = Decided &
  (
    | /** The group at that byte of that slot, and those behind it up to the next whole one. */
      { readonly action: 'skip-group'; readonly slot: number; readonly position: number }
      /** Slots, both included: they are not there, or are not read. */
    | { readonly action: 'skip-slots'; readonly firstSlot: number; readonly lastSlot: number }
    /** A slot file whose header cannot be read. It is neither read nor used again. */
    | { readonly action: 'skip-file'; readonly file: string }
  )

export class Decisions {
  readonly all: readonly Decision[]

  constructor(all: readonly Decision[]) {
    this.all = all
  }

  skipsGroup(slot: number, position: number): boolean {
    return this.positionsIn(slot).includes(position)
  }

  /** Where groups of that slot were given up, ascending. */
  positionsIn(slot: number): number[] {
    const positions = this.all.flatMap(decision =>
      decision.action === 'skip-group' && decision.slot === slot ? [decision.position] : []
    )
    return positions.sort((a, b) => a - b)
  }

  skipsSlot(sequence: number): boolean {
    return this.all.some(
      decision => decision.action === 'skip-slots' && decision.firstSlot <= sequence && sequence <= decision.lastSlot
    )
  }

  skipsFile(name: string): boolean {
    return this.all.some(decision => decision.action === 'skip-file' && decision.file === name)
  }

  /** The first slot from that sequence on that was not given up. */
  behind(sequence: number): number {
    let next = sequence
    while (this.skipsSlot(next)) next++
    return next
  }

  /** True if something was given up before that slot, or in it, which its entries may show: later ones were written since. */
  mayLackOffsets(sequence: number): boolean {
    return this.all.some(decision => firstSlotOf(decision) <= sequence && sequence <= decision.newestSlot + 1)
  }

  /** True if something was decided and no slot was begun since: then nobody was told yet that data is gone (V5). */
  isNews(newestFound: number): boolean {
    return this.all.some(({ newestSlot }) => newestFound <= newestSlot)
  }
}

/** The first slot whose entries may show it. */
function firstSlotOf(decision: Decision): number {
  switch (decision.action) {
    case 'skip-group':
      return decision.slot
    case 'skip-slots':
      return decision.firstSlot
    case 'skip-file':
      // The slots that it may have been are given up by decisions of their own.
      return Infinity
  }
}

/** Which offsets may be missing while entries are gone through in order, slot by slot. */
export class LossWatch {
  readonly #decisions: Decisions
  #slot: number
  /** Positions in the slot at hand that are still to come. */
  #positions: number[] = []
  #hasLost = false
  /** Partitions with a run behind the last loss: what follows must be continuous. */
  readonly #continued = new Set<number>()

  /** @param settledSequence the first slot follows it. */
  constructor(decisions: Decisions, settledSequence: number) {
    this.#decisions = decisions
    this.#slot = settledSequence
    // What was given up may be settled, while slots that show it are not.
    this.#hasLost = decisions.mayLackOffsets(settledSequence)
  }

  /** The entries of that slot come next. Its place in the chain was checked. */
  enterSlot(sequence: number): void {
    if (sequence > this.#slot + 1 || this.#positions.length > 0) this.#lose()
    this.#slot = sequence
    this.#positions = this.#decisions.positionsIn(sequence)
  }

  /** True if something of that partition may be missing before the entry at that byte of the slot. */
  explains(handle: number, position: number): boolean {
    while ((this.#positions[0] ?? Infinity) < position) {
      this.#positions.shift()
      this.#lose()
    }
    return this.#hasLost && !this.#continued.has(handle)
  }

  /** A run of that partition was taken in. */
  noteRun(handle: number): void {
    if (this.#hasLost) this.#continued.add(handle)
  }

  #lose(): void {
    this.#hasLost = true
    this.#continued.clear()
  }
}

/**
 * Those of a journal; none if nothing was ever decided.
 * @param directory of the shard's journal. @throws BrokerError NOT_READY if the file is not what was written; DiskError.
 */
export function readDecisions(disk: Disk, directory: string): Decisions {
  const path = `${directory}/${NAME}`
  if (!disk.exists(path)) return new Decisions([])
  const file = disk.open('manifest.read', path)
  try {
    const bytes = Buffer.alloc(file.sizeBytes())
    file.read('manifest.read', bytes, 0, bytes.length, 0)
    return new Decisions(parse(bytes.toString('utf8'), path))
  } finally {
    file.close()
  }
}

function parse(text: string, path: string): Decision[] {
  const refused = (problem: string): BrokerError => new BrokerError('NOT_READY', { problem: `${path} ${problem}` })
  let content: Readonly<Record<string, unknown>>
  try {
    content = Object(JSON.parse(text)) as Readonly<Record<string, unknown>>
  } catch (error) {
    if (error instanceof SyntaxError) throw refused('is no JSON')
    throw error
  }
  const { version, decisions } = content
  if (typeof version === 'number' && version > VERSION) throw refused('was written by a newer version')
  if (!Array.isArray(decisions) || content['crc32c'] !== checksumOf(decisions)) throw refused('is damaged')
  return decisions as Decision[]
}

/** Replaces the file; durable on return. A kill leaves the old or the new one. @throws DiskError */
export function writeDecisions(disk: Disk, directory: string, decisions: Decisions): void {
  const { all } = decisions
  const content = { version: VERSION, crc32c: checksumOf(all), decisions: all }
  const bytes = Buffer.from(`${JSON.stringify(content, null, 1)}\n`)
  replaceFile(disk, `${directory}/${NAME}`, bytes, manifestPoints)
}

function checksumOf(decisions: readonly unknown[]): number {
  const bytes = Buffer.from(JSON.stringify(decisions))
  return crc32c(bytes, 0, bytes.length)
}
