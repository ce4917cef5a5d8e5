/** docs/client.md is true: its examples run as they stand, its options are those of the code. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { clientErrorKinds } from '../../src/client/binary/client-error.ts'
import { others, ranges, switches } from '../../src/client/binary/options.ts'
import { startBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { readText, repository } from '../support/repository.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const text = readText('docs/client.md')

/** The examples by name, in order. */
const examples = new Map(
  [...text.matchAll(/^```ts example=(\w+)\n([^]*?)^```/gm)].map(([, name = '', code = '']) => [name, code])
)

/** Runs an example against a broker that listens elsewhere. @returns what it printed. */
async function run(t: TestContext, name: string, broker: { url: string; es01: { port: number } }): Promise<string[]> {
  const entry = pathToFileURL(join(repository, 'src/client/binary/index.ts')).href
  const code = (examples.get(name) ?? '')
    .replace("'millrace/client'", JSON.stringify(entry))
    .replace('port: 9001', `port: ${broker.es01.port}`)
    .replace('http://127.0.0.1:9000', broker.url)
  const file = join(temporaryDirectory(t), `${name}.mjs`)
  const lines: string[] = []
  const printed = { log: (...parts: readonly unknown[]) => lines.push(parts.join(' ')) }
  Reflect.set(globalThis, `printed_${name}`, printed)
  writeFileSync(file, `const console = globalThis.printed_${name}\n${code}`)
  await import(pathToFileURL(file).href)
  return lines
}

test('the examples run as they stand, also behind the first session of the README', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('orders', 2)
  await api.produce('orders', [{ value: 'checkout' }])
  const [, topic = '', partitions] = /^npx millrace topic create --name (\S+) --partitions (\d+)$/m.exec(text) ?? []
  await api.createTopic(topic, Number(partitions))
  assert.deepEqual([...examples.keys()], ['produce', 'consume', 'group', 'errors'])
  assert.deepEqual(await run(t, 'produce', broker), ['1000'])
  assert.deepEqual(await run(t, 'consume', broker), ['1000'])
  assert.deepEqual(await run(t, 'group', broker), ['1000'])
  assert.deepEqual(await run(t, 'errors', broker), ['refused no false'])
})

test('the table of options is that of the code, row by row', () => {
  const rows = [
    ...text.matchAll(/^\| ((?:`[\w.]+`(?:, )?)+) \| (?:all|`\w+`(?:, (?:group|`\w+`))?) \|\s*`?(\w*)`?\s*\|([^|]*)\|/gm)
  ]
  const documented = rows.flatMap(([, names = '', value = '', allowed = '']) =>
    [...names.matchAll(/[\w.]+/g)].map(([name]) => [name, value, allowed.trim()])
  )
  const expected = [
    ...Object.entries(ranges).map(([name, { value, min, max }]) => [name, String(value), `${min} to ${max}`]),
    ...Object.entries(switches).map(([name, value]) => [name, String(value), '']),
    ...Object.entries(others).map(([name, value]) => [name, value, ''])
  ]
  assert.deepEqual(documented.sort(), expected.sort())
})

test('the table of errors explains each kind there is, and no other', () => {
  const [, row = ''] = /^\| `kind` \|(.*)\|$/m.exec(text) ?? []
  const documented = [...row.matchAll(/`([\w-]+)`:/g)].map(([, name]) => name)
  assert.deepEqual(documented, [...clientErrorKinds])
})

test('the library gives out the names that the documents speak of, and no other', async () => {
  const names = Object.keys(await import('../../src/client/binary/index.ts')).sort()
  assert.deepEqual(names, ['BinaryClient', 'ClientError', 'Consumer', 'PipelinedClient'])
  for (const name of names) assert.ok(text.includes(`\`${name}\``), name)
})
