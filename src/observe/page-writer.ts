/**
 * Lines of Prometheus' text format (version 0.0.4) into pieces of a page. Main thread: after so many lines the event loop
 * gets a turn, so that a page of very many holds nobody up.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SeriesSpec } from './series.ts'

/** Lines between two turns of the event loop: about a millisecond. */
const TURN_LINES = 2000

/** A label value as it stands between quotes. */
export function escapeLabel(value: string): string {
  return /["\\\n]/.test(value) ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n') : value
}

export class PageWriter {
  readonly #pieces: Buffer[] = []
  #text = ''
  #lines = 0

  /** What stands before the samples of a series, also if there are none. */
  head(name: string, { help, type }: SeriesSpec): void {
    const helpText = help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
    this.#text += `# HELP ${name} ${helpText}\n# TYPE ${name} ${type}\n`
  }

  /** One sample: its name with labels, and its value. @returns true: breathe() is due. */
  sample(nameAndLabels: string, value: number | bigint): boolean {
    this.#text += `${nameAndLabels} ${value === Infinity ? '+Inf' : String(value)}\n`
    return ++this.#lines >= TURN_LINES
  }

  /** Text that is in the format already, whole lines. */
  text(text: string): void {
    this.#text += text
  }

  /** Lets the event loop have a turn. */
  async breathe(): Promise<void> {
    this.#cut()
    await nextTurn()
  }

  /** The page. Nothing may be written afterwards. */
  finish(): readonly Buffer[] {
    this.#cut()
    return this.#pieces
  }

  #cut(): void {
    if (this.#text !== '') this.#pieces.push(Buffer.from(this.#text))
    this.#text = ''
    this.#lines = 0
  }
}
