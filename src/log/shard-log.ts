/**
 * The log of one shard: opens it by the recovery rules, appends groups, reads. Composes the parts of this folder.
 * Shard thread only. Knows no threads, rings or sockets; every failure of the disk comes out as DiskError.
 */
import { assert } from '../base/assert.ts'
import type { Clock } from '../base/clock.ts'
import type { Disk, DiskError } from '../disk/disk.ts'
import type { RecoveryReport } from '../wire/shard/messages.ts'
import { readDecisions } from './decisions.ts'
import { EncodeBuffer } from './encode-buffer.ts'
import { writeEntryGroup } from './entry-group.ts'
import { GroupEncoder } from './group-encoder.ts'
import { DirectoryEntry, ENTRY_BYTES, GROUP_HEADER_BYTES, entryKinds, groupBytes } from './group-format.ts'
import { makeJournalDirectory } from './journal-directory.ts'
import { Journal } from './journal.ts'
import { LogReader, ReadWindow } from './log-reader.ts'
import { LogTable } from './log-table.ts'
import { hasPacksAlone } from './lost-manifest.ts'
import { checkPlacement, loadManifest, requireManifest } from './manifest-file.ts'
import type { ManifestPartition } from './manifest.ts'
import type { PartitionLog } from './partition-log.ts'
import { findSlots, type ScanListener } from './recovery.ts'
import { replay } from './replay.ts'
import type { SealedSlot } from './sealed-slots.ts'
import { SegmentFiles } from './segment-files.ts'
import { SettledWindow } from './settled-window.ts'
import { SlotFiles, fillSlot } from './slot-files.ts'
import { repairTail } from './tail-repair.ts'

export interface ShardLogOptions {
  readonly disk: Disk
  /** Of the journal. Absolute; made if it is not there. */
  readonly directory: string
  /** Absolute: what paths in the manifest are relative to. */
  readonly dataDirectory: string
  /** Handles of segment and pack files kept open for reading. */
  readonly openFilesMax: number
  readonly shard: number
  readonly placementEpoch: number
  /** True: its manifest was committed when the directory was made, so one that is missing is damage. */
  readonly hasManifest?: boolean
  /** Sequence of the newest slot known to have been durable; 0: none is known of. Fewer found is damage (V2). */
  readonly newestSlot: number
  readonly slotBytes: number
  readonly firstSlotBytes: number
  readonly encodeBufferBytes: number
  /** Memory for the encode buffer that a second thread can write groups from; absent: this thread alone writes. */
  readonly encodeMemory?: SharedArrayBuffer
  readonly clock: Clock
  readonly drawSalt: () => Buffer
  /** Hears how far the scan at the opening has come. */
  readonly onScan?: ScanListener
}

/** A start offset to be. */
export interface StartMove {
  readonly log: PartitionLog
  /** At least the present one, at most the high watermark. */
  readonly offset: number
}

/** A group that another thread is to write and sync: bytes [start, end) of the encode memory. */
export interface GroupToWrite {
  readonly slotName: string
  readonly start: number
  readonly end: number
  /** In the slot. */
  readonly position: number
}

/** A group whose write and sync are another thread's for the moment. */
interface HandedOver {
  readonly encoder: GroupEncoder
  readonly ordinal: number
  readonly position: number
  /** In the encode buffer, endless count. */
  readonly place: number
}

export class ShardLog {
  readonly table = new LogTable()
  /** Takes the records of the next group. */
  encoder = new GroupEncoder()
  readonly files: SlotFiles
  readonly segments: SegmentFiles
  readonly window: ReadWindow
  readonly report: RecoveryReport
  readonly #journal: Journal
  readonly #encoded: EncodeBuffer
  readonly #clock: Clock
  readonly #slotBytes: number
  /** Receive time of the newest group; never falls (W8). */
  #receiveMs: number
  /** The encoder that is not `encoder`, while no group is handed over. */
  #spareEncoder: GroupEncoder | null = new GroupEncoder()
  #handedOver: HandedOver | null = null
  /** Groups written and not yet synced wait here when syncs are deferred (W10). */
  #hasUnsynced = false

  /**
   * Opens or makes the log of a shard and makes it safe to read (V1 to V5).
   * @throws BrokerError NOT_READY where an operator must decide; DiskError.
   */
  constructor(options: ShardLogOptions) {
    const startedMs = options.clock.monotonicMs()
    this.#clock = options.clock
    this.#slotBytes = options.slotBytes
    this.files = new SlotFiles(options.disk, options.directory)
    this.#encoded = new EncodeBuffer(options.encodeBufferBytes, options.encodeMemory)
    this.segments = new SegmentFiles(options.disk, options.dataDirectory, options.openFilesMax)
    this.window = new ReadWindow(this.files, this.#encoded, new SettledWindow(this.segments, options))
    if (options.hasManifest === true) requireManifest(options.disk, options.directory)
    else makeJournalDirectory(options.disk, options.directory)
    const manifest = loadManifest(options.disk, options.directory, options.shard, options.placementEpoch)
    checkPlacement(manifest, options.directory, options.placementEpoch)
    const decisions = readDecisions(options.disk, options.directory)
    const lacksManifest = hasPacksAlone(options.disk, options.dataDirectory, options.directory, options)
    const known = { ...options, ...manifest, decisions, lacksManifest }
    const findings = findSlots(options.disk, this.files, known, options.onScan)
    this.#receiveMs = findings.receiveMsMax
    this.table.recover(manifest)
    replay(findings, this.table)
    const position = { lastSequence: findings.lastSequence, lastGroup: findings.lastSynced }
    this.#journal = new Journal({ ...options, files: this.files }, position)
    repairTail({ files: this.files, journal: this.#journal, table: this.table, clock: options.clock }, findings)
    if (findings.slots.length === 0 && this.files.spareCount === 0) {
      const name = this.files.drawName()
      fillSlot(options.disk, options.directory, name, options.firstSlotBytes)
      this.files.addSpare({ name, capacityBytes: options.firstSlotBytes, isFilled: true, isBlank: true })
    }
    this.report = {
      slots: findings.slots.length,
      groups: findings.lastSynced + findings.inDoubt.length,
      scannedBytes: findings.scannedBytes,
      cutGroups: findings.cutGroups,
      copiedGroups: findings.inDoubt.length,
      quarantinedRuns: findings.quarantinedRuns,
      milliseconds: Math.round(options.clock.monotonicMs() - startedMs)
    }
  }

  /** A sync failed, or the device: nothing may be acknowledged any more (W6). */
  get isPoisoned(): boolean {
    return this.#journal.isPoisoned
  }

  /** Sealed slots whose groups are to be settled, oldest first. */
  get sealedSlots(): readonly SealedSlot[] {
    return this.#journal.sealed.all
  }

  /** Bytes of slot files in use: what the budget of the journal is compared with. */
  get unsettledBytes(): number {
    return this.#journal.unsettledBytes
  }

  /** True if the open slot has groups that only sealing it would let settle. */
  get hasOpenGroups(): boolean {
    return this.#journal.hasOpenGroups
  }

  /** Sequence of the newest slot; 0: none yet. */
  get newestSlot(): number {
    return this.#journal.lastSequence
  }

  get unfilledSlots(): number {
    return this.#journal.unfilledCount
  }

  get rolledSlots(): number {
    return this.#journal.rolledCount
  }

  /** True if the gathered group needs no new slot. */
  get fits(): boolean {
    return this.#journal.fits(this.encoder.totalBytes, this.encoder.directoryBytes)
  }

  /**
   * True if the gathered group can be encoded while another thread still writes the one handed over: their places in the
   * encode buffer cannot meet, also if the end of the buffer is skipped.
   */
  get fitsBeside(): boolean {
    const handedOverBytes = this.#handedOver?.encoder.totalBytes ?? 0
    return handedOverBytes + 2 * this.encoder.totalBytes <= this.#encoded.capacityBytes
  }

  /** Room for the gathered group: opens the next slot if it must. @throws DiskError, nothing written. */
  prepare(): void {
    if (this.fits) return
    if (this.#hasUnsynced) this.sync()
    this.#journal.roll(this.encoder.totalBytes, this.encoder.directoryBytes)
  }

  /** Encodes the gathered group. After it the sources are no longer needed. @returns its index in the encode buffer. */
  encode(): number {
    assert(this.#handedOver === null || this.fitsBeside, 'a group is not encoded over one that is being written')
    const index = this.#encoded.allocate(this.encoder.totalBytes)
    this.#receiveMs = Math.max(this.#receiveMs, this.#clock.nowMs())
    this.encoder.encode(this.#encoded.current, index, this.#receiveMs, this.#journal.seed)
    return index
  }

  /** Writes the encoded group. @throws DiskError: nothing of it counts; call abandonGroup. @returns its place in the slot. */
  write(index: number): number {
    const position = this.#journal.groupPosition
    const number = this.#seal(index)
    this.#journal.write(this.#encoded.current, index, index + this.encoder.totalBytes)
    this.#note(index, position, number)
    this.#hasUnsynced = true
    return position
  }

  /** @throws DiskError: the shard is poisoned. */
  sync(): void {
    this.#journal.sync()
    this.#hasUnsynced = false
  }

  get hasUnsynced(): boolean {
    return this.#hasUnsynced
  }

  /** The group may be read: after its sync, or with deferred syncs after its write. */
  publish(index: number, position: number): void {
    const place = this.#encoded.placeOf(index, this.encoder.totalBytes, index)
    this.encoder.commit(this.#journal.slotOrdinal, position, place)
  }

  /** The write failed: offsets go back, the slot ends behind the group before (W6). @throws DiskError if that is not synced. */
  abandonGroup(): void {
    this.encoder.rollback()
    // With deferred syncs others before it were acknowledged: the next slot must not say that they are dead (W10).
    if (this.#hasUnsynced) this.sync()
    this.#journal.endSlot()
  }

  /** True if the encoded group stands in the memory that another thread can write from. */
  get canHandOver(): boolean {
    return this.#encoded.current === this.#encoded.bytes
  }

  /**
   * Leaves writing and syncing the encoded group to another thread, and takes up the other encoder: the next group may
   * be gathered and encoded meanwhile. All groups before must be confirmed. @returns what to write.
   */
  handOver(index: number): GroupToWrite {
    const { encoder } = this
    assert(this.canHandOver, 'a group is handed over in shared memory')
    assert(this.#spareEncoder !== null && !this.#hasUnsynced, 'one group is handed over at a time')
    const position = this.#journal.groupPosition
    const ordinal = this.#journal.slotOrdinal
    const place = this.#encoded.placeOf(index, encoder.totalBytes, index)
    const number = this.#seal(index)
    this.#journal.handOver(encoder.totalBytes)
    this.#note(index, position, number)
    this.#handedOver = { encoder, ordinal, position, place }
    this.encoder = this.#spareEncoder
    this.#spareEncoder = null
    return { slotName: this.#journal.slotName, start: index, end: index + encoder.totalBytes, position }
  }

  /** The encoder of the group handed over: its results are written between confirm() and release(). */
  get handedOver(): GroupEncoder | null {
    return this.#handedOver?.encoder ?? null
  }

  /** The group handed over is synced: it may be read. */
  confirm(): void {
    const group = this.#handedOver
    assert(group !== null, 'a group was handed over')
    this.#journal.handedBack()
    group.encoder.commit(group.ordinal, group.position, group.place)
  }

  /** The group handed over was not written: it goes back, and what was gathered or encoded since with it (W6). */
  abandonHandedOver(error: DiskError): void {
    assert(this.#handedOver !== null, 'a group was handed over')
    this.#journal.handedBackFailed(error)
    if (this.isPoisoned) return
    this.#handedOver.encoder.rollback()
    this.abandonGroup()
  }

  /** Done with the group handed over. */
  release(): void {
    const group = this.#handedOver
    assert(group !== null, 'a group was handed over')
    group.encoder.reset()
    this.#spareEncoder = group.encoder
    this.#handedOver = null
  }

  #seal(index: number): number {
    const number = this.#journal.nextGroup
    this.encoder.seal(this.#encoded.current, index, {
      number,
      lastSynced: this.#journal.lastSynced,
      slotSequence: this.#journal.slotSequence,
      seed: this.#journal.seed
    })
    return number
  }

  /** Keeps the directory of a group for the footer of its slot. */
  #note(index: number, position: number, number: number): void {
    const directoryAt = index + GROUP_HEADER_BYTES
    this.#journal.noteEntries(this.#encoded.current, directoryAt, directoryAt + this.encoder.directoryBytes, position)
    this.#journal.noteGroup(number, this.encoder.receiveMs)
  }

  /** Seals the open slot so that it can be settled. Between groups, none handed over. @throws DiskError */
  sealOpenSlot(): void {
    if (this.#hasUnsynced) this.sync()
    this.#journal.sealOpen()
  }

  /**
   * Moves start offsets, durably (W7): one group of entries, written and synced. Between groups, none handed over.
   * @returns what is gone of each, in order. @throws DiskError: nothing moved.
   */
  moveStarts(moves: readonly StartMove[]): { segments: number; bytes: number }[] {
    assert(this.#handedOver === null, 'start offsets move between groups')
    this.#receiveMs = Math.max(this.#receiveMs, this.#clock.nowMs())
    const entries = moves.map(({ log, offset }) => {
      const entry = new DirectoryEntry()
      entry.kind = entryKinds.startOffset
      entry.handle = log.handle
      entry.baseOffset = offset
      entry.nextOffset = offset
      entry.leaderEpoch = log.leaderEpoch
      entry.receiveMs = this.#receiveMs
      return entry
    })
    const directoryBytes = entries.length * ENTRY_BYTES
    const bytes = Buffer.alloc(groupBytes(directoryBytes, 0))
    if (!this.#journal.fits(bytes.length, directoryBytes)) {
      if (this.#hasUnsynced) this.sync()
      this.#journal.roll(bytes.length, directoryBytes)
    }
    try {
      writeEntryGroup(this.#journal, bytes, entries, 0, this.#receiveMs)
    } catch (error) {
      // With deferred syncs others before it were acknowledged (W10).
      if (!this.isPoisoned && this.#hasUnsynced) this.sync()
      if (!this.isPoisoned) this.#journal.endSlot()
      throw error
    }
    this.sync()
    return moves.map(({ log, offset }) => log.moveStart(offset))
  }

  /** The settler committed these: readers look there from now on. Those of topics that are gone are passed over. */
  adopt(partitions: readonly ManifestPartition[]): void {
    for (const partition of partitions) this.table.logOf(partition.handle)?.adopt(partition)
  }

  /** The settler committed a compaction of it. */
  adoptCompacted(partition: ManifestPartition): void {
    this.table.logOf(partition.handle)?.adoptCompacted(partition)
  }

  /**
   * All slots up to that sequence are settled and adopted: their files are free.
   * @returns why a file that is not needed any more could not be removed; the next call tries it again. null: none is left.
   */
  freeSlots(sequence: number): DiskError | null {
    this.#journal.sealed.freeUpTo(sequence, this.files, this.#slotBytes)
    return this.files.removeUnused()
  }

  /** A reader from `offset`. It stays valid while the log grows. */
  read(log: PartitionLog, offset: number): LogReader {
    return new LogReader(this.window, log, offset)
  }

  /** Clean end; nothing may be called after it. After a failed sync it only closes the files. */
  close(): void {
    assert(this.#handedOver === null || this.isPoisoned, 'a group under way is finished first')
    if (this.#hasUnsynced && !this.isPoisoned) this.sync()
    this.#journal.close()
    this.segments.closeAll()
  }
}
