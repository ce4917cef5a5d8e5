/** Faults that a test arms in the threads of a broker, out of the environment variable MILLRACE_FAULTS. Main thread. */

/**
 * Faults armed by a test: `<shard>/<plan>` for the first incarnation of a shard, `<shard>+/<plan>` for each one, several
 * parted by `;` (disk/fault-plan). Calls are counted anew in each incarnation, so a plan meant to strike once must not
 * reach the next: the shard would die of it for ever.
 */
export function armedFaults(text: string | undefined): (shard: number, isFirst: boolean) => string | null {
  const first = new Map<number, string>()
  const each = new Map<number, string>()
  for (const item of (text ?? '').split(';').filter(part => /^\d+\+?\//.test(part))) {
    const slash = item.indexOf('/')
    const isForEach = item[slash - 1] === '+'
    const shard = Number(item.slice(0, isForEach ? slash - 1 : slash))
    ;(isForEach ? each : first).set(shard, item.slice(slash + 1))
  }
  return (shard, isFirst) => (isFirst ? first.get(shard) : undefined) ?? each.get(shard) ?? null
}

/**
 * `<thread>/<plan>`: faults of the settler thread in its first life, of a change of shards, of removing what it left, of
 * cold storage, of the file of the first key.
 */
export function threadFaults(
  text: string | undefined,
  thread: 'settler' | 'change' | 'remove' | 'cold' | 'bootstrap'
): string | null {
  const item = (text ?? '').split(';').find(part => part.startsWith(`${thread}/`))
  return item === undefined ? null : item.slice(thread.length + 1)
}
