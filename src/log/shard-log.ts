/**
 * The log of one shard: opens it by the recovery rules, appends groups, reads. Composes the parts of this folder.
 * Shard thread only. Knows no threads, rings or sockets; every failure of the disk comes out as DiskError.
 */
import { assert } from '../base/assert.ts'
import type { Clock } from '../base/clock.ts'
import { crc32c } from '../base/crc32c.ts'
import type { Disk, DiskError } from '../disk/disk.ts'
import type { RecoveryReport } from '../wire/shard/messages.ts'
import { batchBytesAt } from '../wire/batch/view.ts'
import { EncodeBuffer } from './encode-buffer.ts'
import { GroupEncoder } from './group-encoder.ts'
import {
  BATCH_COVERED_BY_RUN,
  DirectoryEntry,
  ENTRY_BYTES,
  GROUP_HEADER_BYTES,
  entryKinds,
  groupBytes,
  sealGroup,
  writeEntry
} from './group-format.ts'
import { makeJournalDirectory } from './journal-directory.ts'
import { Journal, sealSlot, writeSlotHeader } from './journal.ts'
import { LogReader, ReadWindow } from './log-reader.ts'
import { LogTable } from './log-table.ts'
import type { PartitionLog } from './partition-log.ts'
import { findSlots, footerOf, replay, replayEntry, type Findings } from './recovery.ts'
import { SlotFiles, fillSlot } from './slot-files.ts'
import type { ScannedGroup } from './slot-scan.ts'

export interface ShardLogOptions {
  readonly disk: Disk
  /** Absolute; made if it is not there. */
  readonly directory: string
  readonly shard: number
  readonly placementEpoch: number
  /** Sequence of the newest slot known to have been durable; 0: none is known of. Fewer found is damage (V2). */
  readonly newestSlot: number
  readonly slotBytes: number
  readonly firstSlotBytes: number
  readonly encodeBufferBytes: number
  /** Memory for the encode buffer that a second thread can write groups from; absent: this thread alone writes. */
  readonly encodeMemory?: SharedArrayBuffer
  readonly clock: Clock
  readonly drawSalt: () => Buffer
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
  readonly window: ReadWindow
  readonly report: RecoveryReport
  readonly #journal: Journal
  readonly #encoded: EncodeBuffer
  readonly #clock: Clock
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
    this.files = new SlotFiles(options.disk, options.directory)
    this.#encoded = new EncodeBuffer(options.encodeBufferBytes, options.encodeMemory)
    this.window = new ReadWindow(this.files, this.#encoded)
    makeJournalDirectory(options.disk, options.directory)
    const findings = findSlots(options.disk, this.files, options)
    this.#receiveMs = findings.receiveMsMax
    replay(findings, this.table)
    const lastSlot = findings.slots.at(-1)
    this.#journal = new Journal(
      { ...options, files: this.files },
      { lastSequence: lastSlot?.header.sequence ?? 0, lastGroup: findings.lastSynced }
    )
    this.#confirmHeaders(findings)
    this.#settleTail(findings)
    this.#sealFound(findings)
    if (findings.slots.length === 0 && this.files.spareCount === 0) {
      const name = this.files.drawName()
      fillSlot(options.disk, options.directory, name, options.firstSlotBytes)
      this.files.addSpare({ name, capacityBytes: options.firstSlotBytes, isFilled: true })
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
    this.#note(index, position, this.#seal(index))
    this.#journal.handOver(encoder.totalBytes)
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

  /** A reader from `offset`. It stays valid while the log grows. */
  read(log: PartitionLog, offset: number): LogReader {
    return new LogReader(this.window, log, offset)
  }

  /** Clean end; nothing may be called after it. After a failed sync it only closes the files. */
  close(): void {
    assert(this.#handedOver === null || this.isPoisoned, 'a group under way is finished first')
    if (this.#hasUnsynced && !this.isPoisoned) this.sync()
    this.#journal.close()
  }

  /**
   * Writes the headers of unsealed slots again, and syncs them. They may stand in the page cache only, or be held for
   * clean after a failed sync; if a later slot became durable before them, the chain would have a gap for ever.
   */
  #confirmHeaders(findings: Findings): void {
    for (const slot of findings.slots) if (!slot.isSealed) writeSlotHeader(this.files.file(slot.ordinal), slot.header)
  }

  /**
   * Copies what was perhaps never synced into a fresh slot and begins new epochs where data was cut. The slot counts
   * only when all of it is on disk: both happen, or neither, and the next start does it again (V3, V5).
   */
  #settleTail(findings: Findings): void {
    const { inDoubt } = findings
    const raised = handlesToRaise(findings, this.table)
    if (inDoubt.length === 0 && raised.length === 0) return
    const epochBytes = raised.length * ENTRY_BYTES
    const copiedBytes = inDoubt.reduce((sum, group) => sum + group.totalBytes, 0)
    const copiedDirectories = inDoubt.reduce((sum, group) => sum + group.totalBytes - group.bodyBytes, 0)
    this.#journal.openForCopies(copiedBytes + groupBytes(epochBytes, 0), copiedDirectories + epochBytes)
    const source = findings.slots.at(-1)
    for (const group of inDoubt) {
      assert(source !== undefined, 'a group in doubt lies in the last slot')
      const bytes = Buffer.alloc(group.totalBytes)
      const read = this.files.file(source.ordinal).read('slot.read', bytes, 0, bytes.length, group.position)
      assert(read === bytes.length, 'a group that was found whole can be read again')
      const position = this.#writeCopy(bytes, group)
      for (const entry of group.entries) replayEntry(entry, this.#journal.slotOrdinal, position, this.table)
    }
    if (raised.length > 0) this.#writeEpochs(raised)
    this.#journal.sync()
    this.#journal.commitHeader()
  }

  /** Seals `bytes` anew, with this slot's salt, and writes them. The runs stay where they are within the group. */
  #writeCopy(bytes: Buffer, group: ScannedGroup): number {
    for (const entry of group.entries) {
      if (entry.kind === entryKinds.run) entry.checksum = runChecksum(bytes, entry, this.#journal.seed)
    }
    return this.#writeEntries(bytes, group.entries, group.bodyBytes, group.receiveMs)
  }

  /** Writes a group from its entries; bodies, if any, already stand behind the directory. @returns its position. */
  #writeEntries(bytes: Buffer, entries: readonly DirectoryEntry[], bodyBytes: number, receiveMs: number): number {
    let at = GROUP_HEADER_BYTES
    for (const entry of entries) at = writeEntry(bytes, at, entry)
    const number = this.#journal.nextGroup
    const position = this.#journal.groupPosition
    const header = {
      number,
      lastSynced: this.#journal.lastSynced,
      totalBytes: bytes.length,
      directoryBytes: at - GROUP_HEADER_BYTES,
      bodyBytes,
      entryCount: entries.length,
      receiveMs,
      slotSequence: this.#journal.slotSequence
    }
    sealGroup(bytes, 0, header, this.#journal.seed)
    this.#journal.write(bytes, 0, bytes.length)
    this.#journal.noteEntries(bytes, GROUP_HEADER_BYTES, at, position)
    this.#journal.noteGroup(number, receiveMs)
    return position
  }

  /** Gives every slot that had to be scanned its footer, so that the next start need not (V1). Its end is settled now. */
  #sealFound(findings: Findings): void {
    for (const slot of findings.slots) {
      if (slot.isSealed) continue
      const { footer, footerAt } = footerOf(slot, findings.lastSynced)
      const file = this.files.file(slot.ordinal)
      sealSlot(file, { seed: slot.seed, sequence: slot.header.sequence, footer, footerAt, endBytes: undefined })
    }
  }

  /** One group that begins a new epoch at the end of each of those logs. */
  #writeEpochs(handles: readonly number[]): void {
    const entries = handles.map(handle => {
      const log = this.table.recoveredLog(handle)
      log.beginEpoch(log.leaderEpoch + 1, log.nextOffset)
      const entry = new DirectoryEntry()
      entry.kind = entryKinds.leaderEpoch
      entry.handle = log.handle
      entry.baseOffset = log.nextOffset
      entry.nextOffset = log.nextOffset
      entry.leaderEpoch = log.leaderEpoch
      entry.receiveMs = this.#receiveMs
      return entry
    })
    this.#writeEntries(Buffer.alloc(groupBytes(entries.length * ENTRY_BYTES, 0)), entries, 0, this.#receiveMs)
  }
}

/** Partitions of which data was cut, perhaps. Handle 0 among those found stands for all that the shard has. */
function handlesToRaise(findings: Findings, table: LogTable): number[] {
  const handles = new Set(findings.cutHandles)
  if (!handles.delete(0)) return [...handles]
  for (const log of table.recoveredLogs()) handles.add(log.handle)
  for (const group of findings.inDoubt) for (const entry of group.entries) handles.add(entry.handle)
  return [...handles]
}

function runChecksum(group: Buffer, entry: DirectoryEntry, seed: number): number {
  let sum = seed
  for (let at = entry.position; at < entry.position + entry.bytes; at += batchBytesAt(group, at)) {
    sum = crc32c(group, at, at + BATCH_COVERED_BY_RUN, sum)
  }
  return sum
}
