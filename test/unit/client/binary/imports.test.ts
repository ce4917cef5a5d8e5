/** The client library runs wherever Node does: it reaches no package, native or not. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { repository } from '../../../support/repository.ts'

const ENTRY = 'src/client/binary/index.ts'
const builtins = new Set(builtinModules.map(name => `node:${name}`))

/** What a source file imports, types included. */
function importsOf(text: string): string[] {
  const written = /(?:^|\n)(?:import|export)\b[^'"\n]*?(?:\{[^}]*\})?[^'"\n]*?from\s*['"]([^'"]+)['"]/g
  const calls = /\b(?:import|require)\(\s*['"]([^'"]+)['"]/g
  const bare = /(?:^|\n)import\s+['"]([^'"]+)['"]/g
  return [written, calls, bare].flatMap(pattern => [...text.matchAll(pattern)].map(match => match[1] ?? ''))
}

/** Walks from a file. @param read gives the text of a file by its path. @returns what is neither a project file nor Node's. */
function foreignImports(entry: string, read: (path: string) => string): { foreign: string[]; files: Set<string> } {
  const files = new Set<string>([entry])
  const foreign: string[] = []
  for (const file of files) {
    for (const name of importsOf(read(file))) {
      if (name.startsWith('.')) files.add(relative(repository, join(repository, dirname(file), name)))
      else if (!builtins.has(name)) foreign.push(`${file}: ${name}`)
    }
  }
  return { foreign, files }
}

const read = (path: string): string => readFileSync(join(repository, path), 'utf8')

test('the client imports only files of the project and modules of Node', () => {
  const { foreign, files } = foreignImports(ENTRY, read)
  assert.deepEqual(foreign, [])
  assert.ok(files.size > 20, `${files.size} files`)
  for (const file of files) assert.ok(existsSync(join(repository, file)), file)
  // The regular expressions see all there is: the names of files that they find are those of the folder.
  assert.ok([...files].some(file => file.endsWith('es01/connection.ts')))
})

test('a package that comes in anywhere below is found', () => {
  for (const line of [
    "import { pack } from 'msgpackr/pack'",
    "import {\n  pack,\n  unpack\n} from 'msgpackr'",
    "import 'pino'",
    "const crc = await import('@node-rs/crc32')",
    "export type { Codec } from 'avsc'"
  ]) {
    const planted = (path: string): string => (path.endsWith('gzip.ts') ? `/** Planted. */\n${line}\n` : read(path))
    assert.equal(foreignImports(ENTRY, planted).foreign.length, 1, line)
  }
})
