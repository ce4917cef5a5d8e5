/**
 * An open file of the simulated disk: checks what is asked of it, has the faults of its disk strike, and works on the
 * content, which outlives it. Any thread, one owner. Invariant: after close, or once its disk is gone, every call is a
 * bug of the caller.
 */
import { assert } from '../base/assert.ts'
import { assertDirect, halfWay } from './aligned-memory.ts'
import type { DiskFile } from './disk.ts'
import { faultError, refusesDirect } from './fault-plan.ts'
import type { Fault } from './fault-plan.ts'
import type { FaultPoint } from './faults.ts'
import type { SimulatedFileContent } from './simulated-file.ts'

/** What an open file needs of the disk it lies on. */
export interface FileOwner {
  /** Counts the call. @returns the fault that strikes it, or null. */
  strike(point: FaultPoint): Fault | null
  readonly ignoresSync: boolean
}

/** Made by SimulatedDisk alone. */
export class SimulatedOpenFile implements DiskFile {
  readonly path: string
  readonly #disk: FileOwner
  readonly #content: SimulatedFileContent
  #isDirect: boolean
  #isOpen = true

  constructor(disk: FileOwner, path: string, content: SimulatedFileContent, isDirect: boolean) {
    this.#disk = disk
    this.path = path
    this.#content = content
    this.#isDirect = isDirect
  }

  get isDirect(): boolean {
    return this.#isDirect
  }

  read(point: FaultPoint, target: Uint8Array, targetStart: number, length: number, position: number): number {
    assert(targetStart >= 0 && length >= 0 && targetStart + length <= target.length, 'read outside of its target')
    if (this.#isDirect) assertDirect(target, targetStart, length, position)
    const fault = this.#strikeDirect(point)
    if (fault !== null && 'code' in fault) throw faultError(fault.code, point, this.path)
    return this.#content.current.read(target, targetStart, length, position)
  }

  write(point: FaultPoint, source: Uint8Array, start: number, end: number, position: number): void {
    assert(start >= 0 && start <= end && end <= source.length, 'write outside of its source')
    if (this.#isDirect) assertDirect(source, start, end - start, position)
    const fault = this.#strikeDirect(point)
    if (fault === null) return this.#content.write(source, start, end, position)
    if (fault.kind === 'short') this.#content.write(source, start, halfWay(start, end, this.#isDirect), position)
    if ('code' in fault) throw faultError(fault.code, point, this.path)
  }

  writeLater(point: FaultPoint, source: Uint8Array, start: number, end: number, position: number): Promise<void> {
    return Promise.resolve().then(() => this.write(point, source, start, end, position))
  }

  sync(point: FaultPoint): void {
    const fault = this.#strike(point)
    if (fault !== null && 'code' in fault) {
      this.#content.failSync()
      throw faultError(fault.code, point, this.path)
    }
    if (!this.#disk.ignoresSync) this.#content.sync()
  }

  syncLater(point: FaultPoint): Promise<void> {
    return Promise.resolve().then(() => this.sync(point))
  }

  sizeBytes(): number {
    assert(this.#isOpen, 'file used after close')
    return this.#content.current.sizeBytes
  }

  truncate(point: FaultPoint, sizeBytes: number): void {
    this.#refuseIfStruck(point)
    this.#content.truncate(sizeBytes)
  }

  close(): void {
    assert(this.#isOpen, 'file used after close')
    this.#isOpen = false
  }

  #strike(point: FaultPoint): Fault | null {
    assert(this.#isOpen, 'file used after close')
    return this.#disk.strike(point)
  }

  /** The fault that strikes a read or a write; one that refuses a direct file makes it a buffered one instead. */
  #strikeDirect(point: FaultPoint): Fault | null {
    const fault = this.#strike(point)
    if (!this.#isDirect || !refusesDirect(fault)) return fault
    this.#isDirect = false
    return null
  }

  #refuseIfStruck(point: FaultPoint): void {
    const fault = this.#strike(point)
    if (fault !== null && 'code' in fault) throw faultError(fault.code, point, this.path)
  }
}
