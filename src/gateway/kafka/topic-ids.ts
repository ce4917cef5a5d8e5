/**
 * The ids that topics have in the Kafka protocol: the number of one life of a topic, which is never given again, in a UUID
 * of the data directory. Nothing is stored for it. Main thread.
 *
 *   0 first 8 bytes of SHA-256 of the id of the data directory, without its first bit · 8 u64 TopicId
 *
 * Without that bit no id begins with '-', which command lines would take for an option. No id is zero.
 */
import { createHash } from 'node:crypto'
import type { TopicId } from '../../model/ids.ts'
import { toTopicId } from '../../model/ids.ts'

const PREFIX_BYTES = 8
const UUID_BYTES = 16

export class TopicIds {
  readonly #prefix: Buffer

  /** @param directoryId of the data directory. */
  constructor(directoryId: string) {
    this.#prefix = createHash('sha256').update(directoryId).digest().subarray(0, PREFIX_BYTES)
    this.#prefix[0] = (this.#prefix[0] as number) & 0x7f
  }

  /** @returns the 22 characters of base64url that stand for a UUID. */
  uuidOf(id: TopicId): string {
    const bytes = Buffer.alloc(UUID_BYTES)
    this.#prefix.copy(bytes)
    bytes.writeBigUInt64BE(BigInt(id), PREFIX_BYTES)
    return bytes.toString('base64url')
  }

  /** @returns the id that a UUID stands for, or null: none of this data directory. */
  idOf(uuid: string): TopicId | null {
    const bytes = Buffer.from(uuid, 'base64url')
    if (bytes.length !== UUID_BYTES || !bytes.subarray(0, PREFIX_BYTES).equals(this.#prefix)) return null
    const number = bytes.readBigUInt64BE(PREFIX_BYTES)
    return number >= 1n && number <= BigInt(Number.MAX_SAFE_INTEGER) ? toTopicId(Number(number)) : null
  }
}
