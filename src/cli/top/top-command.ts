/**
 * `millrace top`: what a running broker does, read from /metrics and /healthz each interval. At a terminal it is a screen
 * that Ctrl-C leaves as it was; into a pipe a line for each interval; with --json an object on each.
 */
import type { Command } from 'commander'
import { exchangeFor } from '../../client/http/exchange.ts'
import { HttpClientError, type HttpClient } from '../../client/http/http-client.ts'
import { parseDuration } from '../../config/parse.ts'
import { paintFor } from '../colours.ts'
import {
  accessOf,
  addClientOptions,
  addExamples,
  openClient,
  optionsOf,
  optionWithDefault,
  requiredText,
  smallWholeOf,
  type BrokerAccess,
  type OptionTexts
} from '../common-options.ts'
import { broken, mayPass, refusal } from '../failures.ts'
import { showText } from '../format.ts'
import { listenForInterrupt, pause, whenAborted } from '../interrupt.ts'
import { print, UsageError, type CliIo } from '../io.ts'
import { jsonOf, lineOf, screenOf, type ScreenLine } from './format-top.ts'
import { readPage } from './metrics-page.ts'
import { readingOf, seriesRead, type Reading, type Scrape } from './reading.ts'
import { Screen } from './screen.ts'

const intervalRange = { minMs: 10, maxMs: 3_600_000 }

/** A page of metrics that does not come in this time does not come. */
const PAGE_TIMEOUT_MS = 60_000

interface Pace {
  readonly intervalMs: number
  /** Readings after the first, which has no rates. */
  readonly count: number
}

/** Where readings go. */
interface Display {
  open(): Promise<void>
  /** @param intervalMs null: the first, without rates. */
  show(reading: Reading, intervalMs: number | null): Promise<void>
  /** The broker does not answer for now. */
  tellOutage(reason: string): Promise<void>
  close(): Promise<void>
}

/** Adds the command to the program. */
export function addTopCommand(program: Command, io: CliIo): void {
  const command = program
    .command('top')
    .description('show what a running broker does: rates, lag, syncs, shards, memory, connections; until Ctrl-C')
    .addOption(optionWithDefault('--interval <duration>', 'time between readings, such as 500ms or 10s', '2s'))
    .option('--count <number>', 'end after so many readings')
    .addHelpText(
      'after',
      '\nA screen at a terminal; elsewhere a line for each interval, with --json an object. Rates are per second. Where\n' +
        'keys are asked for, all of it takes admin on *: others see rates of their topics and lag of their groups.'
    )
  addExamples(addClientOptions(command), [
    'millrace top',
    'millrace top --interval 10s | tee -a broker.log',
    'millrace top --count 1 --json | jq .sync_p99_ms'
  ])
  command.action(async (_, command: Command) => {
    const options = optionsOf(command)
    const intervalMs = intervalOf(options)
    const count = smallWholeOf(options['count'], '--count', { min: 1n, max: BigInt(Number.MAX_SAFE_INTEGER) })
    const scraper = new Scraper(openClient(options, io), accessOf(options, io))
    await watch(scraper, displayOf(scraper.broker, options, io), { intervalMs, count: count ?? Infinity }, io)
  })
}

/** @throws UsageError */
function intervalOf(options: OptionTexts): number {
  const text = requiredText(options, 'interval', '--interval')
  const reading = parseDuration(text)
  if (!reading.ok) throw new UsageError(`--interval '${text}' ${reading.problem}`)
  if (reading.value >= intervalRange.minMs && reading.value <= intervalRange.maxMs) return reading.value
  throw new UsageError(`--interval '${text}' is not from 10ms to 1h`)
}

class Scraper {
  readonly broker: string
  readonly #client: HttpClient
  readonly #access: BrokerAccess
  readonly #exchange

  constructor(client: HttpClient, access: BrokerAccess) {
    this.broker = client.broker
    this.#client = client
    this.#access = access
    this.#exchange = exchangeFor(client.broker, access.tls)
  }

  /** @throws HttpClientError */
  async scrape(): Promise<Scrape> {
    const { body } = await this.#client.call<{ readonly troubles?: readonly string[] }>('GET', '/healthz')
    const page = await this.#metrics()
    return { atMs: performance.now(), page: readPage(page, seriesRead), troubles: (body.troubles ?? []).map(showText) }
  }

  async #metrics(): Promise<string> {
    const { secret } = this.#access
    const request = { method: 'GET', url: `${this.broker}/metrics` }
    const headers: Record<string, string> = secret === null ? {} : { authorization: `Bearer ${secret}` }
    try {
      const { status, text } = await this.#exchange({ ...request, headers }, PAGE_TIMEOUT_MS)
      if (status === 200) return text
      throw refusal(request, status, text)
    } catch (error) {
      throw error instanceof HttpClientError ? error : broken(request, error)
    }
  }
}

/** The first scrape must succeed, before anything is shown. */
async function watch(scraper: Scraper, display: Display, pace: Pace, io: CliIo): Promise<void> {
  const interrupt = listenForInterrupt(io)
  const { signal } = interrupt
  const next = (): Promise<Scrape | void> => Promise.race([scraper.scrape(), whenAborted(signal)])
  try {
    const first = await next()
    if (first === undefined) return
    await display.open()
    try {
      await showAll(next, first, display, { ...pace, signal })
    } finally {
      await display.close()
    }
  } finally {
    interrupt.forget()
  }
}

/** Later scrapes may fail for a while: then rates are of the time since the last that did not. */
async function showAll(
  next: () => Promise<Scrape | void>,
  first: Scrape,
  display: Display,
  { intervalMs, count, signal }: Pace & { readonly signal: AbortSignal }
): Promise<void> {
  await display.show(readingOf(null, first), null)
  let before = first
  for (let shown = 0; shown < count && !signal.aborted;) {
    await pause(intervalMs, signal)
    const after = await settled(next())
    if (signal.aborted || after === undefined) return
    if (after instanceof HttpClientError) {
      await display.tellOutage(after.reason)
      continue
    }
    await display.show(readingOf(before, after), after.atMs - before.atMs)
    before = after
    shown++
  }
}

/** A failure that passes is a value; another one is thrown. */
async function settled(scraping: Promise<Scrape | void>): Promise<Scrape | void | HttpClientError> {
  try {
    return await scraping
  } catch (error) {
    if (error instanceof HttpClientError && mayPass(error)) return error
    throw error
  }
}

function displayOf(broker: string, options: OptionTexts, io: CliIo): Display {
  const isJson = options['json'] === true
  return io.stdout.isTTY === true && !isJson ? screenDisplay(broker, options, io) : lineDisplay(isJson, io)
}

function lineDisplay(isJson: boolean, io: CliIo): Display {
  const nothing = (): Promise<void> => Promise.resolve()
  return {
    open: nothing,
    close: nothing,
    async show(reading, intervalMs) {
      if (intervalMs === null) return
      await print(io.stdout, `${isJson ? jsonOf(reading, Date.now(), intervalMs) : lineOf(reading)}\n`)
    },
    tellOutage: reason => print(io.stderr, `millrace: no reading: ${showText(reason)}\n`)
  }
}

function screenDisplay(broker: string, options: OptionTexts, io: CliIo): Display {
  const screen = new Screen(io.stdout, paintFor(io))
  const head = `millrace top  ${broker}  every ${String(options['interval'])}`
  let last: readonly ScreenLine[] = []
  return {
    open: () => screen.open(),
    close: () => screen.close(),
    async show(reading, intervalMs) {
      last = screenOf(reading, intervalMs === null)
      await screen.draw([{ text: head, colour: 'bold' }, ...last])
    },
    async tellOutage(reason) {
      const trouble = { text: `no reading: ${showText(reason)}`, colour: 'red' } as const
      await screen.draw([{ text: head, colour: 'bold' }, trouble, ...last])
    }
  }
}
