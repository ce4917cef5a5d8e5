/** A program of its own that has the package in its node_modules: it compiles with all checks of TypeScript, and runs. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { startBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { repository } from '../support/repository.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const program = `
import { BinaryClient, ClientError, PipelinedClient, type ClientOptions, type ProduceResult } from 'millrace/client'

const options: ClientOptions = { host: '127.0.0.1', port: Number(process.argv[2]) }
const producer = new PipelinedClient({ ...options, lingerMs: 1 })
const sent: Promise<ProduceResult>[] = []
for (let i = 0; i < 1000; i++) sent.push(producer.send('orders', { key: \`user-\${i % 10}\`, value: \`order \${i}\` }))
const results: readonly ProduceResult[] = await Promise.all(sent)
await producer.close()
const client = new BinaryClient(options)
const { records } = await client.consume({ topic: 'orders', partition: 0, offset: 0, maxRecords: 1 })
const value: string | undefined = records[0]?.value.toString()
try {
  await client.produce('nobody', [{ value: 'x' }])
} catch (error) {
  if (!(error instanceof ClientError)) throw error
  const written: 'no' | 'yes' | 'unknown' = error.written
  console.log(results.length, value, written)
}
await client.close()
`

async function run(script: string, args: readonly string[], cwd: string): Promise<string> {
  const child = spawn(process.execPath, [script, ...args], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(child, 'close')
  const output = Buffer.concat(chunks).toString()
  assert.equal(child.exitCode, 0, output)
  return output
}

/** A folder with the built package, the types of Node, and nothing else of ours. */
function projectOf(t: TestContext): string {
  const folder = temporaryDirectory(t)
  const installed = join(folder, 'node_modules/millrace')
  mkdirSync(join(folder, 'node_modules/@types'), { recursive: true })
  cpSync(join(repository, 'package.json'), join(installed, 'package.json'))
  cpSync(join(repository, 'dist/src'), join(installed, 'dist/src'), { recursive: true })
  symlinkSync(join(repository, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'shop', type: 'module', private: true }))
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    strict: true,
    skipLibCheck: false,
    types: ['node'],
    outDir: 'built'
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['shop.ts'] }))
  writeFileSync(join(folder, 'shop.ts'), program)
  return folder
}

test('a program compiles against the package, with all its types, and runs', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('orders', 3)
  const folder = projectOf(t)
  await run(join(repository, 'node_modules/typescript/bin/tsc'), ['-p', '.'], folder)
  const output = await run('built/shop.js', [String(broker.es01.port)], folder)
  assert.match(output, /^1000 order \d+ no\n$/)
})

test('a wrong use of it does not compile', async t => {
  const folder = projectOf(t)
  writeFileSync(join(folder, 'shop.ts'), program.replace('maxRecords: 1', "maxRecords: 'all'"))
  await assert.rejects(run(join(repository, 'node_modules/typescript/bin/tsc'), ['-p', '.'], folder), /TS2322/)
})

test('nothing but the client can be imported', async t => {
  const folder = projectOf(t)
  for (const path of ['', '/dist/src/server.js', '/src/bin.js']) {
    writeFileSync(join(folder, 'inside.js'), `await import('millrace${path}')`)
    await assert.rejects(run('inside.js', [], folder), /ERR_PACKAGE_PATH_NOT_EXPORTED/)
  }
})
