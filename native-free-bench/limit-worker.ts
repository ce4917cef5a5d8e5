/**
 * The bare loop that everything else is compared to: write, fdatasync, again, on a file whose blocks were written
 * before. Runs in a worker thread of its own, blocking in the disk as a shard does; measures nothing else.
 */
import { closeSync, fdatasyncSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { Meter } from './meter.ts'
import type { WindowSums } from './meter.ts'

/** What the worker is asked for. */
export interface LimitTask {
  readonly path: string
  readonly fileBytes: number
  /** Bytes per write and sync. */
  readonly writeBytes: number
  readonly warmUpMs: number
  readonly windowMs: number
  /** True: make and fill the file, measure nothing. */
  readonly fill: boolean
}

/** Pieces of the filling. */
const FILL_BYTES = 4 * 1024 * 1024

/** Writes the whole file once with bytes other than zero and syncs it. */
export function fillFile(path: string, fileBytes: number): void {
  const fd = openSync(path, 'w', 0o600)
  try {
    const piece = Buffer.alloc(FILL_BYTES, 0x5a)
    for (let at = 0; at < fileBytes; at += piece.length) {
      writeWhole(fd, piece, Math.min(piece.length, fileBytes - at), at)
    }
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** The loop: every write lies wholly inside the file, from its start to its end and again. */
export function runLimit(task: LimitTask): WindowSums {
  const bytes = Buffer.alloc(task.writeBytes)
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 31 + 7) & 0xff
  const places = Math.max(1, Math.floor(task.fileBytes / task.writeBytes))
  const meter = new Meter()
  const fd = openSync(task.path, 'r+')
  try {
    const startMs = performance.now()
    for (let turn = 0; ; turn++) {
      const beforeMs = performance.now()
      if (!meter.isOpen && beforeMs >= startMs + task.warmUpMs) meter.open(beforeMs)
      writeWhole(fd, bytes, bytes.length, (turn % places) * task.writeBytes)
      fdatasyncSync(fd)
      const afterMs = performance.now()
      meter.count(afterMs, beforeMs, 1, bytes.length)
      if (meter.isOpen && meter.windowMs >= task.windowMs) {
        meter.close(afterMs)
        return meter.sums()
      }
    }
  } finally {
    closeSync(fd)
  }
}

function writeWhole(fd: number, bytes: Buffer, length: number, position: number): void {
  let done = 0
  while (done < length) done += writeSync(fd, bytes, done, length - done, position + done)
}

if (parentPort !== null) {
  const task: LimitTask = workerData
  if (task.fill) fillFile(task.path, task.fileBytes)
  parentPort.postMessage(task.fill ? null : runLimit(task))
}
