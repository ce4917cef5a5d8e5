/**
 * A disk that cannot be changed: what the offline tools look at data files through. Main thread of the command line.
 * A call that would change something is a bug of the tool, and stops it before the disk hears of it.
 */
import { BugError } from '../../base/assert.ts'
import type { Disk, DiskFile } from '../../disk/disk.ts'

/** `disk` for reading only; its files too. Errors are those of `disk`. */
export function readOnly(disk: Disk): Disk {
  return {
    open: (point, path) => readOnlyFile(disk.open(point, path)),
    openDirect: (point, path) => readOnlyFile(disk.openDirect(point, path)),
    sizeOf: path => disk.sizeOf(path),
    freeBytes: path => disk.freeBytes(path),
    exists: path => disk.exists(path),
    list: path => disk.list(path),
    create: refuse,
    createDirect: refuse,
    makeDirectory: refuse,
    rename: refuse,
    remove: refuse,
    removeDirectory: refuse,
    syncDirectory: refuse
  }
}

function readOnlyFile(file: DiskFile): DiskFile {
  return {
    path: file.path,
    get isDirect() {
      return file.isDirect
    },
    read: (point, target, targetStart, length, position) => file.read(point, target, targetStart, length, position),
    sizeBytes: () => file.sizeBytes(),
    close: () => file.close(),
    write: refuse,
    writeLater: refuse,
    sync: refuse,
    syncLater: refuse,
    truncate: refuse
  }
}

function refuse(): never {
  throw new BugError('an offline tool changes nothing on disk')
}
