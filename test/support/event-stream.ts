/** A client of server-sent events that shows what came, as the HTML standard reads it. Closed when the test ends. */
import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { request as requestSecurely } from 'node:https'
import type { TestContext } from 'node:test'
import { waitFor } from './broker.ts'
import { atEnd } from './clean-up.ts'

export interface StreamEvent {
  /** `message` unless the event says otherwise. */
  readonly type: string
  /** Of the last event that had one, this one included; empty: none had. */
  readonly lastId: string
  readonly data: string
}

export interface StreamedRecord {
  readonly topic?: string
  readonly partition: number
  readonly offset: number
  readonly timestamp_ms: number
  readonly key: string | null
  readonly value: string
  readonly headers?: readonly (readonly [string, string | null])[]
}

export interface OpenOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Certificate of a broker that speaks TLS. */
  readonly ca?: string
  /** Is told each event as it comes. */
  readonly onEvent?: (event: StreamEvent) => void
}

export class EventStream {
  readonly events: StreamEvent[] = []
  /** Everything as it came. */
  text = ''
  comments = 0
  /** The other side has ended it, or cut it. */
  isClosed = false
  /** It ended as HTTP has it, not by a cut. */
  isWhole = false
  /** Of the last whole event: what a client that comes again sends. */
  lastId = ''
  readonly response: IncomingMessage
  readonly #request: ClientRequest
  readonly #onEvent: ((event: StreamEvent) => void) | undefined
  #line = ''
  #type = ''
  #id = ''
  #data: string[] = []

  constructor(sent: ClientRequest, response: IncomingMessage, onEvent: OpenOptions['onEvent']) {
    this.#request = sent
    this.response = response
    this.#onEvent = onEvent
    response.setEncoding('utf8')
    response.on('data', (text: string) => this.#take(text))
    response.on('end', () => (this.isWhole = true))
    response.on('error', () => undefined)
    response.on('close', () => (this.isClosed = true))
  }

  get status(): number {
    return this.response.statusCode ?? 0
  }

  /** Events without a type of their own. */
  get records(): StreamedRecord[] {
    return this.ofType('message').map(({ data }) => JSON.parse(data) as StreamedRecord)
  }

  ofType(type: string): StreamEvent[] {
    return this.events.filter(event => event.type === type)
  }

  /** Resolves when so many records have come. */
  async untilRecords(count: number): Promise<StreamedRecord[]> {
    await waitFor(`${count} records, of which came ${this.ofType('message').length}`, () => {
      return this.ofType('message').length >= count
    })
    return this.records
  }

  async untilType(type: string, count = 1): Promise<StreamEvent> {
    await waitFor(`an event ${type} in ${this.text.slice(0, 500)}`, () => this.ofType(type).length >= count)
    const event = this.ofType(type)[count - 1]
    if (event === undefined) throw new Error('an event that came is gone')
    return event
  }

  async untilClosed(): Promise<void> {
    await waitFor('the end of a stream', () => this.isClosed)
  }

  close(): void {
    this.#request.destroy()
  }

  #take(text: string): void {
    this.text += text
    const lines = (this.#line + text).split('\n')
    this.#line = lines.pop() ?? ''
    for (const line of lines) this.#takeLine(line)
  }

  #takeLine(line: string): void {
    if (line === '') return this.#dispatch()
    const colon = line.indexOf(':')
    if (colon === 0) this.comments++
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'event') this.#type = value
    else if (field === 'data') this.#data.push(value)
    else if (field === 'id') this.#id = value
  }

  #dispatch(): void {
    this.lastId = this.#id
    if (this.#data.length > 0) {
      const event = { type: this.#type || 'message', lastId: this.lastId, data: this.#data.join('\n') }
      this.events.push(event)
      this.#onEvent?.(event)
    }
    this.#type = ''
    this.#data = []
  }
}

/** Resolves with the head of the answer. Rejects if there is none. */
export function openStream(t: TestContext, url: string, options: OpenOptions = {}): Promise<EventStream> {
  return new Promise((resolve, reject) => {
    const { ca, onEvent } = options
    const parts = { headers: { ...options.headers }, agent: false } as const
    const take = (response: IncomingMessage): void => resolve(new EventStream(sent, response, onEvent))
    const sent = ca === undefined ? request(url, parts, take) : requestSecurely(url, { ...parts, ca }, take)
    // Once there is an answer its own events tell what became of it.
    sent.on('error', reject)
    atEnd(t, () => void sent.destroy())
    sent.end()
  })
}
