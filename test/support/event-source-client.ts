/**
 * A program: the EventSource of Node, which is that of undici and goes by the HTML standard, on the address of its first
 * argument. Run it with --experimental-eventsource. It writes a line of JSON for each thing that happens, and runs until it is
 * killed, or has given up: then it writes so and ends.
 */

/** What of it is used here: the types of Node do not have it yet. */
declare const EventSource: new (url: string) => EventTarget & { readonly readyState: number }

/** Its readyState once it has given up. */
const CLOSED = 2

function tell(what: string, event?: Event): void {
  const [data, id] = event instanceof MessageEvent ? [event.data as unknown, event.lastEventId] : [null, null]
  const line = { what, data, id }
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

/** The time before it comes again does not keep the process alive by itself. */
const alive = setInterval(() => undefined, 60_000)
const source = new EventSource(process.argv[2] ?? '')
source.addEventListener('open', () => tell('open'))
source.addEventListener('message', event => tell('message', event))
source.addEventListener('end', event => tell('end', event))
source.addEventListener('error', () => {
  tell('error')
  if (source.readyState !== CLOSED) return
  tell('gave up')
  clearInterval(alive)
})
