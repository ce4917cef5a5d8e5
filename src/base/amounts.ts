/**
 * Sizes, counts and times as people read them: `1.50 GiB`, `1.23 M`, `0.142`. Pure; any thread.
 */

/** Shown where there is no number. */
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
