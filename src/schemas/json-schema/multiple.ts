/**
 * Whether a number is a multiple of another one, as the two are written in decimal: 4.35 is one of 0.01, though the
 * quotient of the binary fractions that stand for them is not whole. Pure, any thread.
 */

/** @param of above 0. @returns false if either is not finite. @cost two divisions of bigints where one is a fraction. */
export function isMultiple(value: number, of: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(of)) return value % of === 0
  if (!Number.isFinite(value) || !Number.isFinite(of)) return false
  const [dividend, divisor] = [decimalOf(value), decimalOf(of)]
  const exponent = Math.min(dividend.exponent, divisor.exponent)
  return scaled(dividend, exponent) % scaled(divisor, exponent) === 0n
}

/** digits × 10^exponent */
interface Decimal {
  readonly digits: bigint
  readonly exponent: number
}

/** The shortest decimal that is read as this number. */
function decimalOf(value: number): Decimal {
  const [mantissa = '', exponent = ''] = value.toExponential().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length }
}

/** In units of 10^exponent: of doubles, at most 650 digits. */
function scaled(decimal: Decimal, exponent: number): bigint {
  return decimal.digits * 10n ** BigInt(decimal.exponent - exponent)
}
