/**
 * Items of arrays. Source of the rules: Confluent Platform documentation, "Schema Evolution and Compatibility for Schema
 * Registry", JSON Schema compatibility rules. In everything the new schema is the reader.
 */
import { keyword, least, most, testRules } from '../rules.ts'

const string = { type: 'string' }
const number = { type: 'number' }
const integer = { type: 'integer' }

testRules('json_schema', 'arrays', [
  ...most('array', 'maxItems'),
  ...least('array', 'minItems'),
  keyword('array', 'uniqueItems', true, undefined, null),
  keyword('array', 'uniqueItems', true, false, null),
  keyword('array', 'uniqueItems', undefined, true, 'uniqueItems was added'),
  keyword('array', 'items', string, string, null),
  keyword('array', 'items', string, undefined, null),
  keyword('array', 'items', integer, number, null),
  keyword('array', 'items', undefined, string, 'a schema for all items was added'),
  keyword('array', 'items', string, number, "at '/items': type was changed"),
  keyword('array', 'items', [string, number], undefined, null),
  keyword('array', 'items', [string, number], [string], null),
  keyword('array', 'items', [string], [number], "at '/items/0': type was changed"),
  keyword('array', 'items', [number], [number, true], null),
  keyword('array', 'items', [number], [number, string], 'was added where any item was allowed'),
  keyword('array', 'additionalItems', true, false, 'no longer allows any'),
  keyword('array', 'additionalItems', false, true, null),
  keyword('array', 'additionalItems', string, number, "at '/additionalItems': type was changed")
])

function list(items: readonly unknown[], rest: unknown): object {
  return { type: 'array', items, additionalItems: rest }
}

testRules('json_schema', 'lists of items', [
  ['added to a closed list', list([string], false), list([string, number], false), null],
  ['added to a closed list that opens', list([string], false), list([string, number], true), null],
  ['false added to a closed list', list([string], false), list([string, false], false), null],
  ['removed from a closed list', list([string, number], false), list([string], false), 'no further items are allowed'],
  ['false removed from a closed list', list([string, false], false), list([string], false), null],
  ['removed from a list that opens', list([string, number], false), list([string], true), null],
  ['added as the rest allows', list([string], number), list([string, number], number), null],
  [
    'added with less than the rest allows',
    list([string], string),
    list([string, number], string),
    'takes less than further items took'
  ],
  ['removed, and the rest takes it', list([string, number], false), list([string], number), null],
  [
    'removed, and the rest takes less',
    list([string, number], string),
    list([string], string),
    'the schema of further items takes less'
  ],
  ['the rest gets wider', list([string], number), list([string], true), null],
  ['the rest gets narrower', list([string], true), list([string], number), 'no longer allows everything']
])
