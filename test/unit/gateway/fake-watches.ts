/** Watches for tests of the gateways: they stand until the test answers them. */
import type { BrokerError } from '../../../src/model/errors.ts'
import type { Principal } from '../../../src/model/principal.ts'
import type { Watch, WatchCaller, WatchRequest } from '../../../src/model/requests.ts'

interface Standing {
  readonly who: Principal
  readonly request: WatchRequest
  readonly caller: WatchCaller
}

export class FakeWatches {
  readonly standing = new Set<Standing>()

  submit(who: Principal, request: WatchRequest, caller: WatchCaller): Watch {
    const one = { who, request, caller }
    this.standing.add(one)
    return { cancel: () => void this.standing.delete(one) }
  }

  /** What is waited for, in order. */
  get requests(): WatchRequest[] {
    return [...this.standing].map(({ request }) => request)
  }

  /** Everybody who waits hears. @param error null: there is something to read. */
  answer(error: BrokerError | null = null): void {
    const all = [...this.standing]
    this.standing.clear()
    for (const { caller } of all) {
      if (error === null) caller.onAvailable()
      else caller.onWatchFailed(error)
    }
  }
}
