/**
 * Rows of text under each other, for people. Pure. Two forms: a table with a head, and words `name=value` that stand in
 * columns, so that each still says by itself what it is. Widths count characters.
 */

export interface Column {
  readonly head: string
  /** Numbers stand at the right. */
  readonly isNumber?: boolean
}

/** A cell that is coloured after its width is known. */
export interface Cell {
  readonly text: string
  readonly paint?: (text: string) => string
}

const GAP = '  '

/** A head and rows; each row has a cell for each column. @returns lines without spaces at their ends. */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly (Cell | string)[])[],
  paintHead: (text: string) => string = text => text
): string[] {
  const cells = rows.map(row => row.map(cell => (typeof cell === 'string' ? { text: cell } : cell)))
  const widths = columns.map(({ head }, i) => Math.max(head.length, ...cells.map(row => row[i]?.text.length ?? 0)))
  const pad = (text: string, i: number): string => {
    const width = widths[i] ?? 0
    if (columns[i]?.isNumber === true) return text.padStart(width)
    return i === columns.length - 1 ? text : text.padEnd(width)
  }
  const head = columns.map((column, i) => pad(column.head, i)).join(GAP)
  const lines = cells.map(row => {
    return row.map(({ text, paint }, i) => pad(text, i).replace(text, () => paint?.(text) ?? text)).join(GAP)
  })
  return [paintHead(head), ...lines].map(line => line.trimEnd())
}

/** Lines of words, the first words of all under each other, and so on. One line alone stays as it is. */
export function alignWords(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) {
    for (const [i, word] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, word.length)
  }
  return rows.map(row => {
    return row
      .map((word, i) => word.padEnd(widths[i] ?? 0))
      .join(' ')
      .trimEnd()
  })
}
