/** The known word nearest to a misspelt one. Pure. */

/** Edits (insert, delete, replace, swap of neighbours) that lead from one word to the other. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const replaced = (last[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1)
      let best = Math.min(replaced, (last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1)
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (isSwap) best = Math.min(best, (beforeLast[column - 2] ?? 0) + 1)
      current.push(best)
    }
    beforeLast = last
    last = current
  }
  return last[to.length] ?? 0
}

/** Words compared: longer ones are no misspelling, and the comparison is quadratic. */
const WORD_LENGTH_MAX = 64

/** @returns the nearest of `known`, or null if none is near: at most two fifths of the longer word may differ. */
export function nearestOf(word: string, known: readonly string[]): string | null {
  if (word.length > WORD_LENGTH_MAX) return null
  let nearest: string | null = null
  let least = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance >= least || distance > Math.max(word.length, candidate.length) * 0.4) continue
    nearest = candidate
    least = distance
  }
  return nearest
}
