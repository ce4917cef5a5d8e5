/**
 * The alternate screen of a terminal: what was there before is there again when it closes, however that comes. Lines are cut
 * to its width, and to its height. Main thread.
 */
import type { Paint } from '../colours.ts'
import { print, type TextOutput } from '../io.ts'
import type { ScreenLine } from './format-top.ts'

const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const CLEAR_LINE = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'

/** Of a terminal that does not say, or says 0 as one on a serial line does. */
const usual = { rows: 24, columns: 80 }

export class Screen {
  readonly #output: TextOutput & { readonly rows?: number; readonly columns?: number }
  readonly #paint: Paint

  constructor(output: TextOutput, paint: Paint) {
    this.#output = output
    this.#paint = paint
  }

  async open(): Promise<void> {
    await print(this.#output, ENTER)
  }

  async draw(lines: readonly ScreenLine[]): Promise<void> {
    const rows = this.#output.rows || usual.rows
    const columns = this.#output.columns || usual.columns
    const shown = lines.slice(0, rows - 1).map(({ text, colour }) => {
      const cut = text.slice(0, columns)
      return `${colour === undefined ? cut : this.#paint(colour, cut)}${CLEAR_LINE}\n`
    })
    await print(this.#output, `${HOME}${shown.join('')}${CLEAR_BELOW}`)
  }

  async close(): Promise<void> {
    await print(this.#output, LEAVE)
  }
}
