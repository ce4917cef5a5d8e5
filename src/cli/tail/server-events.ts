/**
 * Server-sent events out of text that comes in pieces, as the HTML standard reads them, for what a broker sends: lines end
 * with LF. One parser for one connection; main thread. What is not ended by an empty line is not an event, and its id
 * does not count: so a connection that is cut in the middle of one loses nothing.
 */

export interface ServerEvent {
  /** `message` unless the event says otherwise. */
  readonly type: string
  readonly data: string
}

/** No outage is waited out longer before the broker is asked again, whatever it said: beyond 2^31 a timer fires at once. */
const RETRY_MS_MAX = 600_000

export class EventParser {
  /** Of the last whole event that had one: from there a stream goes on. */
  lastId: string
  /** After which the broker wants to be asked again; null: it did not say. */
  retryMs: number | null = null
  #line = ''
  #type = ''
  #id: string | null = null
  #data: string[] = []
  #dataLength = 0

  /** @param lastId of the connection before; empty: there was none. */
  constructor(lastId: string) {
    this.lastId = lastId
  }

  /** Characters that are held of the event that has not ended: whoever reads bounds them. */
  get heldLength(): number {
    return this.#line.length + this.#dataLength
  }

  /** @returns the events that end in this piece. */
  take(text: string): ServerEvent[] {
    const end = text.lastIndexOf('\n')
    if (end === -1) {
      // Not looked through again with each piece: a long line comes in many.
      this.#line += text
      return []
    }
    const lines = (this.#line + text.slice(0, end)).split('\n')
    this.#line = text.slice(end + 1)
    return lines.flatMap(line => (line === '' ? this.#end() : this.#takeField(line)))
  }

  #takeField(line: string): ServerEvent[] {
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'event') this.#type = value
    else if (name === 'data') this.#takeData(value)
    else if (name === 'id') this.#id = value
    else if (name === 'retry' && /^\d+$/.test(value)) this.retryMs = Math.min(Number(value), RETRY_MS_MAX)
    return []
  }

  #takeData(value: string): void {
    this.#data.push(value)
    // Lines that are empty take something too.
    this.#dataLength += value.length + 1
  }

  #end(): ServerEvent[] {
    const event = { type: this.#type || 'message', data: this.#data.join('\n') }
    const isEvent = this.#data.length > 0
    this.lastId = this.#id ?? this.lastId
    this.#type = ''
    this.#id = null
    this.#data = []
    this.#dataLength = 0
    return isEvent ? [event] : []
  }
}
