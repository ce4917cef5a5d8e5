/** The tables in docs/kafka.md of what topics have under Kafka's names are what the broker shows and takes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resolveSettings } from '../../src/config/resolve.ts'
import { patchOf, showConfig } from '../../src/gateway/kafka/topic-configs.ts'
import { readText } from '../support/repository.ts'
import { defaultConfig } from '../unit/control/topics.ts'

const resolution = resolveSettings({ flags: {}, unknownFlags: [], env: {}, file: null })
assert.ok(resolution.ok)
const { settings } = resolution
const shown = showConfig(defaultConfig, settings)

/** The cells of a table of docs/kafka.md, row by row. @param head its first line. */
function rowsBelow(head: string): string[][] {
  const [, rest = ''] = readText('docs/kafka.md').split(`\n${head}\n`)
  const lines = rest.split('\n').slice(1)
  const end = lines.findIndex(line => !line.startsWith('|'))
  return lines.slice(0, end).map(line => line.split('|').map(cell => cell.trim()))
}

const namesIn = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)

test('docs/kafka.md lists the settings that topics have, each with its name over HTTP', () => {
  const documented = rowsBelow('| Kafka | HTTP | |').flatMap(([, kafka, http]) => {
    const fields = namesIn(http)
    return namesIn(kafka).map((name, i) => `${name} ${fields[i]}`)
  })
  const served = shown
    .filter(({ isFixed }) => !isFixed)
    .map(({ name }) => `${name} ${Object.keys(patchOf(name, null, settings)).join()}`)
  assert.deepEqual(documented.sort(), served.sort())
})

/** What a name of the second table stands for, and the value that is said of it; null: of each another. */
interface Told {
  readonly pattern: RegExp
  readonly value: string | null
}

/** Names that follow each other without a value have that of the next one. */
function toldIn(cell: string): Told[] {
  const parts = [...cell.matchAll(/`([^`]+)`([^`,]*)/g)]
  return parts.map(([, name = ''], i) => {
    const words = parts
      .slice(i)
      .map(([, , text = '']) => text.trim())
      .find(text => text !== '')
    const pattern = new RegExp(`^${name.replaceAll('.', '\\.').replaceAll('*', '.+')}$`)
    const isOther = words === undefined || words === 'as in Kafka'
    return { pattern, value: isOther ? null : words === 'empty' ? '' : words.replace('−', '-') }
  })
}

test('docs/kafka.md lists what is the same for all topics, with the value that is shown', () => {
  const told = rowsBelow('| always | |').flatMap(([, cell = '']) => toldIn(cell))
  const fixed = shown.filter(({ isFixed }) => isFixed)
  for (const { name, value } of fixed) {
    const [entry, ...others] = told.filter(({ pattern }) => pattern.test(name))
    assert.deepEqual([entry === undefined, others.length], [false, 0], name)
    assert.equal(entry?.value ?? value, value, name)
  }
  for (const { pattern } of told)
    assert.ok(
      fixed.some(({ name }) => pattern.test(name)),
      String(pattern)
    )
})
