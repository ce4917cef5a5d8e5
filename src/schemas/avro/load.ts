/**
 * Parsed JSON → Avro types (model.ts), with everything that the specification asks checked and named by its place. Pure, any
 * thread.
 */
import { isJsonObject, own } from '../json-schema/json.ts'
import type { Json, JsonObject } from '../json-schema/json.ts'
import { isDefaultOf } from './defaults.ts'
import { nameOf, primitiveKinds } from './model.ts'
import type { AvroType, EnumType, FixedType, PrimitiveKind, RecordField, RecordType } from './model.ts'

/** The text is no Avro schema; `message` says what is wrong with it and where. */
export class AvroSchemaError extends Error {
  override readonly name = 'AvroSchemaError'
}

const namePattern = /^[A-Za-z_][A-Za-z0-9_]*$/
const primitives: ReadonlyMap<string, AvroType> = new Map(primitiveKinds.map((kind: PrimitiveKind) => [kind, { kind }]))

/** @param json nested at most `limits.schemaDepthMax` deep. @throws AvroSchemaError */
export function loadAvro(json: Json): AvroType {
  const loader = new Loader()
  const type = loader.type(json, '', 'the schema')
  loader.checkDefaults()
  return type
}

/** Names that were declared so far: a name is known from its declaration on, in the order of the text. */
class Loader {
  readonly #named = new Map<string, AvroType>()
  readonly #defaults: { readonly value: Json; readonly type: AvroType; readonly where: string }[] = []

  /** Once all types are complete. */
  checkDefaults(): void {
    for (const { value, type, where } of this.#defaults) {
      if (!isDefaultOf(type, value)) throw new AvroSchemaError(`the default of ${where} is no ${nameOf(type)}`)
    }
  }

  /** @param space the namespace that surrounds it; '': none. @param where names the place in errors. */
  type(json: Json | undefined, space: string, where: string): AvroType {
    if (typeof json === 'string') return this.#byName(json, space, where)
    if (Array.isArray(json)) return this.#union(json, space, where)
    if (!isJsonObject(json)) throw new AvroSchemaError(`${where} has no type`)
    const type = own(json, 'type')
    if (typeof type !== 'string') return this.type(type, space, where)
    switch (type) {
      case 'record':
      case 'error':
        return this.#record(json, space, where)
      case 'enum':
        return this.#enum(json, space, where)
      case 'fixed':
        return this.#fixed(json, space, where)
      case 'array':
        return { kind: 'array', items: this.type(own(json, 'items'), space, `items of ${where}`) }
      case 'map':
        return { kind: 'map', values: this.type(own(json, 'values'), space, `values of ${where}`) }
      default:
        return this.#byName(type, space, where)
    }
  }

  #byName(name: string, space: string, where: string): AvroType {
    const full = name.includes('.') || space === '' ? name : `${space}.${name}`
    const found = primitives.get(name) ?? this.#named.get(full) ?? this.#named.get(name)
    if (found === undefined) throw new AvroSchemaError(`${where} has the unknown type '${name}'`)
    return found
  }

  #union(json: readonly Json[], space: string, where: string): AvroType {
    const branches = json.map((branch, index) => this.type(branch, space, `branch ${index + 1} of ${where}`))
    const seen = new Set<string>()
    for (const branch of branches) {
      if (branch.kind === 'union') throw new AvroSchemaError(`${where} is a union with a union in it`)
      const name = nameOf(branch)
      if (seen.has(name)) throw new AvroSchemaError(`${where} is a union with two branches of type ${name}`)
      seen.add(name)
    }
    return { kind: 'union', branches }
  }

  #record(json: JsonObject, space: string, where: string): AvroType {
    const { name, aliases, inner } = this.#names(json, space, where)
    const fields = own(json, 'fields')
    if (!Array.isArray(fields)) throw new AvroSchemaError(`record ${name} has no fields`)
    const record: RecordType = { kind: 'record', name, aliases, fields: [] }
    this.#declare(record)
    const seen = new Set<string>()
    for (const each of fields) {
      const field = this.#field(each, inner, name)
      if (seen.has(field.name)) throw new AvroSchemaError(`record ${name} has two fields '${field.name}'`)
      seen.add(field.name)
      record.fields.push(field)
    }
    return record
  }

  #field(json: Json, space: string, record: string): RecordField {
    const name = isJsonObject(json) ? own(json, 'name') : undefined
    if (!isJsonObject(json) || typeof name !== 'string' || !namePattern.test(name)) {
      throw new AvroSchemaError(`record ${record} has a field without a valid name`)
    }
    const where = `field '${name}' of ${record}`
    const type = this.type(own(json, 'type'), space, where)
    const value = own(json, 'default')
    if (value !== undefined) this.#defaults.push({ value, type, where })
    return { name, type, aliases: stringsAt(json, 'aliases'), hasDefault: value !== undefined }
  }

  #enum(json: JsonObject, space: string, where: string): AvroType {
    const { name, aliases } = this.#names(json, space, where)
    const symbols = own(json, 'symbols')
    if (!Array.isArray(symbols)) throw new AvroSchemaError(`enum ${name} has no symbols`)
    const known = new Set<string>()
    for (const symbol of symbols) {
      if (typeof symbol !== 'string' || !namePattern.test(symbol)) {
        throw new AvroSchemaError(`enum ${name} has a symbol that is no name: ${JSON.stringify(symbol)}`)
      }
      if (known.has(symbol)) throw new AvroSchemaError(`enum ${name} has the symbol '${symbol}' twice`)
      known.add(symbol)
    }
    const byDefault = own(json, 'default') ?? null
    if (byDefault !== null && (typeof byDefault !== 'string' || !known.has(byDefault))) {
      throw new AvroSchemaError(`enum ${name} has a default that is none of its symbols`)
    }
    const type: EnumType = { kind: 'enum', name, aliases, symbols: known, defaultSymbol: byDefault }
    return this.#declare(type)
  }

  #fixed(json: JsonObject, space: string, where: string): AvroType {
    const { name, aliases } = this.#names(json, space, where)
    const size = own(json, 'size')
    if (typeof size !== 'number' || !Number.isInteger(size) || size < 0 || size >= 2 ** 31) {
      throw new AvroSchemaError(`fixed ${name} has no size of 0 to ${2 ** 31 - 1}`)
    }
    const type: FixedType = { kind: 'fixed', name, aliases, size }
    return this.#declare(type)
  }

  #declare(type: RecordType | EnumType | FixedType): AvroType {
    if (primitives.has(type.name)) throw new AvroSchemaError(`a type may not be called ${type.name}`)
    if (this.#named.has(type.name)) throw new AvroSchemaError(`the name ${type.name} is declared twice`)
    this.#named.set(type.name, type)
    return type
  }

  /** Name, aliases, and the namespace for what is within. */
  #names(json: JsonObject, space: string, where: string): { name: string; aliases: string[]; inner: string } {
    const name = own(json, 'name')
    if (typeof name !== 'string') throw new AvroSchemaError(`${where} has no name`)
    const given = own(json, 'namespace')
    const within = typeof given === 'string' ? given : space
    const full = qualified(name, within)
    if (!full.split('.').every(part => namePattern.test(part))) {
      throw new AvroSchemaError(`'${full}' is no name of a type`)
    }
    const inner = full.includes('.') ? full.slice(0, full.lastIndexOf('.')) : ''
    return { name: full, aliases: stringsAt(json, 'aliases').map(alias => qualified(alias, inner)), inner }
  }
}

function qualified(name: string, space: string): string {
  return name.includes('.') || space === '' ? name : `${space}.${name}`
}

function stringsAt(json: JsonObject, keyword: string): string[] {
  const found = own(json, keyword)
  return Array.isArray(found) ? found.filter(each => typeof each === 'string') : []
}
