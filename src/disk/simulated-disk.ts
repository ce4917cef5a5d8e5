/**
 * A disk in memory that forgets what was not synced. For power-loss tests; any thread, one owner.
 *
 *   file content   durable ◀── sync ── unsynced writes, truncations      a power cut keeps an arbitrary part of them
 *   names          durable ◀── syncDirectory of a parent ── pending      a power cut keeps any subset that respects the
 *                                                                        order of changes to the same name
 *
 * Invariants: syncing a file does not make its name durable; syncing a directory does not make content durable; a
 * rename is seen whole or not at all. A direct file keeps its promises no better than others: what it wrote is not
 * durable before a sync either. A directory taken away may take with it what a lost rename moved out of it. After crash()
 * or killProcess() the old disk and its files refuse every call.
 * Not modelled: stale content of freed blocks, bit rot, links.
 */
import { basename, dirname } from 'node:path'
import { assert } from '../base/assert.ts'
import { DiskError } from './disk.ts'
import type { Disk, DiskFile } from './disk.ts'
import { faultError, refusesDirect } from './fault-plan.ts'
import type { Fault, FaultPlan } from './fault-plan.ts'
import type { FaultPoint } from './faults.ts'
import { SimulatedFileContent } from './simulated-file.ts'
import { SimulatedOpenFile, type FileOwner } from './simulated-open-file.ts'

interface DirectoryNode {
  readonly kind: 'directory'
  readonly current: Map<string, TreeNode>
  readonly durable: Map<string, TreeNode>
}
interface FileNode {
  readonly kind: 'file'
  readonly content: SimulatedFileContent
}
type TreeNode = DirectoryNode | FileNode

/** One name given a node, or (null) taken away. */
interface EntryChange {
  readonly directory: DirectoryNode
  readonly name: string
  readonly node: TreeNode | null
}
/** Entry changes that happen together: one for create and remove, two for rename. */
type NameChange = readonly EntryChange[]

export interface SimulatedDiskOptions {
  /** Directories that are there, durably, from the start; parents are made. Default: `/data`. */
  readonly directories?: readonly string[]
  /** Errors and short writes only; a plan that kills is refused. */
  readonly faults?: FaultPlan
  /** What freeBytes says; `setFreeBytes` changes it. Writes do not use it up. Default: 1 TiB. */
  readonly freeBytes?: number
  /** Negative control: sync of files does nothing, and says it did. */
  readonly ignoreSync?: boolean
  /** Negative control: syncDirectory does nothing, and says it did. */
  readonly ignoreDirectorySync?: boolean
}

export class SimulatedDisk implements Disk, FileOwner {
  #root: DirectoryNode = emptyDirectory()
  #pending: NameChange[] = []
  readonly #options: SimulatedDiskOptions
  #freeBytes: number
  #isGone = false

  constructor(options: SimulatedDiskOptions = {}) {
    assert(options.faults?.hasKills() !== true, 'a simulated disk cannot kill the process')
    this.#options = options
    this.#freeBytes = options.freeBytes ?? 1024 ** 4
    for (const path of options.directories ?? ['/data']) this.#makeDurableDirectory(path)
  }

  open(point: FaultPoint, path: string): DiskFile {
    this.#refuseIfStruck(point, path)
    return this.#opened(path, this.#existingFile(point, path), false)
  }

  create(point: FaultPoint, path: string): DiskFile {
    this.#refuseIfStruck(point, path)
    return this.#opened(path, this.#newFile(point, path), false)
  }

  openDirect(point: FaultPoint, path: string): DiskFile {
    const isDirect = this.#allowsDirect(point, path)
    return this.#opened(path, this.#existingFile(point, path), isDirect)
  }

  createDirect(point: FaultPoint, path: string): DiskFile {
    const isDirect = this.#allowsDirect(point, path)
    return this.#opened(path, this.#newFile(point, path), isDirect)
  }

  exists(path: string): boolean {
    return this.#find(path) !== undefined
  }

  sizeOf(path: string): number {
    return this.#existingFile('segment.open', path).content.current.sizeBytes
  }

  freeBytes(path: string): number {
    this.#refuseIfStruck('disk.free', path)
    this.#directory('disk.free', path)
    return this.#freeBytes
  }

  /** What freeBytes says from now on. */
  setFreeBytes(bytes: number): void {
    this.#freeBytes = bytes
  }

  list(path: string): string[] {
    return [...this.#directory('journal.directory', path).current.keys()].sort()
  }

  makeDirectory(point: FaultPoint, path: string): void {
    this.#refuseIfStruck(point, path)
    const directory = this.#parent(point, path)
    if (directory.current.has(basename(path))) throw refusal('EEXIST', point, path)
    this.#change([{ directory, name: basename(path), node: emptyDirectory() }])
  }

  rename(point: FaultPoint, from: string, to: string): void {
    this.#refuseIfStruck(point, from)
    const source = this.#parent(point, from)
    const target = this.#parent(point, to)
    const node = source.current.get(basename(from))
    if (node === undefined) throw refusal('ENOENT', point, from)
    if (source === target && basename(from) === basename(to)) return
    this.#change([
      { directory: source, name: basename(from), node: null },
      { directory: target, name: basename(to), node }
    ])
  }

  remove(point: FaultPoint, path: string): void {
    this.#refuseIfStruck(point, path)
    const directory = this.#parent(point, path)
    const node = directory.current.get(basename(path))
    if (node === undefined) throw refusal('ENOENT', point, path)
    if (node.kind === 'directory') throw refusal('EISDIR', point, path)
    this.#change([{ directory, name: basename(path), node: null }])
  }

  removeDirectory(point: FaultPoint, path: string): void {
    this.#refuseIfStruck(point, path)
    if (this.#directory(point, path).current.size > 0) throw refusal('ENOTEMPTY', point, path)
    this.#change([{ directory: this.#parent(point, path), name: basename(path), node: null }])
  }

  /** Makes durable every pending change of a name in the directory, and the earlier changes those build upon. */
  syncDirectory(point: FaultPoint, path: string): void {
    this.#refuseIfStruck(point, path)
    const directory = this.#directory(point, path)
    if (this.#options.ignoreDirectorySync === true) return
    const needed = new Set<NameChange>()
    for (const change of this.#pending.toReversed()) {
      const isNeeded = change.some(entry => entry.directory === directory) || [...needed].some(n => overlap(n, change))
      if (isNeeded) needed.add(change)
    }
    for (const change of this.#pending) if (needed.has(change)) applyTo('durable', change)
    this.#pending = this.#pending.filter(change => !needed.has(change))
  }

  /**
   * Cuts the power. This disk and its files refuse every call from now on.
   * @param random uniform in [0, 1); the same sequence gives the same disk.
   * @returns what a machine finds when it comes up again. Nothing on it is pending, no fault is armed.
   */
  crash(random: () => number): SimulatedDisk {
    this.#retire()
    const lost: NameChange[] = []
    for (const change of this.#pending) {
      if (lost.some(earlier => overlap(earlier, change)) || random() < 0.5) lost.push(change)
      else applyTo('durable', change)
    }
    const after = new SimulatedDisk({ ...this.#restartOptions(), directories: [] })
    after.#root = survivorOf(this.#root, random)
    return after
  }

  /**
   * Kills the process that used the disk: everything written is still there, in the page cache, and still not
   * durable. Files opened before refuse every call. @returns the disk for the next process; no fault is armed.
   */
  killProcess(): SimulatedDisk {
    this.#retire()
    const after = new SimulatedDisk({ ...this.#restartOptions(), directories: [] })
    after.#root = this.#root
    after.#pending = this.#pending
    return after
  }

  /** For its open files: counts the call and @returns the fault that strikes it. */
  strike(point: FaultPoint): Fault | null {
    assert(!this.#isGone, 'disk used after its crash')
    return this.#options.faults?.strike(point) ?? null
  }

  /** For its open files. */
  get ignoresSync(): boolean {
    return this.#options.ignoreSync === true
  }

  #restartOptions(): SimulatedDiskOptions {
    const { ignoreSync = false, ignoreDirectorySync = false } = this.#options
    return { ignoreSync, ignoreDirectorySync, freeBytes: this.#freeBytes }
  }

  #retire(): void {
    assert(!this.#isGone, 'disk used after its crash')
    this.#isGone = true
  }

  #refuseIfStruck(point: FaultPoint, path: string): void {
    const fault = this.strike(point)
    if (fault !== null && 'code' in fault) throw faultError(fault.code, point, path)
  }

  #opened(path: string, node: FileNode, isDirect: boolean): DiskFile {
    return new SimulatedOpenFile(this, path, node.content, isDirect)
  }

  /** @returns false if a fault plays a file system that has no direct files. @throws DiskError of any other fault. */
  #allowsDirect(point: FaultPoint, path: string): boolean {
    const fault = this.strike(point)
    if (refusesDirect(fault)) return false
    if (fault !== null && 'code' in fault) throw faultError(fault.code, point, path)
    return true
  }

  #existingFile(point: FaultPoint, path: string): FileNode {
    const node = this.#find(path)
    if (node === undefined) throw refusal('ENOENT', point, path)
    if (node.kind === 'directory') throw refusal('EISDIR', point, path)
    return node
  }

  #newFile(point: FaultPoint, path: string): FileNode {
    const directory = this.#parent(point, path)
    if (directory.current.has(basename(path))) throw refusal('EEXIST', point, path)
    const node: FileNode = { kind: 'file', content: new SimulatedFileContent() }
    this.#change([{ directory, name: basename(path), node }])
    return node
  }

  #change(change: NameChange): void {
    this.#pending.push(change)
    applyTo('current', change)
  }

  #makeDurableDirectory(path: string): void {
    let directory = this.#root
    for (const name of namesOf(path)) {
      let next = directory.current.get(name)
      if (next === undefined) {
        next = emptyDirectory()
        directory.current.set(name, next)
        directory.durable.set(name, next)
      }
      assert(next.kind === 'directory', 'a file stands where a directory is wanted')
      directory = next
    }
  }

  #find(path: string): TreeNode | undefined {
    assert(!this.#isGone, 'disk used after its crash')
    let node: TreeNode | undefined = this.#root
    for (const name of namesOf(path)) {
      if (node?.kind !== 'directory') return undefined
      node = node.current.get(name)
    }
    return node
  }

  #directory(point: FaultPoint, path: string): DirectoryNode {
    const node = this.#find(path)
    if (node === undefined) throw refusal('ENOENT', point, path)
    if (node.kind !== 'directory') throw refusal('ENOTDIR', point, path)
    return node
  }

  #parent(point: FaultPoint, path: string): DirectoryNode {
    return this.#directory(point, dirname(path))
  }
}

function emptyDirectory(): DirectoryNode {
  return { kind: 'directory', current: new Map(), durable: new Map() }
}

function namesOf(path: string): string[] {
  assert(path.startsWith('/'), 'paths are absolute')
  return path.split('/').filter(name => name !== '')
}

function refusal(code: string, point: FaultPoint, path: string): DiskError {
  return new DiskError(code, point, `${code} at ${point} of ${path}`)
}

function applyTo(layer: 'current' | 'durable', change: NameChange): void {
  for (const { directory, name, node } of change) {
    if (node === null) directory[layer].delete(name)
    else directory[layer].set(name, node)
  }
}

function overlap(a: NameChange, b: NameChange): boolean {
  return a.some(x => b.some(y => x.directory === y.directory && x.name === y.name))
}

/** The tree below a durable directory; what only pending names reach is gone. */
function survivorOf(directory: DirectoryNode, random: () => number): DirectoryNode {
  const survivor = emptyDirectory()
  for (const [name, node] of directory.durable) {
    const kept: TreeNode =
      node.kind === 'directory'
        ? survivorOf(node, random)
        : { kind: 'file', content: node.content.afterPowerCut(random) }
    survivor.current.set(name, kept)
    survivor.durable.set(name, kept)
  }
  return survivor
}
