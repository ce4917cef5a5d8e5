/**
 * `npm run test:clients`: clients of others against a broker. Prints the pass table. Without `--all` those that Node.js and
 * Debian bring; with it those of other languages too. `--client NAME`: that one alone. What is not on this machine is said to be
 * missing. `--write` puts the table of all into docs/kafka.md. Exit code 1: something failed, or there was no table to write.
 *
 * Each client installs itself from its registry into a temporary folder for the run, if it has to.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { inspect, parseArgs } from 'node:util'
import type { Logger } from '../../src/base/logger.ts'
import { firstKey } from '../support/access.ts'
import { startBroker } from '../support/broker.ts'
import { checkNames, type Check, type ClientStage, type KafkaClientUnderTest } from './client.ts'
import { franzGoClient } from './franz-go.ts'
import { javaClient } from './java.ts'
import { kafkaJsClient } from './kafkajs.ts'
import { kafkaToolsClient } from './kafka-tools.ts'
import { kcatClient } from './kcat.ts'
import { krafkaClient } from './krafka.ts'
import { platformaticClient } from './platformatic.ts'
import { confluentClient, kafkaPythonClient } from './python.ts'
import { tableOf, writeTable, type Column } from './table.ts'

/** More than a program of another language has for one. */
const CHECK_TIMEOUT_MS = 120_000

const clients: readonly KafkaClientUnderTest[] = [
  kcatClient,
  kafkaJsClient,
  platformaticClient(),
  javaClient(),
  kafkaToolsClient(),
  confluentClient(),
  kafkaPythonClient(),
  franzGoClient(),
  krafkaClient()
]

const { values: options } = parseArgs({
  options: { all: { type: 'boolean' }, client: { type: 'string' }, write: { type: 'boolean' } }
})

function fail(text: string): void {
  process.exitCode = 1
  process.stderr.write(`${text}\n`)
}

/** Checks of logins try wrong passwords too. A right one that is refused fails its check. */
const PROVOKED = 'a Kafka login was refused'

/** A broker that says more than that has a fault of its own, whatever its client makes of it. */
const logger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn(fields, message) {
    if (message !== PROVOKED) fail(`the broker warns: ${message} ${inspect(fields)}`)
  },
  error: (fields, message) => fail(`the broker failed: ${message} ${inspect(fields)}`)
}

async function inTime(check: Promise<void>): Promise<void> {
  const tooLate = new AbortController()
  const timer = setTimeout(() => tooLate.abort(), CHECK_TIMEOUT_MS)
  const late = new Promise<never>((_, reject) => {
    tooLate.signal.addEventListener('abort', () => reject(new Error(`took more than ${CHECK_TIMEOUT_MS} ms`)))
  })
  try {
    await Promise.race([check, late])
  } finally {
    clearTimeout(timer)
  }
}

/** @returns null: the client could not be made ready, and it has been said why. */
async function versionOf({ name, prepare }: KafkaClientUnderTest, folder: string): Promise<string | null> {
  mkdirSync(folder)
  try {
    const version = await prepare(folder)
    if (version === null) process.stdout.write(`${name}: not on this machine, skipped\n`)
    return version
  } catch (error) {
    fail(`${name} could not be made ready: ${inspect(error)}`)
    return null
  }
}

async function passes(title: string, check: Check, stage: ClientStage): Promise<boolean> {
  const startMs = performance.now()
  try {
    await inTime(check(stage))
    process.stdout.write(`${title}: ${Math.round(performance.now() - startMs)} ms\n`)
    return true
  } catch (error) {
    fail(`${title}: ${inspect(error)}`)
    return false
  }
}

async function columnOf(client: KafkaClientUnderTest, stage: ClientStage, folder: string): Promise<Column | null> {
  const version = await versionOf(client, folder)
  if (version === null) return null
  const { name, checks, lacks = {} } = client
  const cells: string[] = []
  for (const checkName of checkNames) {
    const check = checks[checkName]
    if (check === undefined) cells.push('–')
    else cells.push((await passes(`${name}, ${checkName}`, check, stage)) ? 'yes' : '**no**')
  }
  return { name, version, cells, lacks }
}

const isWanted = ({ name, isExtra = false }: KafkaClientUnderTest): boolean =>
  options.client === undefined ? !isExtra || options.all === true : name === options.client

const folder = mkdtempSync(join(tmpdir(), 'millrace-clients-'))

test('clients of others', async t => {
  const open = await startBroker(t, { logger })
  const guarded = await startBroker(t, { logger, flags: { '--auth': 'required' } })
  const { id: keyId, secret } = await firstKey(guarded)
  const stage = { open, guarded, keyId, secret }
  const columns: Column[] = []
  for (const [i, client] of clients.entries()) {
    if (!isWanted(client)) continue
    const column = await columnOf(client, stage, join(folder, String(i)))
    if (column !== null) columns.push(column)
  }
  process.stdout.write(`${tableOf(columns)}\n`)
  if (options.write === true) {
    if (columns.length === clients.length) writeTable(columns)
    else fail(`not written: the table has ${columns.length} of ${clients.length} clients; it wants --all`)
  }
  rmSync(folder, { recursive: true })
})
