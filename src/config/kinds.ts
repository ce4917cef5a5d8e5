/**
 * The kinds of setting: how each is read from a flag, an environment variable or a TOML value, how it is shown, and
 * what is allowed. Pure. A kind knows nothing of the setting that uses it.
 */
import { parseAddress } from './address.ts'
import { bad, good, parseBytes, parseDuration, parseInteger, showBytes, showDuration, type Reading } from './parse.ts'

/** What a source may hold. Flags and environment give strings (a list for repeated flags); TOML gives its own types. */
export type RawValue = string | number | bigint | boolean | readonly RawValue[]

export interface Kind<T> {
  readonly name: 'bytes' | 'duration' | 'integer' | 'choice' | 'boolean' | 'string' | 'address' | 'list'
  /** Placeholder of the flag's value in --help; empty for a boolean. */
  readonly placeholder: string
  /** Unit of the value in Settings, empty if it has none. */
  readonly unit: string
  /** The allowed range in words. */
  readonly allowed: string
  readonly min: number | null
  readonly max: number | null
  read(raw: RawValue): Reading<T>
  /** For people; never used to read it back. */
  show(value: T): string
}

interface NumberRange {
  readonly min: number
  readonly max: number
  readonly isPowerOfTwo?: true
  /** Smaller values become this one instead of a fault (spec §13, "0 → 1"). */
  readonly raisedTo?: number
}

function readNumber(raw: RawValue, range: NumberRange, parse: (text: string) => Reading<number>): Reading<number> {
  if (typeof raw !== 'string' && typeof raw !== 'number' && typeof raw !== 'bigint') return bad('is not a number')
  const reading = parse(String(raw))
  if (!reading.ok) return reading
  const isRaised = range.raisedTo !== undefined && reading.value >= 0 && reading.value < range.raisedTo
  const value = isRaised ? range.raisedTo : reading.value
  if (value < range.min || value > range.max) return bad('is out of range')
  if (range.isPowerOfTwo && !Number.isInteger(Math.log2(value))) return bad('is not a power of two')
  return good(value)
}

function numberKind(
  name: 'bytes' | 'duration' | 'integer',
  unit: string,
  range: NumberRange,
  parse: (text: string) => Reading<number>,
  show: (value: number) => string
): Kind<number> {
  const raised = range.raisedTo === undefined ? '' : ` (0 counts as ${range.raisedTo})`
  const allowed = `${show(range.min)} to ${show(range.max)}${range.isPowerOfTwo ? ', a power of two' : ''}${raised}`
  return {
    name,
    placeholder: name === 'integer' ? '<number>' : `<${name}>`,
    unit,
    allowed,
    min: range.min,
    max: range.max,
    read: raw => readNumber(raw, range, parse),
    show
  }
}

/** Sizes: an integer of bytes, or with a unit. */
export function bytes(range: NumberRange): Kind<number> {
  return numberKind('bytes', 'bytes', range, parseBytes, showBytes)
}

/** Times in milliseconds, written with their unit. */
export function duration(range: NumberRange): Kind<number> {
  return numberKind('duration', 'ms', range, parseDuration, showDuration)
}

/** Whole numbers. */
export function integer(range: NumberRange, unit = ''): Kind<number> {
  return numberKind('integer', unit, range, parseInteger, String)
}

/** One word of a closed list. */
export function choice<const Word extends string>(words: readonly Word[]): Kind<Word> {
  const allowed = words.join(', ')
  return {
    name: 'choice',
    placeholder: `<${words.join('|')}>`,
    unit: '',
    allowed,
    min: null,
    max: null,
    read: raw => {
      const word = words.find(candidate => candidate === raw)
      return word === undefined ? bad('is not a known word') : good(word)
    },
    show: word => word
  }
}

/** true or false; a flag without a value is true. */
export function toggle(): Kind<boolean> {
  return {
    name: 'boolean',
    placeholder: '',
    unit: '',
    allowed: 'true, false',
    min: null,
    max: null,
    read: raw => {
      if (raw === true || raw === 'true') return good(true)
      if (raw === false || raw === 'false') return good(false)
      return bad('is neither true nor false')
    },
    show: String
  }
}

/** Any text that is not empty. */
export function text(placeholder: string, allowed: string): Kind<string> {
  return {
    name: 'string',
    placeholder,
    unit: '',
    allowed,
    min: null,
    max: null,
    read: raw => (typeof raw === 'string' && raw !== '' ? good(raw) : bad(raw === '' ? 'is empty' : 'is not a string')),
    show: value => value
  }
}

/** `host:port`. The text is kept as written. */
export function address(): Kind<string> {
  return {
    ...text('<host:port>', 'host:port, port 0 to 65535; port 0 picks a free one'),
    name: 'address',
    read: raw => {
      if (typeof raw !== 'string') return bad('is not a string: write "host:port"')
      const parsed = parseAddress(raw)
      return parsed.ok ? good(raw.trim()) : parsed
    }
  }
}

/**
 * Several texts: a repeated flag, a comma-separated environment variable, a TOML array or one string.
 * @param faultOf what is wrong with one of them, in words that follow the key; null: nothing.
 */
export function list(
  placeholder: string,
  allowed: string,
  faultOf: (word: string) => string | null = () => null
): Kind<readonly string[]> {
  return {
    name: 'list',
    placeholder,
    unit: '',
    allowed: `${allowed}; several are possible`,
    min: null,
    max: null,
    read: raw => {
      const items = Array.isArray(raw) ? raw : [raw]
      const words: string[] = []
      for (const item of items) {
        if (typeof item !== 'string') return bad('is not a list of strings')
        words.push(...item.split(',').map(word => word.trim()))
      }
      if (words.includes('')) return bad('has an empty item')
      const fault = words.map(faultOf).find(problem => problem !== null)
      return fault === undefined || fault === null ? good(words) : bad(fault)
    },
    show: words => (words.length === 0 ? 'none' : words.join(', '))
  }
}

/** A kind that may also be absent. `word` is how absence is written and shown: `auto`, `off`, `none`. */
export function optional<T>(kind: Kind<T>, word: string): Kind<T | null> {
  return {
    ...kind,
    allowed: `${kind.allowed}, or ${word}`,
    read: raw => (raw === word ? good(null) : kind.read(raw)),
    show: value => (value === null ? word : kind.show(value))
  }
}
