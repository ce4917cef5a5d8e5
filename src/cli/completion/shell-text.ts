/** Pieces that the scripts of several shells share. Pure. */
import type { CommandNode } from './command-tree.ts'

/** A text in single quotes, as POSIX shells and zsh read it. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** The place of a command: its words, each behind a space; empty for the program itself. */
export function placeOf({ path }: CommandNode): string {
  return path.map(word => ` ${word}`).join('')
}

/** The first sentence of a description, on one line. */
export function brief(text: string): string {
  return text.split(/[:;(\n]/, 1)[0]?.trim() ?? ''
}

/** Lines of a `case`: what a place has; places that have nothing are left out. */
export function caseLines(rows: readonly (readonly [label: string, text: string])[]): string {
  return rows
    .filter(([, text]) => text !== '')
    .map(([label, text]) => `    ${quote(label)}) ${text} ;;\n`)
    .join('')
}
