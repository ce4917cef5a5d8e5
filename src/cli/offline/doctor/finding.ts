/** What `doctor` says of one thing it looked at. Pure. */

/** ok: nothing to do. warn: it works, but not as well or as safely as it could. bad: put it right. unknown: nobody can tell. */
export type Level = 'ok' | 'warn' | 'bad' | 'unknown'

export interface Finding {
  readonly level: Level
  /** Of what, in one to three words. */
  readonly name: string
  /** What was found, in one line. */
  readonly seen: string
  /** What to change, in one sentence; null where nothing needs to be. */
  readonly change: string | null
}

export function ok(name: string, seen: string): Finding {
  return { level: 'ok', name, seen, change: null }
}

export function warn(name: string, seen: string, change: string): Finding {
  return { level: 'warn', name, seen, change }
}

export function bad(name: string, seen: string, change: string): Finding {
  return { level: 'bad', name, seen, change }
}

export function unknown(name: string, seen: string, change: string | null = null): Finding {
  return { level: 'unknown', name, seen, change }
}
