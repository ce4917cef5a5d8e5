/**
 * Sizes and numbers as people write and read them: `2GiB` in options, `1.23 M` in tables.
 * Pure; any thread. Never guesses: a text that is not a size is an error that says so.
 */

const factors: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KIB: 1024,
  MIB: 1024 ** 2,
  GIB: 1024 ** 3
}

/** Bytes of `4096`, `1MiB`, `1.5 GB`. @throws Error naming the text. */
export function parseBytes(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim())
  const factor = match === null ? undefined : factors[(match[2] ?? '').toUpperCase()]
  if (match === null || factor === undefined)
    throw new Error(`'${text}' is not a size: write 4096, 64KiB, 1MiB or 2GiB`)
  const bytes = Number(match[1]) * factor
  if (!Number.isSafeInteger(Math.round(bytes))) throw new Error(`'${text}' is too large`)
  return Math.round(bytes)
}

/** Shown where there is no number: a case that failed in every round. */
const NOTHING = '–'

/** `1.50 GiB`, `12.0 MiB`, `512 B`. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return NOTHING
  if (bytes >= 1024 ** 3) return `${(bytes / 1024 ** 3).toFixed(2)} GiB`
  if (bytes >= 1024 ** 2) return `${(bytes / 1024 ** 2).toFixed(1)} MiB`
  if (bytes >= 1024) return `${(bytes / 1024).toFixed(1)} KiB`
  return `${Math.round(bytes)} B`
}

/** `2.34 M`, `12.3 k`, `999`: a rate or a count in three or four digits. */
export function formatCount(count: number): string {
  if (!Number.isFinite(count)) return NOTHING
  if (count >= 1e6) return `${(count / 1e6).toFixed(2)} M`
  if (count >= 1e4) return `${(count / 1e3).toFixed(1)} k`
  return String(Math.round(count))
}

/** Milliseconds with as many decimals as matter: `0.142`, `8.31`, `104`. */
export function formatMs(ms: number): string {
  if (!Number.isFinite(ms)) return NOTHING
  if (ms >= 100) return ms.toFixed(0)
  return ms >= 1 ? ms.toFixed(2) : ms.toFixed(3)
}
