/** A simulated disk whose device does not read some bytes: EIO, for a while or for good. For tests; any thread. */
import { DiskError, type DiskFile } from '../../src/disk/disk.ts'
import type { FaultPoint } from '../../src/disk/faults.ts'
import { SimulatedDisk } from '../../src/disk/simulated-disk.ts'

/** Bytes [start, end) of a file. */
export interface BadSector {
  readonly path: string
  readonly start: number
  readonly end: number
}

export class BadSectorDisk extends SimulatedDisk {
  readonly bad: BadSector[] = []
  /** So many reads of bad sectors fail; then they can be read. */
  failuresLeft = Infinity
  failures = 0

  override open(point: FaultPoint, path: string): DiskFile {
    const file = super.open(point, path)
    const read = file.read.bind(file)
    file.read = (readPoint, target, targetStart, length, position) => {
      const isBad = this.bad.some(
        sector => sector.path === path && sector.start < position + length && sector.end > position
      )
      if (isBad && this.failuresLeft > 0) {
        this.failuresLeft--
        this.failures++
        throw new DiskError('EIO', readPoint, `EIO at ${readPoint} of ${path}`)
      }
      return read(readPoint, target, targetStart, length, position)
    }
    return file
  }
}
