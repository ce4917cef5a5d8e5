/** What the documents list is what there is: routes, commands, links; and no source file grows beyond its limit. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { routes } from '../../src/gateway/http/routes.ts'
import { operations } from '../../src/model/access.ts'
import { errorTable } from '../../src/model/errors.ts'
import { runMillrace } from '../support/broker.ts'
import { listFiles, readText, repository } from '../support/repository.ts'

test('docs/protocols.md lists every route, and none that is not served', () => {
  const documented = [...readText('docs/protocols.md').matchAll(/^\| (GET|POST|PUT|DELETE) \| `([^`]+)` \|/gm)].map(
    match => `${match[1]} ${match[2]}`
  )
  assert.deepEqual(documented.sort(), routes.map(({ method, pattern }) => `${method} ${pattern}`).sort())
})

test('docs/protocols.md says of every route what it takes of a key', () => {
  const rows = [...readText('docs/protocols.md').matchAll(/^\| (GET|POST|PUT|DELETE) \| `([^`]+)` \| ([a-z]+) \|/gm)]
  const documented = new Map(rows.map(([, method, pattern, need]) => [`${method} ${pattern}`, need]))
  for (const { method, pattern, operation } of routes) {
    assert.equal(documented.get(`${method} ${pattern}`), operations[operation], `${method} ${pattern}`)
  }
})

test('docs/protocols.md names no error that does not exist', () => {
  const named = [...readText('docs/protocols.md').matchAll(/`([A-Z][A-Z_]{4,})`/g)].map(match => match[1] ?? '')
  assert.deepEqual(
    named.filter(code => !Object.hasOwn(errorTable, code)),
    []
  )
})

test('every npm command of the documents exists', () => {
  const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> }
  for (const document of ['README.md', ...listFiles('docs/**/*.md')]) {
    const commands = [...readText(document).matchAll(/\bnpm (?:run (?:--silent )?([a-z:]+)|(start|test)\b)/g)]
    for (const [command, run, direct] of commands)
      assert.ok(Object.hasOwn(scripts, run ?? direct ?? ''), `${document}: ${command}`)
  }
})

test('every millrace command of the README exists', async () => {
  const commands = new Set(
    [...readText('README.md').matchAll(/npx millrace ((?:[a-z]+ ?)+)/g)].map(match => (match[1] ?? '').trim())
  )
  assert.ok(commands.size >= 4)
  for (const command of commands) {
    const { code, stdout, stderr } = await runMillrace([...command.split(' '), '--help'])
    assert.deepEqual([code, stderr], [0, ''], command)
    assert.ok(stdout.includes(`millrace ${command}`), stdout)
  }
})

test('every link between the documents leads somewhere', () => {
  for (const document of ['README.md', ...listFiles('docs/**/*.md')]) {
    for (const [, target = ''] of readText(document).matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)) {
      assert.ok(existsSync(join(repository, dirname(document), target)), `${document}: ${target}`)
    }
  }
})

test('decisions are numbered one after the other, in their names as in their titles', () => {
  const numbers = listFiles('docs/decisions/*.md').map(file => {
    const [, number = ''] = /^docs\/decisions\/(\d{4})-/.exec(file) ?? []
    assert.match(readText(file), new RegExp(`^# ${Number(number)}\\. `), file)
    return Number(number)
  })
  assert.deepEqual(
    numbers,
    numbers.map((_, i) => i + 1)
  )
})

test('no source file is longer than 400 lines, and each says first what it owns', () => {
  const files = ['src', 'workers', 'native-free-bench'].flatMap(folder => listFiles(`${folder}/**/*.{ts,js}`))
  assert.ok(files.length > 100)
  for (const file of files) {
    const text = readText(file)
    assert.ok(text.split('\n').length <= 401, `${file} has ${text.split('\n').length - 1} lines`)
    assert.match(text, /^(#!.*\n)?\/\*\*/, `${file} has no header`)
  }
})
