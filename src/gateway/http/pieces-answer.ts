/**
 * Answers of any length that are made of many small texts: reserved in the reply budget as a whole, made and sent piece by
 * piece, so that a long one holds up nobody. Main thread.
 *
 *   measure, with pauses ─▶ reserve ─▶ write piece by piece, with pauses ─▶ closed: give back
 *
 * Invariant: beside what is reserved there is one piece at a time. An answer that fits one piece is written once.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { BrokerError } from '../../model/errors.ts'
import type { ReplyWatcher } from './engine.ts'
import { WHOLE_ANSWER_BYTES_MAX } from './engine.ts'
import type { Exchange } from './exchange.ts'

/** Bytes of text between two turns of the event loop: some half a millisecond. */
const PIECE_BYTES = 128 * 1024

/** A JSON text in parts. */
export interface AnswerParts<Item> {
  readonly opening: string
  readonly items: readonly Item[]
  /** The text of one item. Called twice for each where the answer is long; both times it must be the same. */
  readonly write: (item: Item) => string
  readonly closing: string
}

class PiecesAnswer<Item> implements ReplyWatcher {
  readonly #exchange: Exchange
  readonly #parts: AnswerParts<Item>
  #reservedBytes = 0

  constructor(exchange: Exchange, parts: AnswerParts<Item>) {
    this.#exchange = exchange
    this.#parts = parts
    exchange.reply.watcher = this
  }

  /** @throws BrokerError OVERLOADED, KEY_REVOKED */
  async send(): Promise<void> {
    const { reply } = this.#exchange
    let bytes = 0
    let first: string | null = ''
    for await (const piece of this.#pieces()) {
      bytes += Buffer.byteLength(piece)
      first = first === '' ? piece : null
    }
    if (reply.isClosed) return
    this.#begin(bytes)
    if (first !== null) return this.#pass(first)
    for await (const piece of this.#pieces()) this.#pass(piece)
  }

  /** Ends early when nobody waits for the answer any more. */
  async *#pieces(): AsyncGenerator<string> {
    const { opening, items, write, closing } = this.#parts
    let text = opening
    for (const [index, item] of items.entries()) {
      text += index === 0 ? write(item) : `,${write(item)}`
      if (text.length < PIECE_BYTES) continue
      yield text
      text = ''
      await nextTurn()
      if (this.#exchange.reply.isClosed) return
    }
    yield text + closing
  }

  #begin(bytes: number): void {
    const { reply, services, jsonType: contentType } = this.#exchange
    this.#checkKey()
    if (bytes > WHOLE_ANSWER_BYTES_MAX) {
      if (!services.replyBudget.tryReserve(bytes))
        throw new BrokerError('OVERLOADED', { what: 'the memory for answers', limit: '--reply-memory-bytes' })
      this.#reservedBytes = bytes
    }
    reply.begin({ status: 200, contentType }, bytes)
  }

  #pass(piece: string): void {
    this.#checkKey()
    const bytes = Buffer.from(piece)
    this.#exchange.reply.chunk(bytes, 0, bytes.length)
  }

  #checkKey(): void {
    if (this.#exchange.who.isRevoked) throw new BrokerError('KEY_REVOKED')
  }

  onReplyClosed(): void {
    const bytes = this.#reservedBytes
    this.#reservedBytes = 0
    if (bytes > 0) this.#exchange.services.replyBudget.release(bytes)
  }
}

/** Answers 200 with such a text; an error after its beginning cuts the connection. */
export function answerInPieces<Item>(exchange: Exchange, parts: AnswerParts<Item>): void {
  new PiecesAnswer(exchange, parts).send().catch((error: unknown) => exchange.refuse(error))
}
