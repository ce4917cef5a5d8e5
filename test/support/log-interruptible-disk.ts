/**
 * A disk around another one that can stop the process in the middle of any call, or refuse calls. For the tests of the
 * log; any thread. Once stopped it stays so: code that catches the signal cannot reach the disk behind it any more.
 */
import { halfWay } from '../../src/disk/aligned-memory.ts'
import { DiskError, type Disk, type DiskFile } from '../../src/disk/disk.ts'
import { FaultPlan, faultError, refusesDirect } from '../../src/disk/fault-plan.ts'
import type { FaultPoint } from '../../src/disk/faults.ts'

/** The process ends here. Thrown through the code under test; nothing in src knows it. */
export class Interruption extends Error {
  override readonly name = 'Interruption'
}

/** One call that changes the disk, in order; `done` is false if it was refused or cut before it began. */
export interface TracedCall {
  readonly point: FaultPoint
  readonly path: string
  done: boolean
}

/** What a fault does in place of the call: half of a write; the same call on a buffered file. */
interface WhenStruck<T> {
  readonly short?: () => void
  readonly buffered?: () => T
}

export class InterruptibleDisk implements Disk {
  readonly #inner: Disk
  readonly #ignoredSyncs: ReadonlySet<FaultPoint>
  #callsLeft = Infinity
  #performsLast = false
  isStopped = false
  /** Errors and short writes by point. Syncs refused here leave what was written dirty, not lost. */
  readonly faults = new FaultPlan()
  readonly trace: TracedCall[] = []

  /** @param ignoredSyncs syncs at these points do nothing, and say they did: for negative controls. */
  constructor(inner: Disk, ignoredSyncs: readonly FaultPoint[] = []) {
    this.#inner = inner
    this.#ignoredSyncs = new Set(ignoredSyncs)
  }

  /** Stops the process at the n-th changing call from now, before it is done or (`performs`) right after. */
  stopAt(call: number, performs: boolean): void {
    this.#callsLeft = call
    this.#performsLast = performs
  }

  goOn(): void {
    this.#callsLeft = Infinity
  }

  open(point: FaultPoint, path: string): DiskFile {
    return this.#file(this.#step(point, path, () => this.#inner.open(point, path)))
  }

  create(point: FaultPoint, path: string): DiskFile {
    return this.#file(this.#step(point, path, () => this.#inner.create(point, path)))
  }

  /** As with the disks themselves, a fault EINVAL makes the file a buffered one. */
  openDirect(point: FaultPoint, path: string): DiskFile {
    const buffered = (): DiskFile => this.#inner.open(point, path)
    return this.#file(this.#step(point, path, () => this.#inner.openDirect(point, path), { buffered }))
  }

  createDirect(point: FaultPoint, path: string): DiskFile {
    const buffered = (): DiskFile => this.#inner.create(point, path)
    return this.#file(this.#step(point, path, () => this.#inner.createDirect(point, path), { buffered }))
  }

  sizeOf(path: string): number {
    this.#refuseIfStopped()
    return this.#inner.sizeOf(path)
  }

  freeBytes(path: string): number {
    this.#refuseIfStopped()
    return this.#inner.freeBytes(path)
  }

  exists(path: string): boolean {
    this.#refuseIfStopped()
    return this.#inner.exists(path)
  }

  list(path: string): string[] {
    this.#refuseIfStopped()
    return this.#inner.list(path)
  }

  makeDirectory(point: FaultPoint, path: string): void {
    this.#step(point, path, () => this.#inner.makeDirectory(point, path))
  }

  rename(point: FaultPoint, from: string, to: string): void {
    this.#step(point, from, () => this.#inner.rename(point, from, to))
  }

  remove(point: FaultPoint, path: string): void {
    this.#step(point, path, () => this.#inner.remove(point, path))
  }

  removeDirectory(point: FaultPoint, path: string): void {
    this.#step(point, path, () => this.#inner.removeDirectory(point, path))
  }

  syncDirectory(point: FaultPoint, path: string): void {
    this.#step(point, path, () => {
      if (!this.#ignoredSyncs.has(point)) this.#inner.syncDirectory(point, path)
    })
  }

  #file(opened: DiskFile): DiskFile {
    let inner = opened
    const { path } = inner
    const writeNow: DiskFile['write'] = (point, source, start, end, position) => {
      const write = (): void => inner.write(point, source, start, end, position)
      const short = (): void => inner.write(point, source, start, halfWay(start, end, inner.isDirect), position)
      const buffered = (): void => {
        inner.close()
        inner = this.#inner.open(point, path)
        write()
      }
      this.#step(point, path, write, inner.isDirect ? { short, buffered } : { short })
    }
    return {
      path,
      get isDirect() {
        return inner.isDirect
      },
      read: (point, target, targetStart, length, position) => {
        this.#refuseIfStopped()
        return inner.read(point, target, targetStart, length, position)
      },
      write: writeNow,
      writeLater: (...piece) => Promise.resolve().then(() => writeNow(...piece)),
      sync: point =>
        this.#step(point, path, () => {
          if (!this.#ignoredSyncs.has(point)) inner.sync(point)
        }),
      syncLater: point => inner.syncLater(point),
      sizeBytes: () => inner.sizeBytes(),
      truncate: (point, sizeBytes) => this.#step(point, path, () => inner.truncate(point, sizeBytes)),
      close: () => {
        if (!this.isStopped) inner.close()
      }
    }
  }

  #step<T>(point: FaultPoint, path: string, action: () => T, whenStruck: WhenStruck<T> = {}): T {
    this.#refuseIfStopped()
    const call: TracedCall = { point, path, done: false }
    this.trace.push(call)
    if (--this.#callsLeft <= 0) {
      if (this.#performsLast) call.done = this.#isDone(action)
      this.isStopped = true
      throw new Interruption(`stopped at ${point} of ${path}`)
    }
    const fault = this.faults.strike(point)
    const { short, buffered } = whenStruck
    const refused = refusesDirect(fault) ? buffered : undefined
    if (fault !== null && 'code' in fault && refused === undefined) {
      if (fault.kind === 'short') short?.()
      throw faultError(fault.code, point, path)
    }
    const result = (refused ?? action)()
    call.done = true
    return result
  }

  #isDone(action: () => unknown): boolean {
    try {
      action()
      return true
    } catch (error) {
      // The disk itself refused: then the stop comes before anyone hears of it.
      if (error instanceof DiskError) return false
      throw error
    }
  }

  #refuseIfStopped(): void {
    if (this.isStopped) throw new Interruption('the process has ended')
  }
}
