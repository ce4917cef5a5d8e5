/**
 * From settings to a store. The thread that opens a store uses it. The AWS SDK is loaded only if a bucket is
 * configured: it costs start-up time and memory that most brokers need not pay.
 */
import { resolve } from 'node:path'
import type { Disk } from '../disk/disk.ts'
import { parseBucketAddress, parseEndpoint } from './cold-settings.ts'
import { createDirectoryStore } from './directory-store.ts'
import type { ObjectStore } from './object-store.ts'

/** The settings of the same names. At most one of the first two is set. */
export interface ColdStorageSettings {
  readonly coldStorageDir: string | null
  /** `s3://bucket/prefix`. Credentials come from where the AWS SDK looks for them, never from our settings. */
  readonly coldStorage: string | null
  readonly coldStorageEndpoint: string | null
  readonly coldStorageRegion: string
  readonly coldStoragePathStyle: boolean
}

/**
 * The store that the settings name, or null if they name none. Nothing is read, written or sent yet: call sweep()
 * once, before the first put, and do not let its failure stop a start.
 *
 * @param disk for the objects of a directory, and for the local files of both kinds.
 * @throws ColdError `refused` if a setting is not of its form.
 */
export async function openColdStore(settings: ColdStorageSettings, disk: Disk): Promise<ObjectStore | null> {
  const { coldStorageDir, coldStorage, coldStorageEndpoint } = settings
  if (coldStorageDir !== null) return createDirectoryStore({ disk, directory: resolve(coldStorageDir) })
  if (coldStorage === null) return null
  const address = parseBucketAddress(coldStorage)
  const endpoint = coldStorageEndpoint === null ? null : parseEndpoint(coldStorageEndpoint)
  const { createS3Store } = await import('./s3-store.ts')
  return createS3Store({
    ...address,
    disk,
    endpoint,
    region: settings.coldStorageRegion,
    pathStyle: settings.coldStoragePathStyle,
    credentials: null
  })
}
