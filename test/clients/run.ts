/**
 * `npm run test:clients`: clients of others against a broker. Prints the pass table; `--write` puts it into docs/kafka.md.
 * Without `--all` those that Node.js and Debian bring; with it those of other languages too. What is not on this machine is
 * said to be missing. Exit code 1: something failed.
 *
 * Each client installs itself from its registry into a temporary folder for the run, if it has to.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { firstKey } from '../support/access.ts'
import { startBroker } from '../support/broker.ts'
import { checkNames, type ClientStage, type KafkaClientUnderTest } from './client.ts'
import { franzGoClient } from './franz-go.ts'
import { javaClient } from './java.ts'
import { kafkaJsClient } from './kafkajs.ts'
import { kcatClient } from './kcat.ts'
import { platformaticClient } from './platformatic.ts'

const document = new URL('../../docs/kafka.md', import.meta.url)
const begin = '<!-- clients: npm run test:clients -- --write -->'
const end = '<!-- /clients -->'

/** One column of the table. */
interface Column {
  readonly title: string
  readonly cells: readonly string[]
}

async function columnOf(client: KafkaClientUnderTest, stage: ClientStage, folder: string): Promise<Column | null> {
  mkdirSync(folder)
  const version = await client.prepare(folder)
  if (version === null) {
    process.stdout.write(`${client.name}: not on this machine, skipped\n`)
    return null
  }
  const cells: string[] = []
  for (const name of checkNames) {
    const check = client.checks[name]
    if (check === undefined) {
      cells.push('–')
      continue
    }
    try {
      await check(stage)
      cells.push('yes')
    } catch (error) {
      cells.push('**no**')
      process.exitCode = 1
      process.stderr.write(`${client.name}, ${name}: ${inspect(error)}\n`)
    }
  }
  return { title: `${client.name} ${version}`, cells }
}

function tableOf(columns: readonly Column[]): string {
  const head = `| | ${columns.map(({ title }) => title).join(' | ')} |`
  const rule = `|---|${columns.map(() => '---').join('|')}|`
  const rows = checkNames.map((name, i) => `| ${name} | ${columns.map(({ cells }) => cells[i] ?? '').join(' | ')} |`)
  return [head, rule, ...rows].join('\n')
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-clients-'))
const clients: readonly KafkaClientUnderTest[] = [
  kcatClient,
  kafkaJsClient,
  platformaticClient(),
  javaClient(),
  franzGoClient()
]
const isAll = process.argv.includes('--all')

test('clients of others', async t => {
  const open = await startBroker(t)
  const guarded = await startBroker(t, { flags: { '--auth': 'required' } })
  const { id: keyId, secret } = await firstKey(guarded)
  const stage = { open, guarded, keyId, secret }
  const columns: Column[] = []
  for (const [i, client] of clients.entries()) {
    if (client.isExtra === true && !isAll) continue
    const column = await columnOf(client, stage, join(folder, String(i)))
    if (column !== null) columns.push(column)
  }
  const table = tableOf(columns)
  process.stdout.write(`${table}\n`)
  if (process.argv.includes('--write')) {
    const text = readFileSync(document, 'utf8')
    const [before = '', rest = ''] = text.split(begin)
    writeFileSync(document, `${before}${begin}\n\n${table}\n\n${end}${rest.split(end)[1] ?? ''}`)
  }
  rmSync(folder, { recursive: true })
})
