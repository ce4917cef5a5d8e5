/**
 * Everybody who waits until a partition has something to read: those who wait for the same share one watch of the engine,
 * so a thousand readers at the end of a partition cost its owner one message. Main thread only; owns who waits.
 *
 *   submit ─▶ [partition, offset, bytes] ─▶ one engine watch ─▶ available: all of them hear, and ask anew
 *             the last one cancels ─▶ that watch ends        a topic or a key is gone ─▶ its waiters hear at once
 *
 * Invariants: a waiter hears once, never inside submit, never after its cancel. Callers run when the tables are right
 * again: they may submit and cancel from inside. A bug in one does not keep the others from hearing.
 */
import { BrokerError } from '../model/errors.ts'
import { handleOf } from '../model/handles.ts'
import { limits } from '../model/limits.ts'
import type { Principal } from '../model/principal.ts'
import type { Watch, WatchCaller } from '../model/requests.ts'
import type { Topic } from '../model/topic.ts'
import type { Engine, EngineWatch } from './engine.ts'

/** What all who wait for the same have. */
class SharedWatch implements WatchCaller {
  readonly key: string
  readonly topic: Topic
  readonly waiters = new Set<Waiter>()
  watch: Watch | null = null
  readonly #hub: WatchHub

  constructor(hub: WatchHub, key: string, topic: Topic) {
    this.#hub = hub
    this.key = key
    this.topic = topic
  }

  onAvailable(): void {
    this.#hub.finish(this, null)
  }

  onWatchFailed(error: BrokerError): void {
    this.#hub.finish(this, error)
  }
}

class Waiter implements Watch {
  readonly who: Principal
  readonly caller: WatchCaller
  readonly #hub: WatchHub
  /** null: it waits no more: it hears, or has cancelled. */
  shared: SharedWatch | null
  isCancelled = false

  constructor(hub: WatchHub, shared: SharedWatch, who: Principal, caller: WatchCaller) {
    this.#hub = hub
    this.shared = shared
    this.who = who
    this.caller = caller
  }

  cancel(): void {
    if (this.isCancelled) return
    this.isCancelled = true
    this.#hub.leave(this)
  }

  /** @param error null: there is something to read. */
  tell(error: BrokerError | null): void {
    if (this.isCancelled) return
    if (error === null) this.caller.onAvailable()
    else this.caller.onWatchFailed(error)
  }
}

export class WatchHub {
  readonly #engine: Pick<Engine, 'watch'>
  readonly #shared = new Map<string, SharedWatch>()
  #count = 0

  constructor(engine: Pick<Engine, 'watch'>) {
    this.#engine = engine
  }

  /** Callers that wait. */
  get count(): number {
    return this.#count
  }

  /** Waits for it. The caller hears OVERLOADED if too many do; else as WatchCaller says. */
  submit(who: Principal, wanted: EngineWatch, caller: WatchCaller): Watch {
    if (this.#count >= limits.watchesMax) {
      const details = { what: 'the number of reads and streams that wait', limit: limits.watchesMax }
      return refusedWatch(new BrokerError('OVERLOADED', details), caller)
    }
    const { topic, partition, offsetHigh, offsetLow, minBytes } = wanted
    const key = `${handleOf(topic, partition)}/${offsetHigh}/${offsetLow}/${minBytes}`
    let shared = this.#shared.get(key)
    if (shared === undefined) {
      shared = new SharedWatch(this, key, topic)
      shared.watch = this.#engine.watch(wanted, shared)
      this.#shared.set(key, shared)
    }
    const waiter = new Waiter(this, shared, who, caller)
    shared.waiters.add(waiter)
    this.#count++
    return waiter
  }

  /** The topic is deleted: its waiters hear TOPIC_NOT_FOUND, soon. @cost a look at every shared watch. */
  endTopic(topic: Topic): void {
    const waiters: Waiter[] = []
    for (const shared of [...this.#shared.values()])
      if (shared.topic.id === topic.id) waiters.push(...this.#takeAll(shared))
    tellSoon(waiters, new BrokerError('TOPIC_NOT_FOUND', { topic: topic.name }))
  }

  /** Keys were revoked: their waiters hear KEY_REVOKED, soon. @cost a look at everybody who waits. */
  endRevoked(): void {
    const waiters: Waiter[] = []
    for (const shared of [...this.#shared.values()])
      for (const waiter of [...shared.waiters]) if (waiter.who.isRevoked) waiters.push(waiter)
    for (const waiter of waiters) this.leave(waiter)
    tellSoon(waiters, new BrokerError('KEY_REVOKED'))
  }

  /** For a waiter: it waits no more. */
  leave(waiter: Waiter): void {
    const { shared } = waiter
    if (shared === null) return
    waiter.shared = null
    shared.waiters.delete(waiter)
    this.#count--
    if (shared.waiters.size > 0) return
    this.#shared.delete(shared.key)
    shared.watch?.cancel()
  }

  /** For a watch of the engine that has been answered. */
  finish(shared: SharedWatch, error: BrokerError | null): void {
    tellAll(this.#takeAll(shared), error)
  }

  /** Everybody who waits for the same, who do so no more. */
  #takeAll(shared: SharedWatch): Waiter[] {
    const waiters = [...shared.waiters]
    for (const waiter of waiters) this.leave(waiter)
    return waiters
  }
}

/** A watch that is refused: its caller hears soon, unless it cancels before. */
export function refusedWatch(error: BrokerError, caller: WatchCaller): Watch {
  let isCancelled = false
  queueMicrotask(() => {
    if (!isCancelled) caller.onWatchFailed(error)
  })
  return {
    cancel: () => {
      isCancelled = true
    }
  }
}

/** Not within the change that ends them: it must go through whatever a caller does. */
function tellSoon(waiters: readonly Waiter[], error: BrokerError): void {
  if (waiters.length > 0) queueMicrotask(() => tellAll(waiters, error))
}

function tellAll(waiters: readonly Waiter[], error: BrokerError | null): void {
  const bugs: unknown[] = []
  for (const waiter of waiters) {
    try {
      waiter.tell(error)
    } catch (bug) {
      // The others hear first; then it is thrown.
      bugs.push(bug)
    }
  }
  if (bugs.length > 0) throw bugs[0]
}
