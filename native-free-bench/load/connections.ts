/**
 * A set of connections of one protocol, and what may go wrong on them while a load runs: refusals are counted and the
 * first message kept, a lost connection ends the load. Main thread of the generator.
 */
import { connectEs01Driver, ES01_SLOTS_MAX } from '../drivers/es01.ts'
import { connectHttpDriver } from '../drivers/http.ts'
import type { Address, DriverConnection, DriverListener } from '../drivers/driver.ts'

export const protocols = ['es01', 'http'] as const
export type Protocol = (typeof protocols)[number]

/** Where a broker listens. `es01` is null when it has no such listener. */
export interface BrokerAddresses {
  readonly http: Address
  readonly es01: Address | null
}

/** Opens connections with `inFlight` slots each; over HTTP, where a connection has one slot, that many times more connections. */
export async function openConnections(
  protocol: Protocol,
  addresses: BrokerAddresses,
  shape: { readonly connections: number; readonly inFlight: number },
  listener: DriverListener
): Promise<DriverConnection[]> {
  const address = protocol === 'es01' ? addresses.es01 : addresses.http
  if (address === null) throw new Error('the broker has no ES01 listener: start it with --bind-binary')
  const opened: DriverConnection[] = []
  try {
    if (protocol === 'http') {
      for (let index = 0; index < shape.connections * shape.inFlight; index++) {
        opened.push(await connectHttpDriver({ address, index, slotCount: 1, listener }))
      }
    } else {
      const slotCount = Math.min(ES01_SLOTS_MAX, shape.inFlight)
      for (let index = 0; index < shape.connections; index++) {
        opened.push(await connectEs01Driver({ address, index, slotCount, listener }))
      }
    }
  } catch (error) {
    for (const connection of opened) connection.close()
    throw error
  }
  return opened
}

/** A load gives up after so many refusals: it measures a broker that works, not one that refuses. */
const REFUSALS_MAX = 1000

/** What went wrong during a load. */
export class Faults {
  refusals = 0
  /** The first refusal's message, or ''. */
  firstRefusal = ''
  /** Why the load ended early, or null. */
  fatal: Error | null = null

  /** Counts a refusal. */
  refuse(message: string): void {
    this.refusals++
    if (this.firstRefusal === '') this.firstRefusal = message
    if (this.refusals >= REFUSALS_MAX && this.fatal === null) {
      this.fatal = new Error(`the broker refused ${this.refusals} requests; the first: ${this.firstRefusal}`)
    }
  }

  lose(error: Error): void {
    this.fatal ??= new Error(`a connection was lost: ${error.message}`)
  }
}
