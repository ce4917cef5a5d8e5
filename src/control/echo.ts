/** A caller's value in the text of an error. Pure. */

/** Characters of it that are repeated: a caller's megabyte is not worth sending back. */
const ECHO_CHARACTERS_MAX = 100

/** The value, cut where it is long. */
export function echo(value: string): string {
  return value.length <= ECHO_CHARACTERS_MAX ? value : `${value.slice(0, ECHO_CHARACTERS_MAX)}…`
}
