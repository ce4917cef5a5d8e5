/**
 * Answers of any length that are made of many small texts: reserved in the reply budget as a whole, made and sent piece by
 * piece, so that a long one holds up nobody. Main thread.
 *
 *   measure, with pauses ─▶ reserve ─▶ write piece by piece, with pauses ─▶ closed: give back
 *
 * Invariant: beside what is reserved there is one piece at a time. An answer that fits one piece is written once.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ChargedAnswer } from './charged-answer.ts'
import { WHOLE_ANSWER_BYTES_MAX } from './engines/engine.ts'
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

class PiecesAnswer<Item> {
  readonly #exchange: Exchange
  readonly #parts: AnswerParts<Item>
  readonly #answer: ChargedAnswer

  constructor(exchange: Exchange, parts: AnswerParts<Item>) {
    this.#exchange = exchange
    this.#parts = parts
    this.#answer = new ChargedAnswer(exchange)
  }

  /** @throws BrokerError OVERLOADED, KEY_REVOKED */
  async send(): Promise<void> {
    const { reply, jsonType } = this.#exchange
    let bytes = 0
    let first: string | null = ''
    for await (const piece of this.#pieces()) {
      bytes += Buffer.byteLength(piece)
      first = first === '' ? piece : null
    }
    if (reply.isClosed) return
    this.#answer.begin(jsonType, bytes, bytes > WHOLE_ANSWER_BYTES_MAX ? bytes : 0)
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

  #pass(piece: string): void {
    this.#answer.pass(Buffer.from(piece))
  }
}

/** Answers 200 with such a text; an error after its beginning cuts the connection. */
export function answerInPieces<Item>(exchange: Exchange, parts: AnswerParts<Item>): void {
  new PiecesAnswer(exchange, parts).send().catch((error: unknown) => exchange.refuse(error))
}
