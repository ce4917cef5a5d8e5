/**
 * A JSON Schema as the comparison sees it: each place is of one kind, or a combination of kinds. Confluent's registry
 * decides by such kinds (of everit's library), so what is of which kind is part of the rules:
 *
 *   - a keyword without `type` makes its kind (`maxLength` alone is a string shape);
 *   - several `type`s are an anyOf of them, each with the keywords that are its own;
 *   - more kinds in one place (a type and an enum, say) are an allOf of them;
 *   - before 2019-09 nothing beside `$ref` counts.
 *
 * Pure, any thread. Lives for one comparison.
 */
import { isModern } from './draft.ts'
import type { Draft } from './draft.ts'
import { isJsonObject, own } from './json.ts'
import type { Json, JsonObject } from './json.ts'
import { References } from './references.ts'

/** allOf, anyOf, oneOf. */
export type Criterion = 'all' | 'any' | 'one'

/** Keywords of one kind, read where they are compared. */
export interface KindShape {
  readonly kind: 'string' | 'number' | 'object' | 'array'
  readonly keywords: JsonObject
  /** Of numbers: whole ones only. */
  readonly isInteger: boolean
}
export interface ValueShape {
  readonly kind: 'enum' | 'const'
  /** What is allowed; of const the one value. */
  readonly values: readonly Json[]
}
export interface NotShape {
  readonly kind: 'not'
  readonly schema: Json
}
export interface CombinedShape {
  readonly kind: 'combined'
  readonly criterion: Criterion
  readonly parts: readonly Part[]
}
/** A reference to what no place of the document is, a meta-schema for instance. */
export interface ForeignShape {
  readonly kind: 'foreign'
  readonly address: string
}
export interface PlainShape {
  readonly kind: 'any' | 'none' | 'boolean' | 'null' | 'conditional'
}
export type Shape = KindShape | ValueShape | NotShape | CombinedShape | ForeignShape | PlainShape

/** Of a combination: a schema that stands in the text, or a shape that was made of some keywords of one. */
export type Part = { readonly schema: Json } | { readonly shape: Shape }

const anything: Shape = { kind: 'any' }
const nothing: Shape = { kind: 'none' }

const stringKeywords = ['minLength', 'maxLength', 'pattern', 'format']
const numberKeywords = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']
const arrayKeywords = [
  ...['items', 'additionalItems', 'minItems', 'maxItems', 'uniqueItems', 'contains'],
  ...['prefixItems', 'unevaluatedItems', 'minContains', 'maxContains']
]
const objectKeywords = [
  ...['properties', 'required', 'minProperties', 'maxProperties', 'dependencies', 'patternProperties'],
  ...['additionalProperties', 'propertyNames', 'dependentRequired', 'dependentSchemas', 'unevaluatedProperties']
]
/** In the order in which shapes of one place are made. */
const keywordsOfKind = [
  ['array', arrayKeywords],
  ['object', objectKeywords],
  ['number', numberKeywords],
  ['string', stringKeywords]
] as const
const criterionOfKeyword = [
  ['allOf', 'all'],
  ['anyOf', 'any'],
  ['oneOf', 'one']
] as const

/** A whole schema, its places made shapes when they are asked for. */
export class ShapedSchema {
  readonly root: Json
  readonly draft: Draft
  readonly #references: References
  readonly #shapes = new Map<object, Shape>()

  /** @param root in the words of draft-06 or later (`inModernWords`). */
  constructor(root: Json, draft: Draft) {
    this.root = root
    this.draft = draft
    this.#references = new References(root)
  }

  /** The shape of a place, references followed. The same place is the same object. */
  shapeOf(schema: Json): Shape {
    const place = this.#followed(schema)
    if (!isJsonObject(place)) return place === false ? nothing : anything
    const known = this.#shapes.get(place)
    if (known !== undefined) return known
    const made = this.#made(place)
    this.#shapes.set(place, made)
    return made
  }

  /** The shape of a part of a combination. */
  shapeOfPart(part: Part): Shape {
    return 'shape' in part ? part.shape : this.shapeOf(part.schema)
  }

  /** Follows references that stand alone; a ring of them allows nothing in particular. */
  #followed(schema: Json): Json {
    let place = schema
    const seen = new Set<Json>()
    while (isJsonObject(place)) {
      const reference = own(place, '$ref')
      if (typeof reference !== 'string' || (isModern(this.draft) && hasOther(place, '$ref'))) return place
      if (seen.has(place)) return true
      seen.add(place)
      const target = this.#references.targetOf(place, reference)
      if (target === undefined) return place
      place = target
    }
    return place
  }

  #made(place: JsonObject): Shape {
    const shapes: Part[] = []
    const reference = own(place, '$ref')
    if (typeof reference === 'string') {
      const target = this.#references.targetOf(place, reference)
      const isKnown = target !== undefined && target !== place
      const part: Part = isKnown ? { schema: target } : { shape: { kind: 'foreign', address: reference } }
      if (!isModern(this.draft)) return this.shapeOfPart(part)
      shapes.push(part)
    }
    shapes.push(...kindsOf(place).map(shape => ({ shape })))
    const only = shapes[0]
    if (only === undefined) return anything
    return shapes.length === 1 ? this.shapeOfPart(only) : { kind: 'combined', criterion: 'all', parts: shapes }
  }
}

/** True if more than notes for readers stands beside that keyword. */
function hasOther(place: JsonObject, keyword: string): boolean {
  return Object.keys(place).some(name => name !== keyword && !notes.has(name))
}

const notes = new Set(
  [
    ['$id', '$schema', '$comment', '$defs', 'definitions', '$anchor', '$dynamicAnchor', '$vocabulary'],
    ['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly']
  ].flat()
)

function kindsOf(place: JsonObject): Shape[] {
  const found: Shape[] = []
  const values = own(place, 'enum')
  if (Array.isArray(values)) found.push({ kind: 'enum', values })
  for (const [keyword, criterion] of criterionOfKeyword) {
    const parts = own(place, keyword)
    if (!Array.isArray(parts)) continue
    found.push({ kind: 'combined', criterion, parts: parts.map((schema: Json) => ({ schema })) })
  }
  const not = own(place, 'not')
  if (not !== undefined) found.push({ kind: 'not', schema: not })
  const constant = own(place, 'const')
  if (constant !== undefined) found.push({ kind: 'const', values: [constant] })
  const types = typesOf(place)
  const typed = types.map(type => shapeOfType(type, place))
  const first = typed[0]
  if (Array.isArray(own(place, 'type'))) {
    found.push({ kind: 'combined', criterion: 'any', parts: typed.map(shape => ({ shape })) })
  } else if (first !== undefined) {
    found.push(first)
  }
  return [...found, ...untypedKinds(place, types)]
}

function typesOf(place: JsonObject): string[] {
  const type = own(place, 'type')
  const types = Array.isArray(type) ? type : [type]
  return types.filter(each => typeof each === 'string')
}

/** Kinds whose keywords stand there though no type says so; and if, then, else. */
function untypedKinds(place: JsonObject, types: readonly string[]): Shape[] {
  const found: Shape[] = []
  for (const [kind, keywords] of keywordsOfKind) {
    const isTyped = types.includes(kind) || (kind === 'number' && types.includes('integer'))
    if (!isTyped && keywords.some(keyword => Object.hasOwn(place, keyword))) {
      found.push({ kind, keywords: place, isInteger: false })
    }
  }
  if (['if', 'then', 'else'].some(keyword => Object.hasOwn(place, keyword))) found.push({ kind: 'conditional' })
  return found
}

function shapeOfType(type: string, keywords: JsonObject): Shape {
  switch (type) {
    case 'string':
    case 'number':
    case 'object':
    case 'array':
      return { kind: type, keywords, isInteger: false }
    case 'integer':
      return { kind: 'number', keywords, isInteger: true }
    case 'boolean':
    case 'null':
      return { kind: type }
    default:
      return anything
  }
}
