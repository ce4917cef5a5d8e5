/**
 * Where the `$ref`s of a schema lead: to a place in the same document, by pointer, anchor or id. Nothing is fetched. Pure,
 * any thread.
 */
import { isJsonObject, own } from './json.ts'
import type { Json, JsonObject } from './json.ts'

/** Stands for the address of a document that does not say its own. */
const NO_ADDRESS = 'schema://document/'

export class References {
  readonly #root: Json
  readonly #byAddress = new Map<string, Json>()
  /** The address that the references of an object are relative to. */
  readonly #baseOf = new Map<object, string>()

  /** @param root a schema in the words of draft-06 or later, nested at most `limits.schemaDepthMax` deep. */
  constructor(root: Json) {
    this.#root = root
    this.#byAddress.set(NO_ADDRESS, root)
    this.#index(root, NO_ADDRESS)
  }

  /** What the reference in that object names; undefined: nothing in this document. */
  targetOf(holder: JsonObject, reference: string): Json | undefined {
    const address = absolute(reference, this.#baseOf.get(holder) ?? NO_ADDRESS)
    if (address === null) return undefined
    const hash = address.indexOf('#')
    const fragment = hash < 0 ? '' : address.slice(hash + 1)
    const document = hash < 0 ? address : address.slice(0, hash)
    if (fragment !== '' && !fragment.startsWith('/')) return this.#byAddress.get(address)
    const start = this.#byAddress.get(document)
    return start === undefined ? undefined : atPointer(start, fragment)
  }

  #index(value: Json, base: string): void {
    if (Array.isArray(value)) {
      for (const each of value) this.#index(each, base)
      return
    }
    if (!isJsonObject(value)) return
    const inner = this.#baseWithin(value, base)
    this.#baseOf.set(value, inner)
    for (const [name, each] of Object.entries(value)) {
      if (each !== undefined && name !== 'enum' && name !== 'const') this.#index(each, inner)
    }
  }

  #baseWithin(value: JsonObject, base: string): string {
    let inner = base
    const id = own(value, '$id')
    if (typeof id === 'string') {
      const address = absolute(id, base)
      const isAnchor = id.startsWith('#')
      if (address !== null) this.#byAddress.set(isAnchor ? address : withoutFragment(address), value)
      if (address !== null && !isAnchor) inner = withoutFragment(address)
    }
    for (const keyword of ['$anchor', '$dynamicAnchor']) {
      const anchor = own(value, keyword)
      if (typeof anchor === 'string') this.#byAddress.set(`${inner}#${anchor}`, value)
    }
    if (value === this.#root) this.#byAddress.set(inner, value)
    return inner
  }
}

function absolute(reference: string, base: string): string | null {
  if (reference.startsWith('#')) return `${base}${reference}`
  return URL.parse(reference, base)?.href ?? null
}

function withoutFragment(address: string): string {
  const hash = address.indexOf('#')
  return hash < 0 ? address : address.slice(0, hash)
}

function atPointer(start: Json, pointer: string): Json | undefined {
  let value: Json | undefined = start
  for (const part of pointer.split('/').slice(1)) {
    const name = unescaped(part)
    if (name === null) return undefined
    if (Array.isArray(value)) value = value[Number(name)]
    else if (isJsonObject(value)) value = own(value, name)
    else return undefined
  }
  return value
}

/** null: no valid escapes. */
function unescaped(part: string): string | null {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    return null
  }
}
