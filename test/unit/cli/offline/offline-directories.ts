/**
 * Data directories for the tests of the offline tools: in memory over a journal image, or real ones in a temporary
 * folder with a store that names the topics of the journal.
 */
import { cpSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import type { DataDirectory } from '../../../../src/cli/offline/data-directory.ts'
import { PartitionNames } from '../../../../src/cli/offline/partition-names.ts'
import { readOnly } from '../../../../src/cli/offline/read-only-disk.ts'
import { planVerification, type Verification } from '../../../../src/cli/offline/verification.ts'
import { silentLogger } from '../../../../src/base/logger.ts'
import type { StoreImage } from '../../../../src/control/store-image.ts'
import { toTopicId } from '../../../../src/model/ids.ts'
import type { Topic } from '../../../../src/model/topic.ts'
import { openStore } from '../../../../src/store/store-client.ts'
import type { Disk } from '../../../../src/disk/disk.ts'
import { testDirectory } from '../../../support/log-harness.ts'
import { diskOf, type JournalImage } from '../../../support/log-image.ts'
import type { Tree } from '../../../support/settled-sample.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'
import { emptyImage } from '../../control/topics.ts'

/** A topic of the store. */
export function topicOf(id: number, name: string, firstHandle: number, partitionCount: number): Topic {
  return {
    id: toTopicId(id),
    name,
    firstHandle,
    partitionCount,
    config: {
      retention_ms: null,
      retention_bytes: null,
      cleanup_policy: 'delete',
      segment_bytes: 64 * 1024 * 1024,
      tombstone_retention_ms: 86_400_000,
      validate_schema: false,
      message_timestamp_type: 'CreateTime',
      max_message_bytes: null,
      segment_ms: null,
      partitioner: 'fnv1a'
    }
  }
}

/** A store with these topics, for one shard. */
export function imageOf(topics: readonly Topic[], rest: Partial<StoreImage> = {}): StoreImage {
  return {
    ...emptyImage,
    shardCount: 1,
    placementEpoch: 1,
    topics,
    nextTopicId: 100,
    nextHandle: 1000,
    ...rest
  }
}

/** A directory in memory whose shard 0 has that journal; whatever changes something on its disk throws. */
export function directoryOver(journal: JournalImage, image: StoreImage | null): DataDirectory {
  return directoryOn(readOnly(diskOf(journal)), image)
}

function directoryOn(disk: Disk, image: StoreImage | null): DataDirectory {
  return {
    path: '/data',
    disk,
    store: { image, problems: [], bytes: 0 },
    names: new PartitionNames(image),
    journals: [{ shard: 0, placementEpoch: 1, directory: testDirectory, label: 'journal/000' }],
    close: () => undefined
  }
}

/** Verifies a directory in memory. */
export function verify(journal: JournalImage, image: StoreImage | null): Verification {
  return planVerification(directoryOver(journal, image)).run(() => undefined)
}

/** Verifies what stands on a disk. @param repairs it may be written to. */
export function verifyDisk(disk: Disk, image: StoreImage | null, repairs = false): Verification {
  return planVerification(directoryOn(repairs ? disk : readOnly(disk), image), repairs).run(() => undefined)
}

/** A real data directory: the store with these topics, and shard 0 with the files of `journal`. */
export async function writeDirectory(
  t: TestContext,
  journal: JournalImage | string,
  topics: readonly Topic[],
  newestSlot = 0
): Promise<string> {
  const dataDir = temporaryDirectory(t)
  const store = await openStore({ dataDir, logger: silentLogger })
  await store.commit([
    { kind: 'placement', shardCount: 1, epoch: 1 },
    ...(newestSlot === 0 ? [] : [{ kind: 'slot-opened', shard: 0, sequence: newestSlot } as const]),
    ...topics.map(topic => ({ kind: 'topic-created', topic }) as const)
  ])
  await store.close()
  const folder = join(dataDir, 'journal', '000')
  mkdirSync(folder, { recursive: true })
  if (typeof journal === 'string') cpSync(journal, folder, { recursive: true, filter: path => !path.endsWith('.json') })
  else for (const [name, bytes] of journal) writeFileSync(join(folder, name), bytes)
  return dataDir
}

/** A real data directory: the store with these topics, and files by their path in it. */
export async function writeTree(t: TestContext, tree: Tree, topics: readonly Topic[]): Promise<string> {
  const dataDir = await writeDirectory(t, new Map(), topics)
  for (const [path, bytes] of tree) {
    mkdirSync(join(dataDir, dirname(path)), { recursive: true })
    writeFileSync(join(dataDir, path), bytes)
  }
  return dataDir
}

/** Path, size and time of change of every file but the lock's own; what must be the same before and after. */
export function snapshot(dataDir: string): readonly string[] {
  return readdirSync(dataDir, { recursive: true })
    .map(String)
    .filter(path => !/^lock\.(db|pid)$/.test(path))
    .sort()
    .map(path => {
      const { size, mtimeMs } = statSync(join(dataDir, path))
      return `${path} ${size} ${mtimeMs}`
    })
}
