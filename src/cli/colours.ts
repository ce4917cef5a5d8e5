/**
 * Colours, for people at a terminal only: never into a pipe or a file, not where NO_COLOR is set (no-color.org) and not on a
 * terminal that calls itself dumb.
 */
import { styleText } from 'node:util'
import type { CliIo } from './io.ts'

export type Colour = 'red' | 'green' | 'yellow' | 'bold' | 'dim'
/** Colours a text, or leaves it as it is. */
export type Paint = (colour: Colour, text: string) => string

const plain: Paint = (_, text) => text

/** How text on stdout is coloured. */
export function paintFor({ stdout, env }: Pick<CliIo, 'stdout' | 'env'>): Paint {
  const isWanted = stdout.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
  return isWanted ? (colour, text) => styleText(colour, text, { validateStream: false }) : plain
}
