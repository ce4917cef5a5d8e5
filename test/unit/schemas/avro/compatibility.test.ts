/**
 * The rules for Avro. Source of the rules: Apache Avro 1.12 specification, "Schema Resolution", as Java's
 * SchemaCompatibility applies it (java.test.ts asks that itself). In everything the new schema is the reader.
 */
import { primitiveKinds } from '../../../../src/schemas/avro/model.ts'
import { testRules } from '../rules.ts'
import type { Rule } from '../rules.ts'

/** [writer, readers other than itself]. */
const promotions: Readonly<Record<string, readonly string[]>> = {
  int: ['long', 'float', 'double'],
  long: ['float', 'double'],
  float: ['double'],
  string: ['bytes'],
  bytes: ['string']
}

testRules(
  'avro',
  'primitives, each read as each',
  primitiveKinds.flatMap(writer =>
    primitiveKinds.map((reader): Rule => {
      const isTaken = writer === reader || promotions[writer]?.includes(reader) === true
      return [`${writer} as ${reader}`, writer, reader, isTaken ? null : `type ${writer} cannot be read as ${reader}`]
    })
  )
)

function record(fields: readonly object[], more: object = {}): object {
  return { type: 'record', name: 'R', fields, ...more }
}
const a = { name: 'a', type: 'int' }
const b = { name: 'b', type: 'string' }

testRules('avro', 'records', [
  ['the same', record([a]), record([a]), null],
  ['field added with a default', record([a]), record([a, { ...b, default: '' }]), null],
  [
    'field added with the default null',
    record([a]),
    record([a, { name: 'b', type: ['null', 'int'], default: null }]),
    null
  ],
  ['field added without a default', record([a]), record([a, b]), "field 'b' is not written and has no default"],
  [
    'enum field added whose type has a default',
    record([a]),
    record([a, { name: 'e', type: { type: 'enum', name: 'E', symbols: ['x'], default: 'x' } }]),
    null
  ],
  ['field removed', record([a, b]), record([a]), null],
  ['all fields removed', record([a, b]), record([]), null],
  ['fields in another order', record([a, b]), record([b, a]), null],
  ['field of a wider type', record([a]), record([{ name: 'a', type: 'long' }]), null],
  [
    'field of a narrower type',
    record([{ name: 'a', type: 'long' }]),
    record([a]),
    "at '/fields/a': type long cannot be read as int"
  ],
  ['field that may be null', record([a]), record([{ name: 'a', type: ['null', 'int'] }]), null],
  [
    'field that may no longer be null',
    record([{ name: 'a', type: ['null', 'int'] }]),
    record([a]),
    'branch null of the union cannot be read as int'
  ],
  ['field renamed', record([a]), record([{ name: 'c', type: 'int' }]), "field 'c' is not written"],
  ['field renamed with an alias', record([a]), record([{ name: 'c', type: 'int', aliases: ['a'] }]), null],
  [
    'alias of the writer only',
    record([{ ...a, aliases: ['c'] }]),
    record([{ name: 'c', type: 'int' }]),
    "field 'c' is not written"
  ],
  [
    'alias that names another written field',
    record([a, b]),
    record([{ ...a, aliases: ['b'] }]),
    'name several written fields'
  ],
  ['name changed', record([a]), record([a], { name: 'S' }), 'name R became S without an alias'],
  ['name changed with an alias', record([a]), record([a], { name: 'S', aliases: ['R'] }), null],
  ['namespace added', record([a]), record([a], { namespace: 'n' }), null],
  ['namespace changed', record([a], { namespace: 'm' }), record([a], { name: 'n.R' }), null],
  [
    'name changed with an alias without namespace',
    record([a], { namespace: 'm' }),
    record([a], { name: 'S', aliases: ['R'] }),
    'name m.R became S'
  ],
  [
    'name changed with an alias with namespace',
    record([a], { namespace: 'm' }),
    record([a], { name: 'S', aliases: ['m.R'] }),
    null
  ],
  [
    'alias takes the namespace of its type',
    record([a], { namespace: 'm' }),
    record([a], { name: 'S', namespace: 'm', aliases: ['R'] }),
    null
  ],
  ['error → record', record([a], { type: 'error' }), record([a]), null],
  ['record → map', record([a]), { type: 'map', values: 'int' }, 'type R cannot be read as map'],
  ['doc and order', record([{ ...a, doc: 'x', order: 'ignore' }]), record([a], { doc: 'y' }), null],
  [
    'nested field added without a default',
    record([{ name: 'r', type: record([a], { name: 'N' }) }]),
    record([{ name: 'r', type: record([a, b], { name: 'N' }) }]),
    "at '/fields/r/fields/b'"
  ]
])

function enumOf(symbols: readonly string[], more: object = {}): object {
  return { type: 'enum', name: 'E', symbols, ...more }
}

testRules('avro', 'enums and fixed', [
  ['enum the same', enumOf(['x', 'y']), enumOf(['x', 'y']), null],
  ['symbol added', enumOf(['x']), enumOf(['x', 'y']), null],
  ['symbols in another order', enumOf(['x', 'y']), enumOf(['y', 'x']), null],
  ['symbol removed', enumOf(['x', 'y']), enumOf(['x']), "enum no longer has the symbol 'y'"],
  ['symbol removed with a default', enumOf(['x', 'y']), enumOf(['x'], { default: 'x' }), null],
  [
    'symbol removed with a default of the writer only',
    enumOf(['x', 'y'], { default: 'x' }),
    enumOf(['x']),
    "the symbol 'y'"
  ],
  ['enum renamed', enumOf(['x']), enumOf(['x'], { name: 'F' }), 'name E became F'],
  ['enum renamed with an alias', enumOf(['x']), enumOf(['x'], { name: 'F', aliases: ['E'] }), null],
  ['enum → string', enumOf(['x']), 'string', 'type E cannot be read as string'],
  ['string → enum', 'string', enumOf(['x']), 'type string cannot be read as E'],
  ['fixed the same', { type: 'fixed', name: 'F', size: 4 }, { type: 'fixed', name: 'F', size: 4 }, null],
  [
    'fixed of another size',
    { type: 'fixed', name: 'F', size: 4 },
    { type: 'fixed', name: 'F', size: 5 },
    'size 4 became 5'
  ],
  ['fixed renamed', { type: 'fixed', name: 'F', size: 4 }, { type: 'fixed', name: 'G', size: 4 }, 'name F became G'],
  [
    'fixed renamed with an alias',
    { type: 'fixed', name: 'F', size: 4 },
    { type: 'fixed', name: 'G', size: 4, aliases: ['F'] },
    null
  ],
  ['fixed → bytes', { type: 'fixed', name: 'F', size: 4 }, 'bytes', 'type F cannot be read as bytes'],
  ['logical type gone', { type: 'long', logicalType: 'timestamp-millis' }, 'long', null],
  [
    'logical type changed',
    { type: 'bytes', logicalType: 'decimal', precision: 4, scale: 2 },
    { type: 'bytes', logicalType: 'decimal', precision: 5, scale: 1 },
    null
  ]
])

testRules('avro', 'arrays, maps, unions', [
  ['array of a wider type', { type: 'array', items: 'int' }, { type: 'array', items: 'long' }, null],
  [
    'array of a narrower type',
    { type: 'array', items: 'long' },
    { type: 'array', items: 'int' },
    "at '/items': type long"
  ],
  ['array → map', { type: 'array', items: 'int' }, { type: 'map', values: 'int' }, 'type array cannot be read as map'],
  ['map of a wider type', { type: 'map', values: 'int' }, { type: 'map', values: 'double' }, null],
  ['map of another type', { type: 'map', values: 'int' }, { type: 'map', values: 'string' }, "at '/values': type int"],
  ['branch added', ['null', 'int'], ['null', 'int', 'string'], null],
  ['branch removed', ['null', 'int', 'boolean'], ['null', 'int'], 'no branch of the union takes boolean'],
  ['branch removed that another takes', ['int', 'long'], ['long'], null],
  ['branches in another order', ['null', 'int'], ['int', 'null'], null],
  ['branch of a wider type', ['null', 'int'], ['null', 'double'], null],
  ['type → union with it', 'int', ['null', 'int'], null],
  ['type → union with a wider one', 'int', ['null', 'long'], null],
  ['type → union without it', 'boolean', ['null', 'long'], 'no branch of the union takes boolean'],
  ['union of one → type', ['int'], 'int', null],
  ['union → type that takes all', ['int', 'long'], 'double', null],
  ['union → type that takes some', ['int', 'null'], 'int', 'branch null of the union cannot be read as int'],
  ['empty union → anything', [], 'int', null],
  ['record branch changed', ['null', record([a])], ['null', record([a, b])], 'no branch of the union takes R'],
  ['record branch kept', ['null', record([a])], ['null', record([a, { ...b, default: 'x' }])], null],
  [
    'record branch renamed',
    ['null', record([a])],
    ['null', record([a], { name: 'S' })],
    'no branch of the union takes R'
  ]
])

const list = (type: string, more: readonly object[] = []): object =>
  record([{ name: 'v', type }, { name: 'next', type: ['null', 'R'], default: null }, ...more])

testRules('avro', 'names and recursion', [
  ['recursive, wider', list('int'), list('long'), null],
  ['recursive, narrower', list('long'), list('int'), "at '/fields/v': type long"],
  ['recursive, field added', list('int'), list('int', [b]), "field 'b' is not written"],
  [
    'type used twice',
    record([
      { name: 'x', type: enumOf(['p', 'q']) },
      { name: 'y', type: 'E' }
    ]),
    record([
      { name: 'x', type: enumOf(['p']) },
      { name: 'y', type: 'E' }
    ]),
    "the symbol 'q'"
  ],
  [
    'name within a namespace',
    record(
      [
        { name: 'x', type: enumOf(['p']) },
        { name: 'y', type: 'E' }
      ],
      { namespace: 'n' }
    ),
    record(
      [
        { name: 'x', type: enumOf(['p']) },
        { name: 'y', type: 'n.E' }
      ],
      { namespace: 'n' }
    ),
    null
  ],
  [
    'name without a namespace from within one',
    record([
      { name: 'x', type: enumOf(['p']) },
      { name: 'y', type: record([{ name: 'z', type: 'E' }], { name: 'm.N' }) }
    ]),
    record([]),
    null
  ]
])
