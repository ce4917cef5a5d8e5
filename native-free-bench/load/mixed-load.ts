/**
 * Producers and something beside them, such as tail readers: the window's figures are the producers', the others' are
 * extras. Both sides share one Faults. Main thread of the generator.
 */
import type { Meter } from '../meter.ts'
import type { Faults } from './connections.ts'
import type { Load } from './load.ts'
import type { ProduceLoad } from './produce-load.ts'

export class MixedLoad implements Load {
  readonly meter: Meter
  readonly faults: Faults
  readonly #producers: ProduceLoad
  readonly #others: Load

  constructor(producers: ProduceLoad, others: Load) {
    this.#producers = producers
    this.#others = others
    this.meter = producers.meter
    this.faults = producers.faults
  }

  get inFlight(): number {
    return this.#producers.inFlight + this.#others.inFlight
  }

  openWindow(nowMs: number): void {
    this.#producers.openWindow(nowMs)
    this.#others.openWindow(nowMs)
  }

  closeWindow(nowMs: number): void {
    this.#producers.closeWindow(nowMs)
    this.#others.closeWindow(nowMs)
  }

  start(): void {
    this.#producers.start()
    this.#others.start()
  }

  stop(): void {
    this.#producers.stop()
    this.#others.stop()
  }

  close(): void {
    this.#producers.close()
    this.#others.close()
  }

  extras(): Readonly<Record<string, number>> {
    return { ...this.#producers.extras(), ...this.#others.extras() }
  }
}
