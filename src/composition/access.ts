/**
 * The keys of a data directory, and the first of them. Main thread.
 *
 *   auth required, no key at all ─▶ secret made ─▶ bootstrap.key written, synced ─▶ key committed
 *
 * Invariant: a key that counts has its secret in the file. A start that ends in between leaves a file whose secret is of no
 * key; the next one, which finds no key either, puts another in its place. Where there is any key, be it revoked, neither is made.
 */
import { systemClock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { KeyCommands } from '../broker/keys.ts'
import type { Settings } from '../config/settings.ts'
import { decideKey, KeyRing, makeKey } from '../control/keys.ts'
import { parseFaultPlan } from '../disk/fault-plan.ts'
import { createRealDisk } from '../disk/real-disk.ts'
import { replaceFile, type ReplacePoints } from '../disk/replace-file.ts'
import type { Store } from '../store/store.ts'
import { threadFaults } from './armed-faults.ts'

/** Name of the file in the data directory. Operators delete it once they have keys of their own. */
export const BOOTSTRAP_FILE = 'bootstrap.key'

const NO_ADMINISTRATOR =
  'no key that works is an administrator: stop the broker, then millrace key create with --data-dir makes one'

const points: ReplacePoints = {
  remove: 'bootstrap.remove',
  create: 'bootstrap.create',
  write: 'bootstrap.write',
  sync: 'bootstrap.sync',
  rename: 'bootstrap.rename',
  directorySync: 'bootstrap.directory-sync'
}

export interface AccessParts {
  readonly settings: Pick<Settings, 'auth'>
  readonly store: Store
  /** Absolute. */
  readonly dataDir: string
  readonly logger: Logger
  /** Called when keys have stopped working. */
  readonly onRevoked: () => void
}

/** The keys of the store; the first one is made where it is due. @throws DiskError, BrokerError of the store */
export async function openKeys(parts: AccessParts): Promise<KeyCommands> {
  const { settings, store } = parts
  const ring = new KeyRing(store.image)
  if (settings.auth === 'required') {
    if (ring.count === 0) await makeFirstKey(ring, parts)
    if (!ring.hasAdministrator) parts.logger.warn({ dataDir: parts.dataDir }, NO_ADMINISTRATOR)
  }
  return new KeyCommands({ ring, store, clock: systemClock, onRevoked: parts.onRevoked })
}

async function makeFirstKey(ring: KeyRing, { store, dataDir, logger }: AccessParts): Promise<void> {
  const request = {
    name: 'bootstrap-admin',
    rules: [{ action: 'admin', topicPrefix: '*' }],
    produceBytesPerSec: null,
    consumeBytesPerSec: null
  } as const
  const { key, secret } = await makeKey(decideKey(request, 0), () => false, systemClock.nowMs())
  const path = `${dataDir}/${BOOTSTRAP_FILE}`
  const faults = threadFaults(process.env['MILLRACE_FAULTS'], 'bootstrap')
  const disk = createRealDisk(faults === null ? undefined : parseFaultPlan(faults))
  replaceFile(disk, path, Buffer.from(secret), points)
  const change = { kind: 'key-created', key } as const
  await store.commit([change])
  ring.apply(change)
  logger.info({ keyId: key.keyId, path }, 'made the first key, an administrator: its secret is in the file')
}
