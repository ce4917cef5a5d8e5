/**
 * The patterns of a JSON Schema as regular expressions. Pure; background thread: what one costs, its author decides.
 * ECMA-262 with the flag `u` is what the specification means. Many schemas in use have what that flag forbids, `[\w-.]` or
 * `\-`, because other validators read them without: those are read so.
 */

/** @throws SyntaxError that of the reading with `u`, if neither reading takes it. */
export function patternOf(pattern: string): RegExp {
  try {
    return new RegExp(pattern, 'u')
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    try {
      return new RegExp(pattern)
    } catch (plain) {
      if (!(plain instanceof SyntaxError)) throw plain
      throw error
    }
  }
}
