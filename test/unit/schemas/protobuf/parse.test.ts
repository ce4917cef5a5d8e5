/** What is a protobuf schema, and what is refused with which words. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { protobufProblem } from '../../../../src/schemas/protobuf/parse.ts'

const accepted = [
  'message A { optional string s = 1; }',
  'syntax = "proto2"; message A { required string s = 1; optional group G = 2 { optional int32 n = 1; } extensions 100 to 200; }',
  'syntax = "proto3"; package a.b; message A { map<string, A> m = 1; oneof o { int32 x = 2; } enum E { Z = 0; } E e = 3; }',
  'edition = "2023"; message A { string s = 1; }',
  'syntax = "proto3"; import "google/protobuf/any.proto"; message A { google.protobuf.Any any = 1; }',
  '// a comment\nsyntax = "proto3"; option java_package = "x"; message A {} service S { rpc Call(A) returns (stream A); }'
]
for (const text of accepted) test(`accepted: ${text.slice(0, 60)}`, () => assert.equal(protobufProblem(text), null))

const refused: readonly (readonly [string, RegExp])[] = [
  ['', /^it declares no message$/],
  ['syntax = "proto3"; enum E { Z = 0; }', /^it declares no message$/],
  ['syntax = "proto3"; message A { string s = 1', /line 1/],
  ['syntax = "proto4"; message A {}', /proto4/],
  ['syntax = "proto3"; message A { B b = 1; }', /B/],
  ['syntax = "proto3"; message A { string s = 1; string t = 1; }', /duplicate id 1/],
  ['syntax = "proto3"; message A { string s = 1; string s = 2; }', /duplicate name 's'/],
  ['syntax = "proto3"; message A { reserved 1; string s = 1; }', /reserved/],
  ['syntax = "proto3"; message A { string s = 0; }', /^field s of A has the number 0, which none may have$/],
  ['syntax = "proto3"; message A { message B { string s = 19500; } }', /^field s of B has the number 19500/],
  ['syntax = "proto3"; import "other.proto"; message A {}', /^it imports "other\.proto": only google\/protobuf types/],
  ['syntax = "proto3"; import "/etc/passwd"; message A {}', /^it imports "\/etc\/passwd"/],
  ['CgphLnByb3RvIgMKAUE=', /^it is a serialized descriptor/],
  ['{"type":"string"}', /line 1/]
]
for (const [text, problem] of refused) {
  test(`refused: ${text.slice(0, 70)}`, () => assert.match(String(protobufProblem(text)), problem))
}
