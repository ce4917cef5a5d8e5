/**
 * `npm run check` finds what it is there to find. Faults are planted in a tree of their own, never in the sources: other
 * tools may be looking at those.
 */
import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { ESLint } from 'eslint'
import { readText, repository, runTool } from '../support/repository.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** A tree with these sources, judged by the repository's layer table. */
async function judgeLayers(t: TestContext, files: Readonly<Record<string, string>>) {
  const tree = temporaryDirectory(t)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), text)
  }
  writeFileSync(join(tree, 'tsconfig.json'), readText('tsconfig.json'))
  writeFileSync(join(tree, 'package.json'), readText('package.json'))
  symlinkSync(join(repository, 'node_modules'), join(tree, 'node_modules'))
  const config = join(repository, 'config/tooling/dependency-cruiser.cjs')
  return await runTool('dependency-cruiser/bin/dependency-cruise.mjs', ['--config', config, 'src'], { cwd: tree })
}

const leaf = 'export const leaf = 1\n'

/** Each fault: what it is, the file that commits it, its text, the rule that names it. */
const plants: readonly (readonly [string, string, string, string])[] = [
  ['the log knows a gateway', 'src/log/planted.ts', "export { leaf } from '../gateway/leaf.ts'", 'layer src/log'],
  ['the base knows the model', 'src/base/planted.ts', "export { leaf } from '../model/leaf.ts'", 'layer src/base'],
  [
    'a gateway goes past the broker',
    'src/gateway/planted.ts',
    "export { leaf } from '../shards/leaf.ts'",
    'layer src/gateway'
  ],
  [
    'a type alone goes up',
    'src/control/planted.ts',
    "export type { Leaf } from '../broker/leaf.ts'",
    'layer src/control'
  ],
  ['a package is in another folder', 'src/broker/planted.ts', "export { pino } from 'pino'", 'package pino'],
  ['the ring opens files', 'src/ring/planted.ts', "export { readFileSync } from 'node:fs'", 'fs only'],
  ['two files know each other', 'src/wire/a.ts', "export * as b from './b.ts'", 'no cycles'],
  ['an import leads nowhere', 'src/disk/planted.ts', "export { x } from './missing.ts'", 'resolvable']
]

/** What the plants import. */
const leaves = {
  'src/gateway/leaf.ts': leaf,
  'src/model/leaf.ts': leaf,
  'src/shards/leaf.ts': leaf,
  'src/broker/leaf.ts': 'export interface Leaf { readonly a: number }\n',
  'src/wire/b.ts': "export * as a from './a.ts'\n"
}

test('the layer check', async t => {
  const fine = { 'src/base/leaf.ts': leaf, 'src/log/fine.ts': "export { leaf } from '../base/leaf.ts'\n" }
  const sources = Object.fromEntries(plants.map(([, file, text]) => [file, `${text}\n`]))
  const { code, output } = await judgeLayers(t, { ...fine, ...leaves, ...sources })
  await t.test('fails on any fault', () => assert.notEqual(code, 0, output))
  await t.test('has nothing against an import that goes down', () => assert.doesNotMatch(output, /fine\.ts/))
  for (const [what, file, , rule] of plants) {
    await t.test(`names the file where ${what}`, () => {
      const lines = output.split('\n').filter(line => line.includes(rule) && line.includes(file))
      assert.ok(lines.length > 0, output)
    })
  }
})

test('the lint', async t => {
  // One linter for all of them: each would read the types of all sources anew.
  const linter = new ESLint({ cwd: repository, overrideConfigFile: 'config/tooling/eslint.config.js' })
  const lint = async (filePath: string, text: string): Promise<{ errors: number; messages: string }> => {
    const [result] = await linter.lintText(text, { filePath: join(repository, filePath) })
    assert.ok(result !== undefined)
    return { errors: result.errorCount, messages: JSON.stringify(result.messages) }
  }
  const habits = `/** Planted. */
export async function wait(): Promise<number[]> {
  return [1].map(x => x + 1)
}
export function parse(text: string): unknown {
  try {
    return JSON.parse(\`[\${text}]\`)
  } catch {
    return /x/.test(text) ? 1n : null
  }
}
`
  await t.test('refuses in a hot file what costs per record', async () => {
    const { errors, messages } = await lint('src/ring/spsc-ring.ts', habits)
    assert.ok(errors > 0, messages)
    for (const habit of [
      'no async',
      'no closures',
      'no array callbacks',
      'a status instead of try',
      'no JSON',
      'no template strings',
      'no regular expressions',
      'no bigint'
    ]) {
      assert.ok(messages.includes(`hot file: ${habit}`), `${habit} in ${messages}`)
    }
  })
  await t.test('lets the same stand elsewhere', async () => {
    const { errors, messages } = await lint('src/broker/router.ts', habits)
    assert.equal(errors, 0, messages)
  })
  await t.test('refuses unfinished work, any, and promises that nobody awaits', async () => {
    const planted = `/** Planted. */
export function planted(x: any): void {
  // ${'FIX'}${'ME'} later
  Promise.resolve(x)
  console.log(x)
}
`
    const { errors, messages } = await lint('src/broker/router.ts', planted)
    assert.ok(errors > 0, messages)
    for (const rule of ['no-explicit-any', 'no-warning-comments', 'no-floating-promises', 'no-console']) {
      assert.ok(messages.includes(rule), `${rule} in ${messages}`)
    }
  })
})

test('the hot files of the lint exist', () => {
  const config = readText('config/tooling/eslint.config.js')
  const list = /const hotFiles = \[([^\]]*)\]/.exec(config)?.[1] ?? ''
  const files = [...list.matchAll(/'([^']+)'/g)].map(match => match[1] ?? '')
  assert.ok(files.length >= 5)
  for (const file of files) assert.ok(readText(file).length > 0)
})

test('one command runs every check, and CI runs that command', () => {
  const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> }
  const parts = Object.keys(scripts).filter(name => name.startsWith('check:'))
  assert.ok(parts.length >= 4)
  for (const part of parts) assert.ok((scripts['check'] ?? '').includes(`npm run --silent ${part}`), part)
  const ci = readText('.ci/run')
  assert.match(ci, /^npm ci\b/m)
  assert.match(ci, /^npm run --silent check$/m)
  assert.match(ci, /^npm test$/m)
})
