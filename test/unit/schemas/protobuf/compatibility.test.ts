/**
 * The rules for protobuf. Source of the rules: Confluent Platform documentation, "Schema Evolution and Compatibility for
 * Schema Registry", Protobuf compatibility rules, and the protobuf language guide, "Updating A Message Type". In everything
 * the new schema is the reader.
 */
import { testRules } from '../rules.ts'
import type { Rule } from '../rules.ts'

const proto3 = (body: string): string => `syntax = "proto3";\n${body}`
const message = (fields: string): string => proto3(`message A { ${fields} }`)
const proto2 = (fields: string): string => `syntax = "proto2";\nmessage A { ${fields} }`

/** Types of one line may take each other's place. */
const groups = [
  ['int32', 'int64', 'uint32', 'uint64', 'bool'],
  ['sint32', 'sint64'],
  ['fixed32', 'sfixed32'],
  ['fixed64', 'sfixed64'],
  ['string', 'bytes'],
  ['float'],
  ['double']
]
const scalars = groups.flat()

testRules(
  'protobuf',
  'scalars, each read as each',
  scalars.flatMap(writer =>
    scalars.map((reader): Rule => {
      const isTaken = groups.some(group => group.includes(writer) && group.includes(reader))
      const problem = isTaken ? null : `type of field f went from ${writer} to ${reader}`
      return [`${writer} as ${reader}`, message(`${writer} f = 1;`), message(`${reader} f = 1;`), problem]
    })
  )
)

const pair = 'message A { string s = 1; } message B { string s = 1; }'

testRules('protobuf', 'messages, packages, enums', [
  ['message added', message('string s = 1;'), proto3(pair), null],
  ['message removed', proto3(pair), message('string s = 1;'), "at '/B': message was removed"],
  ['messages in another order', proto3(pair), proto3('message B { string s = 1; } message A { string s = 1; }'), null],
  ['message renamed', message('string s = 1;'), proto3('message C { string s = 1; }'), "at '/A': message was removed"],
  ['nested message added', message('string s = 1;'), message('string s = 1; message N {}'), null],
  [
    'nested message removed',
    message('string s = 1; message N {}'),
    message('string s = 1;'),
    "at '/A/N': message was removed"
  ],
  ['package added', message('string s = 1;'), proto3('package p; message A { string s = 1; }'), null],
  [
    'package changed',
    proto3('package p; message A { B b = 1; } message B {}'),
    proto3('package q.r; message A { .q.r.B b = 1; } message B {}'),
    null
  ],
  ['enum added', message('string s = 1;'), message('string s = 1; enum E { X = 0; }'), null],
  ['enum removed', message('enum E { X = 0; }'), message(''), null],
  ['enum value added', message('E e = 1; enum E { X = 0; }'), message('E e = 1; enum E { X = 0; Y = 1; }'), null],
  ['enum value removed', message('E e = 1; enum E { X = 0; Y = 1; }'), message('E e = 1; enum E { X = 0; }'), null],
  ['enum value renamed', message('E e = 1; enum E { X = 0; }'), message('E e = 1; enum E { Y = 0; }'), null],
  ['enum another', message('E e = 1; enum E { X = 0; }'), message('F e = 1; enum F { X = 0; }'), null],
  [
    'service and options',
    message(''),
    proto3('option java_package = "x"; message A {} service S { rpc F(A) returns (A); }'),
    null
  ],
  ['proto2 → proto3', proto2('optional string s = 1;'), message('string s = 1;'), null],
  ['proto3 → an edition', message('string s = 1;'), 'edition = "2023"; message A { string s = 1; }', null]
])

testRules('protobuf', 'fields', [
  ['added', message('string s = 1;'), message('string s = 1; int32 n = 2;'), null],
  ['removed', message('string s = 1; int32 n = 2;'), message('string s = 1;'), null],
  ['removed and reserved', message('string s = 1; int32 n = 2;'), message('string s = 1; reserved 2;'), null],
  ['renamed', message('string s = 1;'), message('string t = 1;'), null],
  ['numbered anew', message('string s = 1;'), message('string s = 2;'), null],
  [
    'added to a nested message',
    message('message N { int32 n = 1; }'),
    message('message N { int32 n = 1; int32 m = 2; }'),
    null
  ],
  [
    'another type in a nested message',
    message('message N { int32 n = 1; }'),
    message('message N { string n = 1; }'),
    "at '/A/N/1': type of field n went from int32 to string"
  ],
  [
    'another field of that number',
    message('int32 n = 1;'),
    message('string s = 1;'),
    'type of field n went from int32 to string'
  ],
  [
    'required added',
    proto2('optional string s = 1;'),
    proto2('optional string s = 1; required string t = 2;'),
    'required field t was added'
  ],
  [
    'required removed',
    proto2('optional string s = 1; required string t = 2;'),
    proto2('optional string s = 1;'),
    'required field t was removed'
  ],
  ['required the same', proto2('required string s = 1;'), proto2('required string s = 1;'), null],
  [
    'number: optional → required',
    proto2('optional int32 n = 1;'),
    proto2('required int32 n = 1;'),
    'field n was optional and is required'
  ],
  [
    'number: singular → repeated',
    message('int32 n = 1;'),
    message('repeated int32 n = 1;'),
    'field n was optional and is repeated'
  ],
  [
    'number: repeated → singular',
    message('repeated double n = 1;'),
    message('double n = 1;'),
    'field n was repeated and is optional'
  ],
  [
    'enum: singular → repeated',
    message('E e = 1; enum E { X = 0; }'),
    message('repeated E e = 1; enum E { X = 0; }'),
    'field e was optional and is repeated'
  ],
  ['string: singular → repeated', message('string s = 1;'), message('repeated string s = 1;'), null],
  ['bytes: repeated → singular', message('repeated bytes s = 1;'), message('bytes s = 1;'), null],
  ['message: singular → repeated', message('N n = 1; message N {}'), message('repeated N n = 1; message N {}'), null],
  ['proto3 optional added', message('int32 n = 1;'), message('optional int32 n = 1;'), null],
  ['proto3 optional removed', message('optional int32 n = 1;'), message('int32 n = 1;'), null],
  ['scalar → enum', message('int32 n = 1;'), message('E n = 1; enum E { X = 0; }'), null],
  ['enum → scalar', message('E n = 1; enum E { X = 0; }'), message('uint64 n = 1;'), null],
  [
    'string → enum',
    message('string n = 1;'),
    message('E n = 1; enum E { X = 0; }'),
    'type of field n went from string to E'
  ],
  [
    'scalar → message',
    message('string n = 1;'),
    message('N n = 1; message N {}'),
    'field n was a scalar and is a message'
  ],
  [
    'message → scalar',
    message('N n = 1; message N {}'),
    message('bytes n = 1; message N {}'),
    'field n was a message and is a scalar'
  ],
  [
    'message of another name',
    message('N n = 1; message N {} message O {}'),
    message('O n = 1; message N {} message O {}'),
    'type of field n went from A.N to A.O'
  ],
  ['message named in another way', message('N n = 1; message N {}'), message('.A.N n = 1; message N {}'), null],
  [
    'imported type',
    proto3('import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp t = 1; }'),
    proto3('import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp u = 1; }'),
    null
  ],
  [
    'imported type changed',
    proto3('import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp t = 1; }'),
    proto3('import "google/protobuf/duration.proto"; message A { google.protobuf.Duration t = 1; }'),
    'went from google.protobuf.Timestamp to google.protobuf.Duration'
  ],
  ['recursive', message('A a = 1; int32 n = 2;'), message('A a = 1; string n = 2;'), "at '/A/2': type of field n"]
])

testRules('protobuf', 'maps', [
  ['the same', message('map<string, int32> m = 1;'), message('map<string, int32> m = 1;'), null],
  ['value of the same group', message('map<string, int32> m = 1;'), message('map<string, int64> m = 1;'), null],
  [
    'value of another type',
    message('map<string, int32> m = 1;'),
    message('map<string, string> m = 1;'),
    'type of field m went from int32 to string'
  ],
  ['key of the same group', message('map<int32, int32> m = 1;'), message('map<uint64, int32> m = 1;'), null],
  [
    'key of another type',
    message('map<int32, int32> m = 1;'),
    message('map<string, int32> m = 1;'),
    'keys of map m became string'
  ],
  [
    'value message of another name',
    message('map<string, N> m = 1; message N {} message O {}'),
    message('map<string, O> m = 1; message N {} message O {}'),
    'went from A.N to A.O'
  ],
  [
    'value scalar → message',
    message('map<string, string> m = 1; message N {}'),
    message('map<string, N> m = 1; message N {}'),
    'values of map m became N'
  ],
  ['map → scalar', message('map<string, int32> m = 1;'), message('string m = 1;'), 'field m was a map and is a scalar'],
  ['scalar → map', message('string m = 1;'), message('map<string, int32> m = 1;'), 'field m was a scalar and is a map']
])

testRules('protobuf', 'oneofs', [
  [
    'one field into a new oneof',
    message('string s = 1; string t = 2;'),
    message('string s = 1; oneof o { string t = 2; int32 n = 3; }'),
    null
  ],
  [
    'two fields into a new oneof',
    message('string s = 1; string t = 2;'),
    message('oneof o { string s = 1; string t = 2; }'),
    '2 fields were moved into the oneof'
  ],
  [
    'a field into an older oneof',
    message('string s = 1; oneof o { string t = 2; }'),
    message('oneof o { string t = 2; string s = 1; }'),
    'a field was moved into an older oneof'
  ],
  [
    'a field added to a oneof',
    message('oneof o { string s = 1; }'),
    message('oneof o { string s = 1; string t = 2; }'),
    null
  ],
  [
    'a field removed from a oneof',
    message('oneof o { string s = 1; string t = 2; }'),
    message('oneof o { string s = 1; }'),
    'field t was removed from the oneof'
  ],
  [
    'a field moved out of a oneof that stays',
    message('oneof o { string s = 1; string t = 2; }'),
    message('string t = 2; oneof o { string s = 1; }'),
    'field t was removed from the oneof'
  ],
  [
    'a oneof dissolved',
    message('oneof o { string s = 1; string t = 2; }'),
    message('string s = 1; string t = 2;'),
    null
  ],
  [
    'a oneof with its fields removed',
    message('int32 n = 3; oneof o { string s = 1; string t = 2; }'),
    message('int32 n = 3;'),
    null
  ],
  [
    'a new oneof of new fields',
    message('int32 n = 3;'),
    message('int32 n = 3; oneof o { string s = 1; string t = 2; }'),
    null
  ],
  [
    'a oneof renamed',
    message('oneof o { string s = 1; string t = 2; }'),
    message('oneof p { string s = 1; string t = 2; }'),
    null
  ],
  [
    'a oneof renamed, and a type changed',
    message('oneof o { string s = 1; string t = 2; }'),
    message('oneof p { string s = 1; int32 t = 2; }'),
    'type of field t went from string to int32'
  ],
  [
    'a type changed within a oneof',
    message('oneof o { string s = 1; }'),
    message('oneof o { int32 s = 1; }'),
    'type of field s went from string to int32'
  ],
  [
    'a type changed on the way into a oneof',
    message('string s = 1;'),
    message('oneof o { int32 s = 1; }'),
    'type of field s went from string to int32'
  ],
  [
    'proto3 optional is no oneof',
    message('optional string s = 1; optional string t = 2;'),
    message('optional string s = 1;'),
    null
  ]
])
