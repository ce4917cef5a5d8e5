/**
 * Puts a disk to work for a few seconds: writes a file in one go, then writes and syncs pieces of it again and again, as a
 * journal of recycled slots does. Main thread.
 *
 * Invariants: bounded in bytes and in time; the file is new, of this user alone, and gone at the end, also after an error
 * or an interrupt. Calls are synchronous, because the thread pool would add more to a sync than some take; between them
 * the loop runs, so that an interrupt is heard.
 */
import { randomBytes, randomFillSync } from 'node:crypto'
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { formatBytes } from '../../../base/amounts.ts'
import type { DiskFacts, DiskProbe, SpaceFacts, SyncTimes } from './facts.ts'

const PIECE_BYTES = 1024 ** 2
/** What is written in one go, and then over again: enough to leave small caches behind. */
const FILE_BYTES_MAX = 64 * PIECE_BYTES
const WRITE_MS_MAX = 2_000
/** One page, an ordinary group, a large one. */
const syncSizes = [4096, 256 * 1024, PIECE_BYTES]
const SYNCS_MAX = 200
const SYNC_MS_MAX = 1_000
/** A disk that is nearly full is left alone. */
const FREE_BYTES_MIN = 4 * FILE_BYTES_MAX

export interface ProbeLimits {
  readonly fileBytes: number
  readonly syncs: number
}

/** @param folder exists and can be written. @param signal ends the probe early. @throws the reason of an abort. */
export async function probeDisk(
  folder: string,
  { freeBytes }: Pick<SpaceFacts, 'freeBytes'>,
  signal: AbortSignal,
  limits: ProbeLimits = { fileBytes: FILE_BYTES_MAX, syncs: SYNCS_MAX }
): Promise<DiskFacts> {
  if (freeBytes < FREE_BYTES_MIN) return { skipped: `less than ${formatBytes(FREE_BYTES_MIN)} are free` }
  const path = join(folder, `doctor-${randomBytes(6).toString('hex')}.tmp`)
  try {
    const descriptor = openSync(path, 'wx', 0o600)
    try {
      return { probe: await work(descriptor, limits, signal) }
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    // What the disk or the user's rights refuse is a fact; an abort and a bug are none.
    if (!(error instanceof Error) || !('syscall' in error)) throw error
    return { skipped: error.message }
  } finally {
    rmSync(path, { force: true })
  }
}

async function work(descriptor: number, { fileBytes, syncs }: ProbeLimits, signal: AbortSignal): Promise<DiskProbe> {
  // Random, so that no layer gains from equal bytes.
  const bytes = randomFillSync(Buffer.alloc(PIECE_BYTES))
  const startMs = performance.now()
  let writtenBytes = 0
  while (writtenBytes < fileBytes && (writtenBytes === 0 || performance.now() - startMs < WRITE_MS_MAX)) {
    writtenBytes += writeSync(descriptor, bytes, 0, PIECE_BYTES, writtenBytes)
    await nextTurn(undefined, { signal })
  }
  fdatasyncSync(descriptor)
  const writeBytesPerSecond = (writtenBytes * 1000) / (performance.now() - startMs)
  const times: SyncTimes[] = []
  for (const size of syncSizes)
    times.push(await timeSyncs(descriptor, bytes.subarray(0, size), writtenBytes, { syncs, signal }))
  return { writtenBytes, writeBytesPerSecond, syncs: times }
}

/** Writes one piece behind the other over what is there, a sync after each. */
async function timeSyncs(
  descriptor: number,
  bytes: Buffer,
  fileBytes: number,
  { syncs, signal }: { readonly syncs: number; readonly signal: AbortSignal }
): Promise<SyncTimes> {
  const tookMs: number[] = []
  const endMs = performance.now() + SYNC_MS_MAX
  for (let at = 0; tookMs.length < syncs && (tookMs.length === 0 || performance.now() < endMs); at += bytes.length) {
    if (at + bytes.length > fileBytes) at = 0
    const startMs = performance.now()
    writeSync(descriptor, bytes, 0, bytes.length, at)
    fdatasyncSync(descriptor)
    tookMs.push(performance.now() - startMs)
    await nextTurn(undefined, { signal })
  }
  tookMs.sort((a, b) => a - b)
  const at = (share: number): number => tookMs[Math.min(tookMs.length - 1, Math.floor(tookMs.length * share))] ?? 0
  return { bytes: bytes.length, count: tookMs.length, p50Ms: at(0.5), p99Ms: at(0.99) }
}
