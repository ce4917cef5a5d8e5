/**
 * Producers and tail readers at once: the window's figures are the producers', the readers' are extras.
 * Both sides share one Faults. Main thread of the generator.
 */
import type { Meter } from '../meter.ts'
import type { Faults } from './connections.ts'
import type { ConsumeLoad } from './consume-load.ts'
import type { Load } from './load.ts'
import type { ProduceLoad } from './produce-load.ts'

export class MixedLoad implements Load {
  readonly meter: Meter
  readonly faults: Faults
  readonly #producers: ProduceLoad
  readonly #readers: ConsumeLoad

  constructor(producers: ProduceLoad, readers: ConsumeLoad) {
    this.#producers = producers
    this.#readers = readers
    this.meter = producers.meter
    this.faults = producers.faults
  }

  get inFlight(): number {
    return this.#producers.inFlight + this.#readers.inFlight
  }

  openWindow(nowMs: number): void {
    this.#producers.openWindow(nowMs)
    this.#readers.openWindow(nowMs)
  }

  closeWindow(nowMs: number): void {
    this.#producers.closeWindow(nowMs)
    this.#readers.closeWindow(nowMs)
  }

  start(): void {
    this.#producers.start()
    this.#readers.start()
  }

  stop(): void {
    this.#producers.stop()
    this.#readers.stop()
  }

  close(): void {
    this.#producers.close()
    this.#readers.close()
  }

  extras(): Readonly<Record<string, number>> {
    return { ...this.#producers.extras(), ...this.#readers.extras() }
  }
}
