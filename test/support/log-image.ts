/**
 * A journal directory as bytes: taken from one disk, changed at will, put on a fresh one. For tests of damage.
 */
import { dirname } from 'node:path'
import type { Disk } from '../../src/disk/disk.ts'
import { SimulatedDisk } from '../../src/disk/simulated-disk.ts'
import { testDirectory } from './log-harness.ts'

/** File contents by name within the journal directory. */
export type JournalImage = ReadonlyMap<string, Buffer>

/** Reads every file of the journal as the next process would see it. */
export function takeImage(disk: Disk): JournalImage {
  return new Map(disk.list(testDirectory).map(name => [name, fileBytes(disk, name)]))
}

export function fileBytes(disk: Disk, name: string): Buffer {
  const file = disk.open('slot.open', `${testDirectory}/${name}`)
  const bytes = Buffer.alloc(file.sizeBytes())
  file.read('slot.read', bytes, 0, bytes.length, 0)
  file.close()
  return bytes
}

/** A disk that durably holds the image and nothing else. */
export function diskOf(image: JournalImage): SimulatedDisk {
  const disk = new SimulatedDisk({ directories: [testDirectory] })
  for (const [name, bytes] of image) {
    const file = disk.create('slot.create', `${testDirectory}/${name}`)
    // A plain view, which the disk copies.
    file.write('slot.fill', new Uint8Array(bytes), 0, bytes.length, 0)
    file.sync('slot.fill-sync')
    file.close()
  }
  disk.syncDirectory('journal.directory-sync', testDirectory)
  disk.syncDirectory('journal.directory-sync', dirname(testDirectory))
  return disk
}

/** The image with one file changed by `change`, which gets a copy of its bytes and returns what is to stand there. */
export function withChange(
  image: JournalImage,
  name: string,
  change: (bytes: Buffer) => Buffer | undefined
): JournalImage {
  const bytes = Buffer.from(image.get(name) ?? Buffer.alloc(0))
  return new Map(image).set(name, change(bytes) ?? bytes)
}

/** The image with one bit turned. */
export function withFlip(image: JournalImage, name: string, at: number, bit = 0): JournalImage {
  return withChange(image, name, bytes => {
    bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
    return bytes
  })
}
