/** The data directory of a shard as bytes, all of it: taken from one disk, changed at will, put on a fresh one. */
import { dirname } from 'node:path'
import { DiskError, type Disk } from '../../src/disk/disk.ts'
import { SimulatedDisk } from '../../src/disk/simulated-disk.ts'

/** File contents by absolute path. */
export type DataTree = ReadonlyMap<string, Buffer>

/** Reads every file below `path` as the next process would see it. */
export function takeTree(disk: Disk, path = '/data'): DataTree {
  const tree = new Map<string, Buffer>()
  const walk = (directory: string): void => {
    for (const name of disk.list(directory)) {
      const below = `${directory}/${name}`
      if (isDirectory(disk, below)) walk(below)
      else tree.set(below, readWhole(disk, below))
    }
  }
  walk(path)
  return tree
}

function isDirectory(disk: Disk, path: string): boolean {
  try {
    disk.list(path)
    return true
  } catch (error) {
    if (error instanceof DiskError && error.code === 'ENOTDIR') return false
    throw error
  }
}

export function readWhole(disk: Disk, path: string): Buffer {
  const file = disk.open('segment.open', path)
  const bytes = Buffer.alloc(file.sizeBytes())
  file.read('segment.read', bytes, 0, bytes.length, 0)
  file.close()
  return bytes
}

/** A disk that durably holds the tree and nothing else. */
export function diskOfTree(tree: DataTree): SimulatedDisk {
  const directories = new Set([...tree.keys()].map(path => dirname(path)))
  const disk = new SimulatedDisk({ directories: ['/data', ...directories] })
  for (const [path, bytes] of tree) {
    const file = disk.create('segment.create', path)
    // A plain view, which the disk copies.
    file.write('segment.write', new Uint8Array(bytes), 0, bytes.length, 0)
    file.sync('segment.sync')
    file.close()
  }
  for (const directory of directories) disk.syncDirectory('segment.directory-sync', directory)
  return disk
}

/** The tree with one bit turned. */
export function withBitTurned(tree: DataTree, path: string, at: number, bit: number): DataTree {
  const bytes = Buffer.from(tree.get(path) ?? Buffer.alloc(0))
  bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
  return new Map(tree).set(path, bytes)
}

/** The tree without the files whose path matches. */
export function without(tree: DataTree, pattern: RegExp): DataTree {
  return new Map([...tree].filter(([path]) => !pattern.test(path)))
}
