/**
 * Sizes as people write them in options: `2GiB`. Pure; any thread. Never guesses: a text that is not a size is an error
 * that says so.
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
