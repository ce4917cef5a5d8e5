/**
 * Reads the body of an HTTP produce in MessagePack: the same fields as in JSON (wire/json/produce-scanner.ts), keys, values
 * and the values of headers as bin, or as str in UTF-8. Main thread, or a thread of the background pool.
 *
 * A cursor of our own and not msgpackr, which makes an object per record and a string per text: here a record is one row of
 * integers, and its bytes go from the body to the ring. Faults of form come before faults of type, and of these the first
 * record's first field is named; of equal names the last counts; fields that are not known are passed over.
 */
import {
  HAS_KEY,
  HAS_PARTITION,
  KEY_AT,
  NO_SEQUENCE_HIGH,
  RecordRows,
  VALUE_AT,
  scanOutcomes,
  type ScanOutcome
} from './record-rows.ts'
import { FIELD_NAME_BYTES_MAX, fieldNamed, produceFields, type ProduceField } from './fields.ts'
import { MsgpackCursor, packKinds, type PackKind } from './msgpack-cursor.ts'
import { MsgpackHeaderReader, MsgpackHeaderScan, NOT_UTF8, isText } from './msgpack-headers.ts'

const VALUE_MISSING = 'is missing'

export class MsgpackScanner extends RecordRows {
  readonly malformedCode = 'BODY_NOT_MSGPACK'
  readonly #cursor: MsgpackCursor
  readonly #headers: MsgpackHeaderScan
  /** What is wrong with the fields of the record at hand; empty: nothing. */
  #keyProblem = ''
  #valueProblem = ''
  #partitionProblem = ''
  #sequenceProblem = ''
  #headersProblem = ''
  #headersPath = ''

  constructor() {
    super(new MsgpackHeaderReader())
    this.#cursor = new MsgpackCursor()
    this.#headers = new MsgpackHeaderScan(this.#cursor)
  }

  /** Scans bytes[start, end), borrowed until release(). */
  scan(bytes: Buffer, start: number, end: number): ScanOutcome {
    const cursor = this.#cursor
    this.begin(bytes)
    cursor.open(bytes, start, end)
    const kind = cursor.scanHead()
    const isSound = kind === packKinds.map ? this.#scanBody() : this.#pass(kind, 0)
    if (!isSound || !cursor.scanEnd()) {
      this.problem = `${cursor.problem}, at byte ${cursor.at - start}`
      return scanOutcomes.malformed
    }
    if (kind !== packKinds.map) this.fault('body', 'must be a map with the field records')
    return this.field === '' ? scanOutcomes.sound : scanOutcomes.illTyped
  }

  override release(): void {
    this.#cursor.close()
    super.release()
  }

  /** Consumes what is left of a value whose head was read. */
  #pass(kind: PackKind, depth: number): boolean {
    if (kind !== packKinds.array && kind !== packKinds.map) return kind !== packKinds.broken
    return this.#cursor.skipContainer(kind, depth)
  }

  /** Consumes the name of a pair. @returns its field, or −1: no MessagePack. A name that is no str is another field's. */
  #scanName(depth: number): ProduceField | -1 {
    const cursor = this.#cursor
    const kind = cursor.scanValue(depth)
    if (kind === packKinds.broken) return -1
    const length = cursor.stop - cursor.start
    if (kind !== packKinds.text || length > FIELD_NAME_BYTES_MAX) return produceFields.other
    return fieldNamed(cursor.bytes, cursor.start, length)
  }

  #scanBody(): boolean {
    const cursor = this.#cursor
    let recordsKind: PackKind = packKinds.broken
    let producerProblem = ''
    let hasEncoding = false
    for (let left = cursor.count; left > 0; left--) {
      const field = this.#scanName(1)
      if (field < 0) return false
      const kind = cursor.scanHead()
      if (field === produceFields.records && kind === packKinds.array) {
        if (!this.#scanRecords()) return false
      } else if (!this.#pass(kind, 1)) return false
      if (field === produceFields.records) recordsKind = kind
      else if (field === produceFields.producerId) producerProblem = this.#keepProducer(kind)
      else if (field === produceFields.encoding) hasEncoding = kind !== packKinds.nil
    }
    // Only the last `records` counts.
    if (recordsKind !== packKinds.array) {
      this.resetRecords()
      this.fault('records', recordsKind === packKinds.broken ? VALUE_MISSING : 'must be an array of records')
    }
    this.endRecords(false)
    if (producerProblem !== '') this.fault('producer_id', producerProblem)
    if (hasEncoding) this.fault('encoding', 'is for JSON: in MessagePack send bytes as bin')
    return true
  }

  /** @returns what is wrong with it. */
  #keepProducer(kind: PackKind): string {
    const { bytes, start, stop } = this.#cursor
    this.producerId = null
    if (kind === packKinds.nil) return ''
    if (kind !== packKinds.text || !isText(bytes, start, stop)) return 'must be a str in UTF-8, or nil'
    this.producerId = bytes.toString('utf8', start, stop)
    return ''
  }

  #scanRecords(): boolean {
    const cursor = this.#cursor
    this.resetRecords()
    for (let left = cursor.count; left > 0; left--) {
      const kind = cursor.scanHead()
      if (kind === packKinds.map) {
        if (!this.#scanRecord()) return false
        continue
      }
      if (!this.#pass(kind, 2)) return false
      this.recordFault('', 'must be a map')
      this.count++
    }
    return true
  }

  #scanRecord(): boolean {
    const cursor = this.#cursor
    const row = this.nextRow()
    this.#keyProblem = ''
    this.#valueProblem = VALUE_MISSING
    this.#partitionProblem = ''
    this.#sequenceProblem = ''
    this.#headersProblem = ''
    for (let left = cursor.count; left > 0; left--) {
      const field = this.#scanName(3)
      if (field < 0) return false
      const kind = cursor.scanHead()
      if (field === produceFields.headers) {
        if (!this.#scanHeaders(row, kind)) return false
      } else if (!this.#pass(kind, 3)) return false
      if (field === produceFields.value) this.#keepValue(row, kind)
      else if (field === produceFields.key) this.#keepKey(row, kind)
      else if (field === produceFields.partition) this.#keepPartition(row, kind)
      else if (field === produceFields.sequence) this.#keepSequence(row, kind)
    }
    this.#reportFaults()
    this.countRecord(row)
    return true
  }

  #reportFaults(): void {
    if (this.#keyProblem !== '') this.recordFault('.key', this.#keyProblem)
    if (this.#valueProblem !== '') this.recordFault('.value', this.#valueProblem)
    if (this.#partitionProblem !== '') this.recordFault('.partition', this.#partitionProblem)
    if (this.#sequenceProblem !== '') this.recordFault('.sequence', this.#sequenceProblem)
    if (this.#headersProblem !== '') this.recordFault(`.headers${this.#headersPath}`, this.#headersProblem)
  }

  #keepKey(row: number, kind: PackKind): void {
    const isBytes = kind === packKinds.bytes || kind === packKinds.text
    this.rows[row + 6] = (this.rows[row + 6] as number) & ~HAS_KEY
    this.#keyProblem = isBytes || kind === packKinds.nil ? '' : 'must be bin, str or nil'
    if (!isBytes) return
    this.#keyProblem = this.#keepBytes(row + KEY_AT, kind)
    this.rows[row + 6] = (this.rows[row + 6] as number) | HAS_KEY
  }

  #keepValue(row: number, kind: PackKind): void {
    const isBytes = kind === packKinds.bytes || kind === packKinds.text
    this.#valueProblem = isBytes ? this.#keepBytes(row + VALUE_AT, kind) : 'must be bin or str'
  }

  /** @returns what is wrong with them. */
  #keepBytes(column: number, kind: PackKind): string {
    const { bytes, start, stop } = this.#cursor
    this.rows[column] = start
    this.rows[column + 1] = stop
    this.rows[column + 2] = stop - start
    return kind === packKinds.text && !isText(bytes, start, stop) ? NOT_UTF8 : ''
  }

  #keepPartition(row: number, kind: PackKind): void {
    const { isI64, high, low } = this.#cursor
    const { rows } = this
    rows[row + 6] = (rows[row + 6] as number) & ~HAS_PARTITION
    this.#partitionProblem = ''
    if (kind === packKinds.nil) return
    if (kind !== packKinds.number || !isI64 || high !== 0) {
      this.#partitionProblem = 'must be an integer from 0 to 4294967295, or nil'
      return
    }
    rows[row + 7] = low | 0
    rows[row + 6] = (rows[row + 6] as number) | HAS_PARTITION
  }

  #keepSequence(row: number, kind: PackKind): void {
    const { isI64, high, low } = this.#cursor
    const isNone = kind === packKinds.nil
    this.#sequenceProblem =
      isNone || (kind === packKinds.number && isI64) ? '' : 'must be an integer of 64 bits, signed, or nil'
    this.rows[row + 8] = isNone ? NO_SEQUENCE_HIGH : high
    this.rows[row + 9] = isNone ? 0 : low | 0
  }

  /** Consumes the value of `headers` behind its head, whatever it is. */
  #scanHeaders(row: number, kind: PackKind): boolean {
    const headers = this.#headers
    this.keepHeaders(row, 0, 0, 0)
    this.#headersPath = ''
    this.#headersProblem = ''
    if (kind !== packKinds.array) {
      if (kind !== packKinds.nil) this.#headersProblem = 'must be an array of pairs [name, value]'
      return this.#pass(kind, 3)
    }
    if (!headers.scan()) return false
    this.#headersPath = headers.path
    this.#headersProblem = headers.problem
    if (headers.problem === '') this.keepHeaders(row, headers.start, headers.count, headers.bytes)
    return true
  }
}
