/**
 * Text ↔ values of the configuration: sizes, durations, whole numbers. Pure functions of any thread.
 * A reading never throws: a fault of the user is a sentence, so that all faults can be told at once.
 */

/** A value, or what is wrong with the text in words that follow the key: "is not a size: …". */
export type Reading<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string }

export function good<T>(value: T): Reading<T> {
  return { ok: true, value }
}

export function bad(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem }
}

const byteUnits: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40
}

/** Reads `67108864`, `64MiB` or `10MB` as bytes. A fraction is fine where it comes out whole: `1.5GiB`. */
export function parseBytes(text: string): Reading<number> {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim())
  const unit = byteUnits[match?.[2]?.toLowerCase() ?? '?']
  if (match === null || unit === undefined) return bad('is not a size: write bytes, or 64MiB, 10MB')
  const bytes = Number(match[1]) * unit
  if (!Number.isSafeInteger(bytes)) return bad('is not a whole number of bytes below 2^53')
  return good(bytes)
}

/** ms per unit, largest first: the order in which showDuration tries them. */
const durationUnits: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1]
]

/** Reads `150ms`, `10m`, `1h`, `7d` or `1h 30m` as milliseconds. A bare number is refused: nobody can tell its unit; `0` is 0. */
export function parseDuration(text: string): Reading<number> {
  const trimmed = text.trim().toLowerCase()
  if (trimmed === '0') return good(0)
  if (/^\d+$/.test(trimmed)) return bad(`has no unit: write ${trimmed}ms or ${trimmed}s`)
  if (!/^(?:\d+\s*(?:ms|s|m|h|d)\s*)+$/.test(trimmed)) return bad('is not a duration: write 150ms, 10m, 1h or 7d')
  let totalMs = 0
  for (const [, digits, unit] of trimmed.matchAll(/(\d+)\s*(ms|s|m|h|d)/g)) {
    totalMs += Number(digits) * (durationUnits.find(([name]) => name === unit)?.[1] ?? Number.NaN)
  }
  return Number.isSafeInteger(totalMs) ? good(totalMs) : bad('is too long')
}

/** Reads decimal digits, with a sign, exactly; nothing above 2^53−1. */
export function parseInteger(text: string): Reading<number> {
  const trimmed = text.trim()
  if (!/^[+-]?\d+$/.test(trimmed)) return bad('is not a whole number')
  const value = Number(trimmed)
  return Number.isSafeInteger(value) ? good(value) : bad('is beyond 2^53, where numbers stop being exact')
}

/** `64 MiB` where a binary unit divides the bytes, else the digits. */
export function showBytes(bytes: number): string {
  const units = ['KiB', 'MiB', 'GiB', 'TiB']
  let value = bytes
  let unit = 'B'
  for (const next of units) {
    if (value === 0 || value % 1024 !== 0) break
    value /= 1024
    unit = next
  }
  return `${value} ${unit}`
}

/** `10m`, `1h`: the largest unit that divides the duration. */
export function showDuration(ms: number): string {
  if (ms === 0) return '0ms'
  const [unit, size] = durationUnits.find(([, unitMs]) => ms % unitMs === 0) ?? ['ms', 1]
  return `${ms / size}${unit}`
}
