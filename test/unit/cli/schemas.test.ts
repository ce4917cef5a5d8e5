/** Schemas on the command line: what is asked of the broker, what is printed, and where a schema comes from. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { run, startFakeBroker } from './terminal.ts'

const schema = { id: 1, subject: 's', type: 'avro', schema: '"int"\u001b', created_at_ms: 1_700_000_000_000 }
const body = JSON.stringify(schema)

test('schema register sends a schema from the line or a file, character for character, and prints its id', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{"id":7}' }))
  const path = join(temporaryDirectory(t), 'order.proto')
  const proto = 'syntax = "proto3"; // é\r\n'
  writeFileSync(path, proto)
  const words = ['schema', 'register', '--subject', 'orders-value', '--broker', broker.url, '--schema']
  const printed = { code: 0, stdout: 'id: 7\n', stderr: '' }
  assert.deepEqual(await run([...words, ' {"type":"string"}']), printed)
  assert.deepEqual(await run([...words, '["null"]', '--type', 'avro']), printed)
  assert.deepEqual(await run([...words, path, '--type', 'protobuf']), printed)
  assert.equal((await run([...words, '{}', '--json'])).stdout, '{"id":7}\n')
  assert.deepEqual(
    broker.asked.map(({ method, url, body: asked }) => [method, url, JSON.parse(asked) as unknown]),
    [
      ['json_schema', ' {"type":"string"}'],
      ['avro', '["null"]'],
      ['protobuf', proto],
      ['json_schema', '{}']
    ].map(([type, text]) => ['POST', '/schemas', { subject: 'orders-value', type, schema: text }])
  )
})

test('schema get, list and latest print JSON for people, or the answer as it came', async t => {
  const answers: Readonly<Record<string, string>> = {
    '/schemas/1': body,
    '/schemas': `[${body}]`,
    '/subjects/a.b/versions/latest': body
  }
  const broker = await startFakeBroker(t, ({ url }) => ({ status: 200, body: answers[url] ?? '' }))
  const cases: readonly (readonly [string, string])[] = [
    ['get 1', JSON.stringify(schema, null, 2)],
    ['get --id 1', JSON.stringify(schema, null, 2)],
    ['get 1 --json', body],
    ['list', JSON.stringify([schema], null, 2)],
    ['list --json', `[${body}]`],
    ['latest --subject a.b', JSON.stringify(schema, null, 2)]
  ]
  for (const [words, text] of cases) {
    const { code, stdout, stderr } = await run(['schema', ...words.split(' '), '--broker', broker.url])
    assert.deepEqual([code, stdout, stderr], [0, `${text}\n`, ''], words)
    assert.ok(!stdout.includes('\u001b'), 'nothing that a terminal would obey')
  }
})

test('schema commands that lack something ask no broker', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{}' }))
  for (const [words, problem] of [
    ['register --schema {}', /--subject is missing/],
    ['register --subject s', /--schema is missing/],
    ['register --subject s --schema /no/such/file', /--schema '\/no\/such\/file' cannot be read/],
    ['get', /--id is missing/],
    ['get x', /--id 'x' is not a whole number/],
    ['get 0', /--id '0' is not a whole number/],
    ['get 1 --id 1', /given twice/],
    ['latest', /--subject is missing/]
  ] as const) {
    const { code, stderr } = await run(['schema', ...words.split(' '), '--broker', broker.url])
    assert.equal(code, 2, words)
    assert.match(stderr, problem)
  }
  assert.equal(broker.asked.length, 0)
})

test('schema get takes a subject and a version instead of an id, and not both', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body }))
  const get = (...words: readonly string[]) => run(['schema', 'get', ...words, '--broker', broker.url])
  assert.equal((await get('--subject', 'a.b', '--version', '2')).stdout, `${JSON.stringify(schema, null, 2)}\n`)
  assert.equal((await get('--subject', 'a.b')).code, 0)
  assert.deepEqual(
    broker.asked.map(({ url }) => url),
    ['/subjects/a.b/versions/2', '/subjects/a.b/versions/latest']
  )
  assert.match((await get('--version', '2')).stderr, /--version needs --subject/)
  assert.match((await get('1', '--subject', 's')).stderr, /give an id or a --subject, not both/)
  assert.match((await get('--subject', 's', '--version', '0')).stderr, /--version '0' is not a whole number/)
  assert.equal(broker.asked.length, 2)
})
